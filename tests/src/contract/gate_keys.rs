//! `PurchaseGate::admit` with an `Idempotency-Key`.

use seckill_domain::{Admission, Decision, PlaceAtFirst, VoucherId};

use super::opening::{Opening, VOUCHER};
use super::{HotHarness, promises};

promises! { gate_keys over dyn HotHarness:
    a_repeat_is_answered_before_its_key_is_asked,
    a_key_is_answered_with_what_its_first_use_got,
    a_key_used_for_another_quantity_is_refused,
    a_key_is_scoped_to_its_buyer_and_its_voucher,
    a_key_outlives_the_units_it_got,
    a_refusal_is_not_remembered_under_its_key,
    any_visible_text_is_a_key,
}

async fn a_repeat_is_answered_before_its_key_is_asked(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let first = stall.keyed(42, 1, "k");
    let order = first.order;
    assert_eq!(stall.admit(&first).await, Admission::Granted { order });
    // The same order id is the same attempt: an answer that says how the order stands.
    assert_eq!(stall.admit(&first).await, Admission::Granted { order });
}

async fn a_key_is_answered_with_what_its_first_use_got(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    let granted = stall.keyed(1, 1, "k");
    let waited = stall.keyed(2, 1, "k");
    stall.admit(&granted).await;
    stall.admit(&waited).await;
    for (attempt, first) in [
        (granted, PlaceAtFirst::Granted),
        (waited, PlaceAtFirst::Waitlisted),
    ] {
        let order = attempt.order;
        let again = stall.keyed(attempt.buyer.get(), 1, "k");
        assert_eq!(
            stall.admit(&again).await,
            Admission::Replayed { order, first }
        );
    }
    assert_eq!(stall.decisions().await.len(), 2);
}

async fn a_key_used_for_another_quantity_is_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(9).open(harness).await;
    let first = stall.keyed(1, 2, "k");
    let order = first.order;
    stall.admit(&first).await;
    let other = stall.keyed(1, 3, "k");
    assert_eq!(stall.admit(&other).await, Admission::KeyReused { order });
    assert_eq!(stall.free().await, 7);
}

async fn a_key_is_scoped_to_its_buyer_and_its_voucher(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(9).open(harness).await;
    let other = Opening::of(9)
        .voucher(VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS)))
        .limit(9)
        .open(harness)
        .await;
    for (stall, buyer) in [(&stall, 1), (&stall, 11), (&other, 1)] {
        let attempt = stall.keyed(buyer, 1, "k");
        let order = attempt.order;
        assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
    }
}

async fn a_key_outlives_the_units_it_got(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let first = stall.keyed(1, 1, "k");
    let order = first.order;
    stall.admit(&first).await;
    stall.release(&first).await;
    let replayed = Admission::Replayed {
        order,
        first: PlaceAtFirst::Granted,
    };
    assert_eq!(stall.admit(&stall.keyed(1, 1, "k")).await, replayed);
    assert_eq!(stall.free().await, 1);
}

async fn a_refusal_is_not_remembered_under_its_key(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let winner = stall.granted(1, 1).await;
    assert_eq!(
        stall.admit(&stall.keyed(2, 1, "k")).await,
        Admission::SoldOut
    );
    stall.release(&winner).await;
    let attempt = stall.keyed(2, 1, "k");
    let order = attempt.order;
    assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
}

async fn any_visible_text_is_a_key(harness: &dyn HotHarness) {
    let visible: String = ('!'..='~').collect();
    let mut keys: Vec<String> = visible.as_bytes().chunks(32).map(text).collect();
    keys.extend([":", "1:2", "\"", "\\", "{}", "0", "nil", "|"].map(str::to_owned));
    keys.push("k".repeat(64));
    let units = u32::try_from(keys.len()).unwrap();
    let stall = Opening::of(units).limit(units).open(harness).await;
    let mut asked = Vec::new();
    for key in &keys {
        let attempt = stall.keyed(1, 1, key);
        let order = attempt.order;
        assert_eq!(
            stall.admit(&attempt).await,
            Admission::Granted { order },
            "{key}"
        );
        let again = stall.keyed(1, 1, key);
        let first = PlaceAtFirst::Granted;
        assert_eq!(
            stall.admit(&again).await,
            Admission::Replayed { order, first },
            "{key}"
        );
        asked.push(Decision::Granted(stall.claim(&attempt)));
    }
    assert_eq!(stall.decisions().await, asked);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

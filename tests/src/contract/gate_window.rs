//! `PurchaseGate::admit` before, after and outside of a sale.

use std::time::Duration;

use seckill_domain::{Admission, Attempt, PlaceAtFirst, SaleStatus, VoucherId};

use super::opening::{Opening, VOUCHER};
use super::stall::waitlisted;
use super::{HotHarness, promises};

const MINUTE: Duration = Duration::from_mins(1);

promises! { gate_window over dyn HotHarness:
    before_it_opens_a_sale_says_when,
    a_sale_opens_and_closes_by_the_gates_clock,
    closed_goes_before_paused_and_paused_before_not_open,
    a_pause_or_a_close_still_answers_what_was_decided,
    a_close_by_the_clock_still_answers_what_was_decided,
}

async fn before_it_opens_a_sale_says_when(harness: &dyn HotHarness) {
    let now = harness.gate_time().await;
    let opens_at = now.plus(MINUTE);
    let opening = Opening::of(1)
        .waitlist(5)
        .window(opens_at, now.plus(2 * MINUTE));
    let stall = opening.open(harness).await;
    assert_eq!(stall.buy(1, 1).await.1, Admission::NotOpen { opens_at });
    assert_eq!(
        stall.buy(2, 5).await.1,
        Admission::NotOpen { opens_at },
        "before the limit"
    );
    assert_eq!(stall.decisions().await, []);
}

async fn a_sale_opens_and_closes_by_the_gates_clock(harness: &dyn HotHarness) {
    let wait = Duration::from_millis(400);
    let now = harness.gate_time().await;
    let opens = VoucherId::new(VOUCHER.get() + 10);
    let opening = Opening::of(1)
        .voucher(opens)
        .window(now.plus(wait), now.plus(MINUTE));
    let opens = opening.open(harness).await;
    let closes = VoucherId::new(VOUCHER.get() + 20);
    let opening = Opening::of(1).voucher(closes).window(now, now.plus(wait));
    let closes = opening.open(harness).await;
    harness.elapse(wait).await;
    opens.granted(1, 1).await;
    assert_eq!(closes.buy(1, 1).await.1, Admission::Closed);
}

async fn closed_goes_before_paused_and_paused_before_not_open(harness: &dyn HotHarness) {
    let now = harness.gate_time().await;
    let before = now.plus(MINUTE);
    let after = now.plus(2 * MINUTE);
    let start = seckill_domain::Timestamp::from_millis(0);
    let cases = [
        (SaleStatus::Closed, before, after, Admission::Closed),
        (SaleStatus::Paused, before, after, Admission::Paused),
        (SaleStatus::Paused, start, now, Admission::Closed),
        (SaleStatus::Published, start, now, Admission::Closed),
    ];
    for (number, (status, opens_at, closes_at, expected)) in (10..).zip(cases) {
        let stall = Opening::of(1)
            .voucher(VoucherId::new(VOUCHER.get() + number))
            .status(status)
            .window(opens_at, closes_at)
            .open(harness)
            .await;
        assert_eq!(stall.buy(1, 1).await.1, expected, "{status:?}");
    }
}

async fn a_pause_or_a_close_still_answers_what_was_decided(harness: &dyn HotHarness) {
    for (number, status) in (10..).zip([SaleStatus::Paused, SaleStatus::Closed]) {
        let voucher = VoucherId::new(VOUCHER.get() + number);
        let opening = Opening::of(1).voucher(voucher).waitlist(5);
        let stall = opening.open(harness).await;
        let granted = stall.keyed(1, 1, "k");
        stall.admit(&granted).await;
        let waited = stall.waiting(2, 1).await;
        stall.turn(status).await;
        answers_what_was_decided(&stall, &granted, &waited).await;
        let refused = match status {
            SaleStatus::Paused => Admission::Paused,
            _ => Admission::Closed,
        };
        assert_eq!(stall.buy(3, 1).await.1, refused);
    }
}

async fn a_close_by_the_clock_still_answers_what_was_decided(harness: &dyn HotHarness) {
    let wait = Duration::from_millis(1_500);
    let now = harness.gate_time().await;
    let opening = Opening::of(1).waitlist(5).window(now, now.plus(wait));
    let stall = opening.open(harness).await;
    let granted = stall.keyed(1, 1, "k");
    stall.admit(&granted).await;
    let waited = stall.waiting(2, 1).await;
    harness.elapse(wait).await;
    answers_what_was_decided(&stall, &granted, &waited).await;
    assert_eq!(stall.buy(3, 1).await.1, Admission::Closed);
}

async fn answers_what_was_decided(
    stall: &super::stall::Stall,
    granted: &Attempt,
    waited: &Attempt,
) {
    let order = granted.order;
    assert_eq!(stall.admit(granted).await, Admission::Granted { order });
    let replayed = Admission::Replayed {
        order,
        first: PlaceAtFirst::Granted,
    };
    let again = stall.keyed(granted.buyer.get(), granted.quantity, "k");
    assert_eq!(stall.admit(&again).await, replayed);
    let orders = vec![order];
    let held = Admission::AlreadyHeld { orders };
    assert_eq!(stall.buy(granted.buyer.get(), 1).await.1, held);
    let order = waited.order;
    let position = 1;
    let waits = waitlisted(order, position);
    assert_eq!(stall.admit(waited).await, waits);
    let waits = Admission::AlreadyWaiting { order, position };
    assert_eq!(stall.buy(waited.buyer.get(), 1).await.1, waits);
}

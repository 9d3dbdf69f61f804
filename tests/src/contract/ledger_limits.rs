//! `AdmissionLedger::apply`: the limit per buyer and the keys of buyers, by row constraints.

use seckill_domain::{BuyerId, OrderId, PlaceAtFirst, RejectReason};

use super::desk::{Desk, claim, keyed};
use super::ledger_grants::{CONFIRMED, LIMIT, NO_STOCK, assert_rejected, granted};
use super::{LedgerHarness, promises};

promises! { ledger_limits over dyn LedgerHarness:
    a_second_unit_beyond_the_limit_is_rejected,
    quantities_count_against_the_limit,
    a_limit_is_of_one_buyer_and_one_voucher,
    a_buyer_who_gave_his_units_back_may_have_others,
    a_rejected_order_takes_nothing_of_the_limit,
    a_key_buys_once_though_the_gate_forgot_it,
}

/// I3: the limit holds even if Redis is empty or wrong.
///
/// Stands for: counted and then inserted, without a row that forbids it: a buyer has two orders
/// (B14, B15, 1.13, 2.21).
async fn a_second_unit_beyond_the_limit_is_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 1).await;
    desk.granted(&voucher, 42, 1).await;
    let second = claim(&voucher, 42, 1);
    assert_eq!(desk.apply_one(granted(&second)).await, LIMIT);
    assert_rejected(&desk, &second, RejectReason::LimitReached).await;
    assert_eq!(desk.stock(&voucher).await, 9);
}

async fn quantities_count_against_the_limit(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let quantities = [2, 4, 3, 1, 6];
    let claims = quantities.map(|quantity| claim(&voucher, 42, quantity));
    let verdicts = desk.apply(claims.iter().map(granted).collect()).await;
    assert_eq!(verdicts, [CONFIRMED, LIMIT, CONFIRMED, LIMIT, LIMIT]);
    assert_eq!(desk.stock(&voucher).await, 15);
}

async fn a_limit_is_of_one_buyer_and_one_voucher(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [first, second] = [desk.voucher(5, 1).await, desk.voucher(5, 1).await];
    desk.granted(&first, 1, 1).await;
    desk.granted(&first, 2, 1).await;
    desk.granted(&second, 1, 1).await;
}

/// Hole 12: the duplicate check counts cancelled orders.
async fn a_buyer_who_gave_his_units_back_may_have_others(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 2).await;
    for _ in 0..3 {
        let claim = desk.granted(&voucher, 42, 2).await;
        desk.cancel(&claim).await;
    }
    desk.granted(&voucher, 42, 2).await;
    assert_eq!(desk.stock(&voucher).await, 3);
}

async fn a_rejected_order_takes_nothing_of_the_limit(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(2, 3).await;
    let rejected = claim(&voucher, 42, 3);
    assert_eq!(desk.apply_one(granted(&rejected)).await, NO_STOCK);
    desk.granted(&voucher, 42, 2).await;
}

/// I9: the gate lost its keys, and granted a repeated request again.
async fn a_key_buys_once_though_the_gate_forgot_it(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 5).await;
    let [first, again, other] =
        [(1, "k"), (1, "k"), (2, "k")].map(|(buyer, key)| keyed(&voucher, buyer, 1, key));
    let verdicts = desk.apply([&first, &other].map(granted).to_vec()).await;
    assert_eq!(verdicts, [CONFIRMED, CONFIRMED], "a key is its buyer's own");
    assert_eq!(desk.apply_one(granted(&again)).await, LIMIT);
    assert_rejected(&desk, &again, RejectReason::LimitReached).await;
    assert_eq!(desk.stock(&voucher).await, 8);
    desk.cancel(&first).await;
    let later = keyed(&voucher, 1, 1, "k");
    assert_eq!(
        desk.apply_one(granted(&later)).await,
        LIMIT,
        "it survives cancellation"
    );
    let snapshot = desk.snapshot(voucher.id).await;
    let keys = snapshot.chunks.iter().flat_map(|chunk| &chunk.keys);
    let of_first: Vec<(OrderId, PlaceAtFirst)> = keys
        .filter(|used| used.buyer == BuyerId::new(1))
        .map(|used| (used.first.order, used.first.first))
        .collect();
    assert_eq!(of_first, [(first.order, PlaceAtFirst::Granted)]);
}

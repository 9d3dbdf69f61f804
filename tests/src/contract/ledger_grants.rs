//! `AdmissionLedger::apply`: grants become orders, once, within stock and limit.

use seckill_application::ports::Verdict;
use seckill_domain::{
    BuyerId, Claim, Decision, Money, OrderId, OrderStatus, RejectReason, SaleStatus, Stage,
    Timestamp, Voucher, VoucherTerms,
};

use super::desk::{Desk, PAYMENT_WINDOW, PRICE_MINOR, claim, keyed, terms};
use super::{LedgerHarness, promises};

promises! { ledger_grants over dyn LedgerHarness:
    a_grant_becomes_an_order_that_waits_for_payment,
    a_grant_takes_its_units_out_of_the_stock,
    a_grant_raises_no_version,
    the_same_grant_under_another_number_is_already_there,
    the_same_grant_twice_in_a_batch_is_already_there,
    a_grant_is_already_there_whatever_became_of_its_order,
    more_grants_than_stock_are_rejected_with_a_reason,
    a_rejected_grant_spoils_nobody_elses,
    a_rejected_grant_stays_rejected,
    a_grant_stands_whatever_the_window_and_status,
    a_lost_grant_is_an_order_that_says_so,
    losing_a_grant_that_the_ledger_has_changes_nothing,
    vouchers_of_a_partition_share_a_batch,
    two_hundred_grants_are_one_batch,
    a_batch_is_as_large_as_promised,
    ids_and_keys_keep_all_their_digits,
}

pub(super) const CONFIRMED: Verdict = Verdict::Confirmed;
const THERE: Verdict = Verdict::AlreadyThere;
pub(super) const NO_STOCK: Verdict = Verdict::Rejected(RejectReason::NoStock);
pub(super) const LIMIT: Verdict = Verdict::Rejected(RejectReason::LimitReached);

pub(super) fn granted(claim: &Claim) -> Decision {
    Decision::Granted(claim.clone())
}

pub(super) async fn assert_rejected(desk: &Desk<'_>, claim: &Claim, reason: RejectReason) {
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::Rejected { reason });
    assert_eq!(order.buyer, claim.buyer, "its buyer can read why");
    assert_eq!(order.quantity, claim.quantity);
}

/// Stands for: the time to pay runs while nobody can pay (2.26).
async fn a_grant_becomes_an_order_that_waits_for_payment(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 5).await;
    let claim = keyed(&voucher, 42, 3, "first-click");
    let before = desk.now().await;
    let batch = desk
        .batch(desk.partition_of(voucher.id), vec![granted(&claim)])
        .await;
    assert_eq!(desk.commit(&batch).await, [CONFIRMED]);
    let after = desk.now().await;
    let order = desk.order(claim.order).await;
    assert_eq!(
        (order.id, order.voucher, order.buyer),
        (claim.order, voucher.id, claim.buyer)
    );
    let amount = Money {
        minor: 3 * PRICE_MINOR,
        currency: "CNY".parse().unwrap(),
    };
    assert_eq!((order.quantity, order.amount), (3, amount));
    assert_eq!(order.key, claim.key);
    assert_eq!(order.stage, Stage::PendingPayment);
    assert_eq!(order.ticket, None);
    assert_eq!(
        order.created_at,
        batch.up_to.written_at(),
        "when the gate decided it"
    );
    let expires_at = order.expires_at.expect("a payment window");
    let window = before.plus(PAYMENT_WINDOW)..=after.plus(PAYMENT_WINDOW);
    assert!(window.contains(&expires_at), "{expires_at:?} in {window:?}");
}

async fn a_grant_takes_its_units_out_of_the_stock(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 5).await;
    let claim = desk.granted(&voucher, 1, 3).await;
    let tally = desk.tally(voucher.id).await;
    assert_eq!(
        (tally.total, tally.stock, tally.awaiting_payment),
        (10, 7, 3)
    );
    desk.pay(&claim).await;
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.awaiting_payment, tally.paid), (7, 0, 3));
}

/// The gate took the units first: there is nothing for it to follow.
async fn a_grant_raises_no_version(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 1).await;
    desk.granted(&voucher, 1, 1).await;
    assert_eq!(desk.tally(voucher.id).await.version, voucher.version);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 100)
        .await
        .unwrap();
    assert_eq!(updates, []);
}

async fn the_same_grant_under_another_number_is_already_there(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 5).await;
    let claim = desk.granted(&voucher, 1, 2).await;
    let before = desk.order(claim.order).await;
    assert_eq!(desk.apply_one(granted(&claim)).await, THERE);
    assert_eq!(
        desk.order(claim.order).await,
        before,
        "nothing moves its window"
    );
    assert_eq!(desk.stock(&voucher).await, 8);
}

async fn the_same_grant_twice_in_a_batch_is_already_there(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 5).await;
    let twice = claim(&voucher, 1, 2);
    let other = claim(&voucher, 2, 1);
    let decisions = vec![granted(&twice), granted(&other), granted(&twice)];
    assert_eq!(desk.apply(decisions).await, [CONFIRMED, CONFIRMED, THERE]);
    assert_eq!(desk.stock(&voucher).await, 7);
}

async fn a_grant_is_already_there_whatever_became_of_its_order(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(10, 1).await;
    let payment = || "p".parse().unwrap();
    let stages = [
        Stage::Paid { payment: payment() },
        Stage::Cancelled,
        Stage::Expired,
        Stage::Refunded { payment: payment() },
    ];
    for (buyer, stage) in (1..).zip(stages) {
        let claim = desk.granted(&voucher, buyer, 1).await;
        desk.turn(&claim, stage.clone()).await;
        assert_eq!(desk.apply_one(granted(&claim)).await, THERE);
        assert_eq!(desk.order(claim.order).await.stage, stage);
    }
    assert_eq!(desk.stock(&voucher).await, 9, "only the paid one is live");
}

/// Oversell is impossible even if the gate lies.
async fn more_grants_than_stock_are_rejected_with_a_reason(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(2, 1).await;
    let claims: Vec<Claim> = (1..=4).map(|buyer| claim(&voucher, buyer, 1)).collect();
    let verdicts = desk.apply(claims.iter().map(granted).collect()).await;
    assert_eq!(verdicts, [CONFIRMED, CONFIRMED, NO_STOCK, NO_STOCK]);
    for rejected in &claims[2..] {
        assert_rejected(&desk, rejected, RejectReason::NoStock).await;
    }
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.awaiting_payment), (0, 2));
}

/// Stands for: one order that fails marks the whole voucher as failed (B7).
async fn a_rejected_grant_spoils_nobody_elses(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(3, 2).await;
    let claims = [(1, 2), (1, 2), (2, 2), (3, 1)].map(|(buyer, n)| claim(&voucher, buyer, n));
    let verdicts = desk.apply(claims.iter().map(granted).collect()).await;
    assert_eq!(verdicts, [CONFIRMED, LIMIT, NO_STOCK, CONFIRMED]);
    assert_eq!(desk.status(&claims[3]).await, OrderStatus::PendingPayment);
    assert_eq!(desk.stock(&voucher).await, 0);
}

/// Appended again after a rebuild of the gate, a rejected grant must not win: its buyer was told.
async fn a_rejected_grant_stays_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    let winner = desk.granted(&voucher, 1, 1).await;
    let rejected = claim(&voucher, 2, 1);
    assert_eq!(desk.apply_one(granted(&rejected)).await, NO_STOCK);
    desk.cancel(&winner).await;
    // The gate still holds units for it, so it has to be loaded again.
    assert_eq!(desk.apply_one(granted(&rejected)).await, NO_STOCK);
    assert_rejected(&desk, &rejected, RejectReason::NoStock).await;
    assert_eq!(desk.stock(&voucher).await, 1);
}

async fn a_grant_stands_whatever_the_window_and_status(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut over: VoucherTerms = terms(1);
    over.window.closes_at = Timestamp::from_millis(1_700_000_000_999);
    let over = desk.on_sale(5, over).await;
    desk.granted(&over, 1, 1).await;
    for (buyer, status) in [(2, SaleStatus::Paused), (3, SaleStatus::Closed)] {
        desk.set_status(over.id, status, false).await;
        desk.granted(&over, buyer, 1).await;
    }
}

async fn a_lost_grant_is_an_order_that_says_so(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    let lost = keyed(&voucher, 1, 1, "k");
    assert_eq!(
        desk.apply_one(Decision::Lost(lost.clone())).await,
        CONFIRMED
    );
    assert_rejected(&desk, &lost, RejectReason::Lost).await;
    assert_eq!(desk.stock(&voucher).await, 1);
    assert_eq!(desk.apply_one(Decision::Lost(lost)).await, THERE);
}

async fn losing_a_grant_that_the_ledger_has_changes_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    let claim = desk.granted(&voucher, 1, 1).await;
    assert_eq!(desk.apply_one(Decision::Lost(claim.clone())).await, THERE);
    assert_eq!(desk.status(&claim).await, OrderStatus::PendingPayment);
    assert_eq!(desk.stock(&voucher).await, 0);
}

async fn vouchers_of_a_partition_share_a_batch(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut vouchers: Vec<Voucher> = Vec::new();
    for _ in 0..6 {
        vouchers.push(desk.voucher(1, 1).await);
    }
    let partition = desk.partition_of(vouchers[0].id);
    let shared = vouchers
        .iter()
        .filter(|voucher| desk.partition_of(voucher.id) == partition);
    let shared: Vec<&Voucher> = shared.collect();
    assert!(shared.len() >= 2);
    let decisions = [1, 2].iter().flat_map(|buyer| {
        shared
            .iter()
            .map(|voucher| granted(&claim(voucher, *buyer, 1)))
    });
    let verdicts = desk.apply(decisions.collect()).await;
    let (first, second) = verdicts.split_at(shared.len());
    assert!(
        first.iter().all(|verdict| *verdict == CONFIRMED),
        "{verdicts:?}"
    );
    assert!(
        second.iter().all(|verdict| *verdict == NO_STOCK),
        "{verdicts:?}"
    );
    for voucher in shared {
        assert_eq!(desk.stock(voucher).await, 0);
    }
}

async fn two_hundred_grants_are_one_batch(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(200, 1).await;
    let claims: Vec<Claim> = (1..=200).map(|buyer| claim(&voucher, buyer, 1)).collect();
    let verdicts = desk.apply(claims.iter().map(granted).collect()).await;
    assert_eq!(verdicts, vec![CONFIRMED; 200]);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.awaiting_payment), (0, 200));
    for claim in [&claims[0], &claims[99], &claims[199]] {
        assert_eq!(desk.order(claim.order).await.buyer, claim.buyer);
    }
}

async fn a_batch_is_as_large_as_promised(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1_000, 1).await;
    let claims = (1..=1_024).map(|buyer| granted(&claim(&voucher, buyer, 1)));
    let verdicts = desk.apply(claims.collect()).await;
    let confirmed = verdicts.iter().filter(|verdict| **verdict == CONFIRMED);
    assert_eq!(confirmed.count(), 1_000);
    assert!(verdicts[1_000..].iter().all(|verdict| *verdict == NO_STOCK));
    assert_eq!(desk.stock(&voucher).await, 0);
}

/// Hole 15, and collations that take two keys for one.
async fn ids_and_keys_keep_all_their_digits(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(50, 20).await;
    let keys = [
        "k",
        "K",
        "k'",
        "k\"",
        "k\\",
        "k%",
        "k_",
        "{\"k\":1}",
        "~",
        "0",
    ];
    let mut claims: Vec<Claim> = keys
        .iter()
        .map(|key| keyed(&voucher, u64::MAX, 1, key))
        .collect();
    for (number, claim) in (0..).zip(&mut claims) {
        claim.order = OrderId::new(u64::MAX - number);
    }
    claims.push(claim(&voucher, u64::MAX - 1, 1));
    let verdicts = desk.apply(claims.iter().map(granted).collect()).await;
    assert_eq!(verdicts, vec![CONFIRMED; claims.len()]);
    for claim in &claims {
        let order = desk.order(claim.order).await;
        assert_eq!(
            (order.id, order.buyer, &order.key),
            (claim.order, claim.buyer, &claim.key)
        );
    }
    let page = desk
        .ports
        .ledger
        .orders_of(BuyerId::new(u64::MAX), None, 100)
        .await
        .unwrap();
    assert_eq!(page.items.len(), keys.len());
}

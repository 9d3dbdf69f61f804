//! `UnitOfWork`: orders move once, from a stage they are in, and units come back with them.

use std::time::Duration;

use seckill_application::ports::{Release, UnitOfWork, Verdict};
use seckill_domain::{
    BuyerId, Claim, Decision, GateChange, GateUpdate, Order, OrderStatus, PaymentId, RejectReason,
    Stage,
};

use super::desk::{Desk, claim, release};
use super::{LedgerHarness, promises};

promises! { ledger_orders over dyn LedgerHarness:
    time_is_the_ledgers_own,
    what_is_not_committed_never_was,
    what_is_not_committed_is_seen_by_nobody_else,
    an_order_is_saved_only_from_the_stage_it_is_in,
    a_payment_is_kept_with_its_order,
    of_two_who_cancel_at_once_one_does,
    what_is_locked_is_read_as_it_is_by_now,
    one_order_of_a_buyer_ends_and_his_others_stay,
    a_payment_and_an_expiry_at_once_are_one_of_them,
    released_units_are_stock_and_the_gate_is_told,
    units_of_many_orders_come_back_in_one_update,
    several_orders_of_one_buyer_come_back_together,
    more_units_than_a_buyer_holds_do_not_come_back,
    more_units_than_there_are_do_not_come_back,
    an_unknown_order_cannot_be_locked,
}

async fn locked(unit: &mut dyn UnitOfWork, claim: &Claim) -> Order {
    let order = unit.lock_order(claim.order).await.unwrap();
    order.expect("an order")
}

fn staged(order: Order, stage: Stage) -> Order {
    Order { stage, ..order }
}

async fn time_is_the_ledgers_own(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut unit = desk.begin().await;
    let before = unit.now().await.unwrap();
    assert!(
        before.as_millis() > 1_700_000_000_000,
        "after 2023, in UTC: {before:?}"
    );
    harness.elapse(Duration::from_millis(100)).await;
    let passed = before.until(unit.now().await.unwrap());
    assert!(
        passed >= Duration::from_millis(90),
        "{passed:?} went by, also within a transaction"
    );
}

/// Stands for: Redis is changed inside a transaction that is rolled back (B10).
async fn what_is_not_committed_never_was(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let claim = desk.granted(&voucher, 1, 2).await;
    let before = (desk.order(claim.order).await, desk.tally(voucher.id).await);
    let mut unit = desk.begin().await;
    let order = locked(&mut *unit, &claim).await;
    let cancelled = staged(order, Stage::Cancelled);
    assert_eq!(
        unit.save_orders(OrderStatus::PendingPayment, &[cancelled])
            .await
            .unwrap(),
        1
    );
    unit.release(voucher.id, &[release(&claim)]).await.unwrap();
    unit.push_update(voucher.id, &[]).await.unwrap();
    drop(unit);
    let after = (desk.order(claim.order).await, desk.tally(voucher.id).await);
    assert_eq!(after, before);
    assert_eq!(
        desk.ports
            .updates
            .after(voucher.id, voucher.version, 10)
            .await
            .unwrap(),
        []
    );
    // And it stands in nobody's way.
    desk.cancel(&claim).await;
    desk.granted(&voucher, 1, 5).await;
}

async fn what_is_not_committed_is_seen_by_nobody_else(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let other = harness.another_process().await;
    let voucher = desk.voucher(5, 5).await;
    let claim = desk.granted(&voucher, 1, 2).await;
    let mut unit = desk.begin().await;
    let order = locked(&mut *unit, &claim).await;
    let cancelled = staged(order, Stage::Cancelled);
    unit.save_orders(OrderStatus::PendingPayment, &[cancelled])
        .await
        .unwrap();
    unit.release(voucher.id, &[release(&claim)]).await.unwrap();
    let own = locked(&mut *unit, &claim).await;
    assert_eq!(own.stage, Stage::Cancelled, "its own changes it sees");
    let seen = other.ledger.order(claim.order).await.unwrap().unwrap();
    assert_eq!(seen.stage, Stage::PendingPayment);
    assert_eq!(
        other
            .updates
            .after(voucher.id, voucher.version, 10)
            .await
            .unwrap(),
        []
    );
    assert_eq!(desk.stock(&voucher).await, 3);
    unit.commit().await.unwrap();
    let seen = other.ledger.order(claim.order).await.unwrap().unwrap();
    assert_eq!(seen.stage, Stage::Cancelled);
    assert_eq!(desk.stock(&voucher).await, 5);
}

/// Hole 10 and bug report B43: a status is read, and then written whatever it is.
async fn an_order_is_saved_only_from_the_stage_it_is_in(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claims = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 2, 1).await,
    ];
    desk.pay(&claims[0]).await;
    let mut unit = desk.begin().await;
    let mut orders = Vec::new();
    for claim in &claims {
        orders.push(staged(locked(&mut *unit, claim).await, Stage::Expired));
    }
    let saved = unit
        .save_orders(OrderStatus::PendingPayment, &orders)
        .await
        .unwrap();
    assert_eq!(saved, 1, "one of them is paid");
    unit.commit().await.unwrap();
    assert_eq!(desk.status(&claims[0]).await, OrderStatus::Paid);
    assert_eq!(desk.status(&claims[1]).await, OrderStatus::Expired);
    let mut unit = desk.begin().await;
    let again = unit
        .save_orders(OrderStatus::PendingPayment, &orders)
        .await
        .unwrap();
    assert_eq!(again, 0, "already in that stage is not a change");
    assert_eq!(
        unit.save_orders(OrderStatus::PendingPayment, &[])
            .await
            .unwrap(),
        0
    );
}

async fn a_payment_is_kept_with_its_order(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.granted(&voucher, 1, 1).await;
    let before = desk.order(claim.order).await;
    let payment: PaymentId = "Pay:'1'\\~".parse().unwrap();
    let paid = Stage::Paid {
        payment: payment.clone(),
    };
    desk.turn(&claim, paid.clone()).await;
    assert_eq!(desk.order(claim.order).await, staged(before.clone(), paid));
    let refunded = Stage::Refunded { payment };
    desk.turn(&claim, refunded.clone()).await;
    assert_eq!(desk.order(claim.order).await, staged(before, refunded));
    assert_eq!(desk.stock(&voucher).await, 5);
}

/// Moves an order as a use case does: look under the lock, then write. `false` if it was settled.
async fn try_to_settle(desk: &Desk<'_>, claim: &Claim, stage: Stage) -> bool {
    let mut unit = desk.begin().await;
    let order = locked(&mut *unit, claim).await;
    if order.stage != Stage::PendingPayment {
        return false;
    }
    let order = staged(order, stage);
    let frees = !order.status().is_live();
    let saved = unit
        .save_orders(OrderStatus::PendingPayment, &[order])
        .await
        .unwrap();
    assert_eq!(saved, 1, "it was locked");
    if frees {
        unit.release(claim.voucher, &[release(claim)])
            .await
            .unwrap();
    }
    unit.commit().await.unwrap();
    true
}

/// Hole 10: two cancels return the unit twice.
async fn of_two_who_cancel_at_once_one_does(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    for buyer in 1..=5 {
        let claim = desk.granted(&voucher, buyer, 1).await;
        let done = futures::join!(
            try_to_settle(&desk, &claim, Stage::Cancelled),
            try_to_settle(&desk, &claim, Stage::Cancelled),
            try_to_settle(&desk, &claim, Stage::Expired),
        );
        let times = [done.0, done.1, done.2]
            .iter()
            .filter(|done| **done)
            .count();
        assert_eq!(times, 1);
        assert_eq!(desk.stock(&voucher).await, 9);
    }
}

/// Bug report B46: a transaction that was begun earlier judges an order by what it was then.
async fn what_is_locked_is_read_as_it_is_by_now(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let [own, other] = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 2, 1).await,
    ];
    let mut early = desk.begin().await;
    locked(&mut *early, &own).await;
    desk.cancel(&other).await;
    let seen = locked(&mut *early, &other).await;
    assert_eq!(seen.status(), OrderStatus::Cancelled);
    let saved = early
        .save_orders(OrderStatus::PendingPayment, &[staged(seen, Stage::Expired)])
        .await;
    assert_eq!(saved.unwrap(), 0);
    drop(early);
    assert_eq!(desk.stock(&voucher).await, 8, "it came back once");
}

/// Bug report B9: a cancellation names buyer and voucher, and ends whatever he has there.
async fn one_order_of_a_buyer_ends_and_his_others_stay(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let [ends, stays, paid] = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 1, 2).await,
        desk.granted(&voucher, 1, 2).await,
    ];
    desk.pay(&paid).await;
    desk.cancel(&ends).await;
    assert_eq!(desk.status(&ends).await, OrderStatus::Cancelled);
    assert_eq!(desk.status(&stays).await, OrderStatus::PendingPayment);
    assert_eq!(desk.status(&paid).await, OrderStatus::Paid);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.awaiting_payment, tally.paid), (5, 2, 2));
    // Of his limit one unit is free again, and no more.
    let too_many = claim(&voucher, 1, 2);
    let verdict = desk.apply_one(Decision::Granted(too_many)).await;
    assert_eq!(verdict, Verdict::Rejected(RejectReason::LimitReached));
    desk.granted(&voucher, 1, 1).await;
}

/// Fault F23.
///
/// Stands for: expiry overwrites a payment that came in between (hole 10, B22, 2.22).
async fn a_payment_and_an_expiry_at_once_are_one_of_them(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    for buyer in 1..=5 {
        let claim = desk.granted(&voucher, buyer, 1).await;
        let payment = "p".parse().unwrap();
        let (paid, expired) = futures::join!(
            try_to_settle(&desk, &claim, Stage::Paid { payment }),
            try_to_settle(&desk, &claim, Stage::Expired),
        );
        assert_ne!(paid, expired);
        let status = desk.status(&claim).await;
        assert_eq!(status == OrderStatus::Paid, paid);
        let tally = desk.tally(voucher.id).await;
        assert_eq!(tally.stock + tally.paid, 9);
    }
}

fn changes(claims: &[&Claim]) -> Vec<GateChange> {
    let changes = claims.iter().map(|claim| GateChange::Release {
        order: claim.order,
        buyer: claim.buyer,
        quantity: claim.quantity,
    });
    changes.collect()
}

async fn released_units_are_stock_and_the_gate_is_told(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let claim = desk.granted(&voucher, 1, 2).await;
    let version = desk.cancel(&claim).await;
    assert_eq!(version, voucher.version.next());
    let tally = desk.tally(voucher.id).await;
    assert_eq!(
        (tally.stock, tally.awaiting_payment, tally.version),
        (5, 0, version)
    );
    let update = GateUpdate {
        voucher: voucher.id,
        version,
        changes: changes(&[&claim]),
    };
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    assert_eq!(updates, [update]);
}

async fn units_of_many_orders_come_back_in_one_update(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(200, 2).await;
    let claims: Vec<Claim> = (1..=100).map(|buyer| claim(&voucher, buyer, 2)).collect();
    let grants = claims
        .iter()
        .cloned()
        .map(seckill_domain::Decision::Granted);
    desk.apply(grants.collect()).await;
    let mut unit = desk.begin().await;
    let mut orders = Vec::new();
    for claim in &claims {
        orders.push(staged(locked(&mut *unit, claim).await, Stage::Expired));
    }
    let saved = unit
        .save_orders(OrderStatus::PendingPayment, &orders)
        .await
        .unwrap();
    assert_eq!(saved, 100);
    let releases: Vec<Release> = claims.iter().map(release).collect();
    let version = unit.release(voucher.id, &releases).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(version, voucher.version.next());
    assert_eq!(desk.stock(&voucher).await, 200);
    let updates = desk
        .ports
        .updates
        .after(voucher.id, voucher.version, 10)
        .await
        .unwrap();
    let expected: Vec<&Claim> = claims.iter().collect();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].changes, changes(&expected));
}

async fn several_orders_of_one_buyer_come_back_together(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let claims = [
        desk.granted(&voucher, 1, 2).await,
        desk.granted(&voucher, 1, 3).await,
    ];
    let mut unit = desk.begin().await;
    for claim in &claims {
        let order = staged(locked(&mut *unit, claim).await, Stage::Cancelled);
        unit.save_orders(OrderStatus::PendingPayment, &[order])
            .await
            .unwrap();
    }
    unit.release(voucher.id, &claims.each_ref().map(release))
        .await
        .unwrap();
    unit.commit().await.unwrap();
    assert_eq!(desk.stock(&voucher).await, 9);
    desk.granted(&voucher, 1, 5).await;
}

/// The row constraint: a unit comes back once, even if everything above is wrong.
async fn more_units_than_a_buyer_holds_do_not_come_back(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let held = desk.granted(&voucher, 1, 2).await;
    desk.granted(&voucher, 2, 5).await;
    let too_many = Release {
        quantity: 3,
        ..release(&held)
    };
    let stranger = Release {
        buyer: BuyerId::new(77),
        ..release(&held)
    };
    for wrong in [too_many, stranger] {
        let mut unit = desk.begin().await;
        assert!(
            unit.release(voucher.id, &[wrong]).await.is_err(),
            "{wrong:?}"
        );
        drop(unit);
        assert_eq!(desk.stock(&voucher).await, 2);
    }
}

async fn more_units_than_there_are_do_not_come_back(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [one, other] = [desk.voucher(3, 5).await, desk.voucher(3, 5).await];
    let held = desk.granted(&other, 1, 2).await;
    let mut unit = desk.begin().await;
    assert!(unit.release(one.id, &[release(&held)]).await.is_err());
    drop(unit);
    assert_eq!(desk.stock(&one).await, 3);
}

async fn an_unknown_order_cannot_be_locked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut unit = desk.begin().await;
    let unknown = super::stall::new_order();
    assert_eq!(unit.lock_order(unknown).await.unwrap(), None);
    assert_eq!(
        unit.lock_voucher(seckill_domain::VoucherId::new(999))
            .await
            .unwrap(),
        None
    );
}

//! `Ledger`, `UnitOfWork` and `AdmissionLedger`: what the later life of orders and vouchers needs.

use futures::join;
use seckill_application::ports::{Applied, Verdict, VoucherFilter};
use seckill_domain::{
    Claim, Decision, GateVersion, LeftReason, Order, OrderId, OrderStatus, SaleStatus, Stage,
    Timestamp, Voucher, VoucherId, VoucherTerms,
};

use super::desk::{Desk, SHORT_WINDOW, batch_from, claim, joining, terms};
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { ledger_life over dyn LedgerHarness:
    orders_are_locked_by_rising_id_and_unknown_ones_passed_over,
    locked_orders_are_passed_over_by_the_sweep,
    whoever_locks_orders_waits_for_whoever_has_one,
    a_thousand_orders_can_be_locked,
    what_is_confirmed_says_when_it_has_to_be_paid,
    only_what_is_confirmed_now_has_to_be_paid,
    a_retired_voucher_says_so_and_stays_as_it_was,
    a_voucher_that_is_not_closed_cannot_be_retired,
    a_retired_voucher_stays_retired_when_it_is_saved,
    closed_vouchers_are_listed_until_they_are_retired,
    whoever_waits_is_unsettled,
    whoever_has_not_paid_is_unsettled,
    what_is_parked_is_unsettled,
    what_the_gate_has_to_follow_is_unsettled,
    what_is_paid_or_over_is_settled,
}

async fn orders_are_locked_by_rising_id_and_unknown_ones_passed_over(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 9).await;
    let mut ids = Vec::new();
    for buyer in 1..=5 {
        ids.push(desk.granted(&voucher, buyer, 1).await.order);
    }
    ids.swap(0, 3);
    let mut asked = ids.clone();
    asked.insert(2, new_order());
    let mut unit = desk.begin().await;
    let orders = unit.lock_orders(&asked).await.unwrap();
    let found: Vec<OrderId> = orders.iter().map(|order| order.id).collect();
    ids.sort();
    assert_eq!(found, ids);
    assert_eq!(orders[0], desk.order(ids[0]).await);
    assert_eq!(unit.lock_orders(&[]).await.unwrap(), []);
    assert_eq!(unit.lock_orders(&[new_order()]).await.unwrap(), []);
}

/// A voucher whose orders are overdue soon.
async fn hasty(desk: &Desk<'_>) -> Voucher {
    let payment_window = SHORT_WINDOW;
    let terms = VoucherTerms {
        payment_window,
        ..terms(1)
    };
    desk.on_sale(9, terms).await
}

async fn locked_orders_are_passed_over_by_the_sweep(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = hasty(&desk).await;
    let [mine, other] = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 2, 1).await,
    ];
    harness.elapse(SHORT_WINDOW + SHORT_WINDOW / 2).await;
    let mut unit = desk.begin().await;
    assert_eq!(unit.lock_orders(&[mine.order]).await.unwrap().len(), 1);
    let mut sweep = desk.begin().await;
    let overdue = sweep.lock_overdue_orders(10).await.unwrap();
    let overdue: Vec<OrderId> = overdue.iter().map(|order| order.id).collect();
    assert_eq!(overdue, [other.order]);
}

async fn whoever_locks_orders_waits_for_whoever_has_one(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let [one, two] = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 2, 1).await,
    ];
    let mut first = desk.begin().await;
    let order = first.lock_order(two.order).await.unwrap().unwrap();
    let cancelled = Order {
        stage: Stage::Cancelled,
        ..order
    };
    let cancel = async {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let from = OrderStatus::PendingPayment;
        assert_eq!(first.save_orders(from, &[cancelled]).await.unwrap(), 1);
        first.commit().await.unwrap();
    };
    let ids = [one.order, two.order];
    let lock = async {
        let mut second = desk.begin().await;
        second.lock_orders(&ids).await.unwrap()
    };
    let (orders, ()) = join!(lock, cancel);
    let stages: Vec<OrderStatus> = orders.iter().map(Order::status).collect();
    assert_eq!(orders.len(), 2);
    assert!(stages.contains(&OrderStatus::Cancelled), "as committed");
}

async fn a_thousand_orders_can_be_locked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1_000, 1).await;
    let claims: Vec<Claim> = (1..=1_000).map(|buyer| claim(&voucher, buyer, 1)).collect();
    for chunk in claims.chunks(500) {
        desk.apply(chunk.iter().cloned().map(Decision::Granted).collect())
            .await;
    }
    let ids: Vec<OrderId> = claims.iter().map(|claim| claim.order).collect();
    let mut unit = desk.begin().await;
    let orders = unit.lock_orders(&ids).await.unwrap();
    assert_eq!(orders.len(), 1_000);
    assert!(orders.is_sorted_by(|a, b| a.id < b.id));
}

/// When the orders of a batch have to be paid, by order.
async fn due(desk: &Desk<'_>, decisions: Vec<Decision>) -> Vec<(OrderId, Timestamp)> {
    let partition = desk.partition_of(decisions[0].voucher());
    let head = desk.ports.admissions.head(partition).await.unwrap();
    let batch = batch_from(head, partition, decisions, desk.now().await);
    let applied = desk.ports.admissions.apply(&batch).await.unwrap();
    let Applied::Committed { mut due, .. } = applied else {
        panic!("not applied: {applied:?}");
    };
    due.sort();
    due
}

async fn stored_ends(desk: &Desk<'_>, claims: &[&Claim]) -> Vec<(OrderId, Timestamp)> {
    let mut ends = Vec::new();
    for claim in claims {
        let order = desk.order(claim.order).await;
        ends.push((order.id, order.expires_at.expect("has to be paid")));
    }
    ends.sort();
    ends
}

async fn what_is_confirmed_says_when_it_has_to_be_paid(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let [one, two, three] = [1, 2, 3].map(|buyer| claim(&voucher, buyer, 1));
    let decisions = vec![
        joining(&three, 1),
        Decision::Granted(one.clone()),
        Decision::Granted(two.clone()),
        Decision::Promoted(three.clone()),
    ];
    let told = due(&desk, decisions).await;
    assert_eq!(told, stored_ends(&desk, &[&one, &two, &three]).await);
}

async fn only_what_is_confirmed_now_has_to_be_paid(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(2, 1).await;
    let [first, second, surplus] = [1, 2, 3].map(|buyer| claim(&voucher, buyer, 1));
    let [joined, left] = [4, 5].map(|buyer| claim(&voucher, buyer, 1));
    let granted = |claim: &Claim| Decision::Granted(claim.clone());
    assert_eq!(due(&desk, vec![granted(&first)]).await.len(), 1);
    let decisions = vec![
        granted(&first),
        granted(&second),
        granted(&surplus),
        joining(&joined, 1),
        joining(&left, 2),
        Decision::Left {
            claim: left,
            reason: LeftReason::Withdrawn,
        },
    ];
    let told = due(&desk, decisions).await;
    assert_eq!(told, stored_ends(&desk, &[&second]).await);
}

async fn retire(desk: &Desk<'_>, id: VoucherId) {
    let mut unit = desk.begin().await;
    unit.mark_retired(id).await.unwrap();
    unit.commit().await.unwrap();
}

async fn a_retired_voucher_says_so_and_stays_as_it_was(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    assert!(!voucher.retired);
    let closed = desk.set_status(voucher.id, SaleStatus::Closed, false).await;
    let mut unit = desk.begin().await;
    unit.mark_retired(voucher.id).await.unwrap();
    drop(unit);
    assert_eq!(desk.stored(voucher.id).await, closed, "rolled back");
    for _ in 0..2 {
        retire(&desk, voucher.id).await;
        let expected = Voucher {
            retired: true,
            ..closed.clone()
        };
        assert_eq!(desk.stored(voucher.id).await, expected);
    }
    let start = GateVersion::default();
    let updates = desk.ports.updates.after(voucher.id, start, 10).await;
    assert_eq!(updates.unwrap(), []);
}

async fn a_voucher_that_is_not_closed_cannot_be_retired(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    for id in [voucher.id, VoucherId::new(voucher.id.get() + 1_000)] {
        let mut unit = desk.begin().await;
        let fault = unit.mark_retired(id).await.unwrap_err();
        assert!(!fault.is_retryable(), "{fault:?}");
    }
    assert!(!desk.stored(voucher.id).await.retired);
}

async fn a_retired_voucher_stays_retired_when_it_is_saved(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.set_status(voucher.id, SaleStatus::Closed, false).await;
    retire(&desk, voucher.id).await;
    let saved = desk.set_status(voucher.id, SaleStatus::Closed, true).await;
    assert!(saved.retired);
    assert!(desk.stored(voucher.id).await.retired);
}

async fn closed_vouchers_are_listed_until_they_are_retired(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    desk.draft(5, terms(1)).await;
    desk.voucher(5, 1).await;
    let mut closed = Vec::new();
    for _ in 0..4 {
        let voucher = desk.voucher(5, 1).await;
        desk.set_status(voucher.id, SaleStatus::Closed, true).await;
        closed.push(voucher.id);
    }
    retire(&desk, closed.remove(1)).await;
    closed.reverse();
    let list = async |filter, before, limit| {
        let page = desk.ports.ledger.vouchers(filter, before, limit).await;
        let page = page.unwrap();
        let ids: Vec<VoucherId> = page.items.iter().map(|it| it.id).collect();
        (ids, page.next)
    };
    let (ids, next) = list(VoucherFilter::Closing, None, 100).await;
    assert_eq!((ids, next), (closed.clone(), None));
    let (ids, next) = list(VoucherFilter::Closing, None, 2).await;
    assert_eq!((&ids[..], next), (&closed[..2], Some(closed[1].get())));
    let (ids, _) = list(VoucherFilter::Closing, Some(closed[1]), 2).await;
    assert_eq!(ids, closed[2..]);
    let (ids, _) = list(VoucherFilter::Public, None, 100).await;
    assert_eq!(ids.len(), 5, "buyers see retired vouchers too");
}

async fn is_unsettled(desk: &Desk<'_>, voucher: &Voucher) -> bool {
    let unsettled = desk.ports.ledger.is_unsettled(voucher.id).await;
    unsettled.unwrap()
}

async fn whoever_waits_is_unsettled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(5, 1).await, desk.voucher(5, 1).await];
    assert!(!is_unsettled(&desk, &voucher).await);
    let joined = desk.joined(&voucher, 1, 1).await;
    assert!(is_unsettled(&desk, &voucher).await);
    assert!(!is_unsettled(&desk, &other).await);
    let (claim, reason) = (joined, LeftReason::ClosedOut);
    desk.apply_one(Decision::Left { claim, reason }).await;
    assert!(!is_unsettled(&desk, &voucher).await);
}

async fn whoever_has_not_paid_is_unsettled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let granted = desk.granted(&voucher, 1, 1).await;
    assert!(is_unsettled(&desk, &voucher).await);
    desk.pay(&granted).await;
    assert!(!is_unsettled(&desk, &voucher).await);
}

async fn what_is_parked_is_unsettled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(5, 5).await, desk.voucher(5, 5).await];
    let granted = desk.granted(&voucher, 1, 1).await;
    let impostor = Claim {
        quantity: 2,
        ..granted.clone()
    };
    let verdict = desk.apply_one(Decision::Granted(impostor)).await;
    assert!(matches!(verdict, Verdict::Parked(_)));
    desk.pay(&granted).await;
    assert!(is_unsettled(&desk, &voucher).await);
    assert!(!is_unsettled(&desk, &other).await);
    let list = desk.ports.parked.list(true, None, 10).await.unwrap();
    desk.ports
        .parked
        .discard(list.items[0].id, "seen")
        .await
        .unwrap();
    let version = desk.stored(voucher.id).await.version;
    desk.ports
        .updates
        .forget(voucher.id, version)
        .await
        .unwrap();
    assert!(!is_unsettled(&desk, &voucher).await);
}

async fn what_the_gate_has_to_follow_is_unsettled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let granted = desk.granted(&voucher, 1, 1).await;
    let version = desk.cancel(&granted).await;
    assert!(is_unsettled(&desk, &voucher).await);
    desk.ports
        .updates
        .forget(voucher.id, version)
        .await
        .unwrap();
    assert!(!is_unsettled(&desk, &voucher).await);
}

async fn what_is_paid_or_over_is_settled(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let stages = [
        Stage::Cancelled,
        Stage::Expired,
        Stage::Refunded {
            payment: "pay-1".parse().expect("a payment id"),
        },
        Stage::Paid {
            payment: "pay-2".parse().expect("a payment id"),
        },
    ];
    for (buyer, stage) in (1..).zip(stages) {
        let granted = desk.granted(&voucher, buyer, 1).await;
        desk.turn(&granted, stage).await;
    }
    let lost = claim(&voucher, 9, 1);
    desk.apply_one(Decision::Lost(lost)).await;
    let version = desk.stored(voucher.id).await.version;
    desk.ports
        .updates
        .forget(voucher.id, version)
        .await
        .unwrap();
    assert!(!is_unsettled(&desk, &voucher).await);
}

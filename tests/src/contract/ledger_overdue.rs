//! `UnitOfWork::lock_overdue_orders`: a sweep finds what is due, and shares it with others.

use std::time::Duration;

use seckill_domain::{Order, OrderId, OrderStatus, VoucherTerms};

use super::desk::{Desk, SHORT_WINDOW, terms};
use super::{LedgerHarness, promises};

promises! { ledger_overdue over dyn LedgerHarness:
    overdue_orders_are_found_when_their_window_has_ended,
    overdue_orders_come_oldest_first_and_not_too_many,
    overdue_orders_that_somebody_handles_are_passed_over,
    orders_that_are_settled_are_not_overdue,
}

async fn overdue_orders_are_found_when_their_window_has_ended(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let patient = desk.voucher(5, 1).await;
    let voucher = desk.on_sale(5, impatient()).await;
    desk.granted(&patient, 1, 1).await;
    let claim = desk.granted(&voucher, 1, 1).await;
    let waiting = desk.joined(&voucher, 2, 2).await;
    let order = desk.order(claim.order).await;
    if !order.is_overdue(desk.now().await) {
        let found = overdue(&desk, 10).await;
        let late = desk.now().await;
        assert!(
            found.is_empty() || order.is_overdue(late),
            "{found:?} at {late:?}"
        );
    }
    harness
        .elapse(SHORT_WINDOW + Duration::from_millis(50))
        .await;
    assert_eq!(overdue(&desk, 10).await, [order]);
    assert_eq!(desk.status(&waiting).await, OrderStatus::Waiting);
}

async fn overdue_orders_come_oldest_first_and_not_too_many(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.on_sale(50, impatient()).await;
    let mut granted = Vec::new();
    for buyer in 1..=5 {
        granted.push(desk.granted(&voucher, buyer, 1).await.order);
        harness.elapse(Duration::from_millis(20)).await;
    }
    harness.elapse(SHORT_WINDOW).await;
    let found = overdue(&desk, 3).await;
    let ids: Vec<_> = found.iter().map(|order| order.id).collect();
    assert_eq!(ids, granted[..3]);
    assert_eq!(overdue_in_the_end(&desk, 5).await, granted);
}

async fn overdue_orders_that_somebody_handles_are_passed_over(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.on_sale(50, impatient()).await;
    let mut granted = Vec::new();
    for buyer in 1..=4 {
        granted.push(desk.granted(&voucher, buyer, 1).await.order);
        harness.elapse(Duration::from_millis(20)).await;
    }
    harness.elapse(SHORT_WINDOW).await;
    let mut first = desk.begin().await;
    let mut second = desk.begin().await;
    let ids = |orders: Vec<Order>| orders.iter().map(|order| order.id).collect::<Vec<_>>();
    let mine = ids(first.lock_overdue_orders(2).await.unwrap());
    assert_eq!(mine, granted[..2]);
    let others = ids(second.lock_overdue_orders(10).await.unwrap());
    assert_eq!(others, granted[2..]);
    drop(first);
    drop(second);
    let again = overdue_in_the_end(&desk, 4).await;
    assert_eq!(again, granted, "rolled back, they are free again");
}

async fn orders_that_are_settled_are_not_overdue(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.on_sale(50, impatient()).await;
    let [paid, cancelled] = [
        desk.granted(&voucher, 1, 1).await,
        desk.granted(&voucher, 2, 1).await,
    ];
    desk.pay(&paid).await;
    desk.cancel(&cancelled).await;
    harness
        .elapse(SHORT_WINDOW + Duration::from_millis(50))
        .await;
    assert_eq!(overdue(&desk, 10).await, []);
}

fn impatient() -> VoucherTerms {
    VoucherTerms {
        payment_window: SHORT_WINDOW,
        ..terms(5)
    }
}

/// Looks until so many are overdue: a transaction that was dropped may take a moment to let its rows
/// go, and meanwhile they are passed over.
async fn overdue_in_the_end(desk: &Desk<'_>, count: usize) -> Vec<OrderId> {
    for _ in 0..200 {
        let found = overdue(desk, 1_000).await;
        if found.len() >= count {
            return found.iter().map(|order| order.id).collect();
        }
        desk.harness.elapse(Duration::from_millis(10)).await;
    }
    panic!("there are never {count} overdue");
}

async fn overdue(desk: &Desk<'_>, max: usize) -> Vec<Order> {
    desk.begin().await.lock_overdue_orders(max).await.unwrap()
}

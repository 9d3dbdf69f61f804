//! Every batch and page has a maximum, and more than it is refused, not cut.

use seckill_application::Fault;
use seckill_application::ports::VoucherFilter;
use seckill_domain::{BuyerId, Decision, EventId, EventKind, GateVersion, NewEvent, OrderId};

use super::desk::{Desk, claim};
use super::happenings::{HOLD, relay};
use super::{LedgerHarness, promises};

promises! { ledger_bounds over dyn LedgerHarness:
    more_items_than_promised_are_refused,
    decisions_that_are_not_numbered_one_by_one_are_refused,
    larger_pages_than_promised_are_refused,
    more_updates_than_promised_are_refused,
    more_overdue_orders_than_promised_are_refused,
    more_of_a_transaction_than_promised_is_refused,
    more_events_than_promised_are_refused,
    more_money_and_messages_than_promised_are_refused,
    more_to_compare_than_promised_is_refused,
}

/// Asking for too much is a mistake of the caller: nothing happened, and repeating does not help.
fn assert_refused<T>(reply: Result<T, Fault>) {
    let Err(fault) = reply else {
        panic!("it was not refused");
    };
    assert!(!fault.is_retryable(), "{}", fault.chain());
}

async fn more_items_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(2_000, 1).await;
    let grants = (1..=1_025).map(|buyer| Decision::Granted(claim(&voucher, buyer, 1)));
    let batch = desk
        .batch(desk.partition_of(voucher.id), grants.collect())
        .await;
    assert_refused(desk.ports.admissions.apply(&batch).await);
    let head = desk.ports.admissions.head(batch.partition).await.unwrap();
    assert_eq!(head, batch.head);
    assert_eq!(desk.stock(&voucher).await, 2_000);
}

async fn decisions_that_are_not_numbered_one_by_one_are_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let grants = (1..=3).map(|buyer| Decision::Granted(claim(&voucher, buyer, 1)));
    let mut batch = desk
        .batch(desk.partition_of(voucher.id), grants.collect())
        .await;
    batch.items.remove(1);
    assert_refused(desk.ports.admissions.apply(&batch).await);
    assert_eq!(desk.stock(&voucher).await, 5);
}

async fn larger_pages_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let ledger = &harness.ledger().ledger;
    assert_refused(ledger.vouchers(VoucherFilter::All, None, 1_001).await);
    assert_refused(ledger.orders_of(BuyerId::new(1), None, 101).await);
    let ids: Vec<OrderId> = (1..=1_001).map(OrderId::new).collect();
    assert_refused(ledger.stages(&ids).await);
}

async fn more_updates_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let updates = &desk.ports.updates;
    assert_refused(updates.after(voucher.id, GateVersion::default(), 101).await);
    assert_refused(updates.waiting(1_001).await);
}

async fn more_overdue_orders_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let mut unit = desk.begin().await;
    assert_refused(unit.lock_overdue_orders(1_001).await);
}

fn orders(count: u64) -> Vec<OrderId> {
    (1..=count).map(OrderId::new).collect()
}

async fn more_of_a_transaction_than_promised_is_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    assert_refused(desk.begin().await.lock_orders(&orders(1_001)).await);
    let event = NewEvent::of_voucher(voucher.id, EventKind::VoucherAmended);
    assert_refused(desk.begin().await.append_events(&vec![event; 1_001]).await);
    assert_eq!(desk.ports.events.unpublished().await.unwrap(), 0);
}

async fn more_events_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let events = &harness.ledger().events;
    assert_refused(events.claim(&relay("a"), 501, HOLD).await);
    let ids: Vec<EventId> = (1..=501).map(EventId::new).collect();
    assert_refused(events.published(&ids).await);
    let start = EventId::default();
    assert_refused(events.of_order(OrderId::new(1), start, 101).await);
}

async fn more_money_and_messages_than_promised_are_refused(harness: &dyn LedgerHarness) {
    let ports = harness.ledger();
    assert_refused(ports.money.refunds(None, 101).await);
    assert_refused(ports.money.unsent(101).await);
    assert_refused(ports.parked.list(false, None, 101).await);
}

async fn more_to_compare_than_promised_is_refused(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let books = &desk.ports.reconciliations;
    let start = OrderId::new(0);
    assert_refused(books.open_orders(voucher.id, start, 1_001).await);
    assert_refused(books.orders(&orders(1_001)).await);
    assert_refused(books.being_released(voucher.id, &orders(1_001)).await);
    assert_refused(books.reports(None, 101).await);
    assert_refused(books.reloads(&vec![voucher.id; 1_001]).await);
    let start = seckill_domain::Timestamp::from_millis(0);
    assert_refused(books.forget(start, 101).await);
}

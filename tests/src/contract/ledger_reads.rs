//! What can be read of orders, balances and whole sales.

use seckill_application::ports::Page;
use seckill_domain::{BuyerId, Claim, Decision, IdempotencyKey, Order, OrderId, OrderStatus};

use super::desk::{Desk, keyed};
use super::stall::new_order;
use super::{LedgerHarness, promises};

promises! { ledger_reads over dyn LedgerHarness:
    an_unknown_order_is_not_there,
    stages_are_of_those_that_are_there,
    a_buyers_orders_come_newest_id_first_in_pages,
    orders_on_a_voucher_are_the_live_the_waiting_and_the_one_of_the_key,
    a_position_is_counted_by_turns,
    a_balance_says_where_every_unit_is,
    a_balance_counts_what_the_gate_has_not_followed,
}

async fn an_unknown_order_is_not_there(harness: &dyn LedgerHarness) {
    let ledger = &harness.ledger().ledger;
    assert_eq!(ledger.order(new_order()).await.unwrap(), None);
    assert_eq!(ledger.waiting_position(new_order()).await.unwrap(), None);
    let nobody = ledger.orders_of(BuyerId::new(1), None, 10).await.unwrap();
    let empty = Page {
        items: Vec::<Order>::new(),
        next: None,
    };
    assert_eq!(nobody, empty);
}

async fn stages_are_of_those_that_are_there(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let held = desk.granted(&voucher, 1, 1).await;
    let waits = desk.joined(&voucher, 2, 2).await;
    let gone = desk.granted(&voucher, 3, 1).await;
    desk.cancel(&gone).await;
    let mut asked: Vec<OrderId> = (0..500).map(|_| new_order()).collect();
    asked.extend([held.order, waits.order, gone.order]);
    let mut stages = desk.ports.ledger.stages(&asked).await.unwrap();
    stages.sort_unstable();
    let mut expected = vec![
        (held.order, OrderStatus::PendingPayment),
        (waits.order, OrderStatus::Waiting),
        (gone.order, OrderStatus::Cancelled),
    ];
    expected.sort_unstable();
    assert_eq!(stages, expected);
    assert_eq!(desk.ports.ledger.stages(&[]).await.unwrap(), []);
}

async fn a_buyers_orders_come_newest_id_first_in_pages(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [one, two] = [desk.voucher(9, 9).await, desk.voucher(9, 9).await];
    let mut orders = Vec::new();
    for voucher in [&one, &two, &one, &two, &one] {
        let claim = desk.granted(voucher, 42, 1).await;
        orders.push(desk.order(claim.order).await);
    }
    desk.granted(&one, 43, 1).await;
    orders.sort_by_key(|order| std::cmp::Reverse(order.id));
    let page = async |before, limit| {
        let buyer = BuyerId::new(42);
        desk.ports
            .ledger
            .orders_of(buyer, before, limit)
            .await
            .unwrap()
    };
    let part = |range: std::ops::Range<usize>, next: Option<usize>| Page {
        items: orders[range].to_vec(),
        next: next.map(|at| orders[at].id.get()),
    };
    assert_eq!(page(None, 2).await, part(0..2, Some(1)));
    assert_eq!(page(Some(orders[1].id), 2).await, part(2..4, Some(3)));
    assert_eq!(page(Some(orders[3].id), 2).await, part(4..5, None));
    assert_eq!(page(None, 100).await, part(0..5, None));
}

async fn orders_on_a_voucher_are_the_live_the_waiting_and_the_one_of_the_key(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let other = desk.voucher(9, 5).await;
    let cancelled = keyed(&voucher, 1, 1, "k");
    desk.apply_one(Decision::Granted(cancelled.clone())).await;
    desk.cancel(&cancelled).await;
    let pending = desk.granted(&voucher, 1, 1).await;
    let paid = desk.granted(&voucher, 1, 1).await;
    desk.pay(&paid).await;
    let waits = desk.joined(&voucher, 1, 9).await;
    desk.granted(&voucher, 2, 1).await;
    desk.granted(&other, 1, 1).await;
    let on = async |key: Option<&str>| {
        let key: Option<IdempotencyKey> = key.map(|key| key.parse().unwrap());
        let buyer = BuyerId::new(1);
        let orders = desk
            .ports
            .ledger
            .orders_on(voucher.id, buyer, key.as_ref())
            .await;
        orders
            .unwrap()
            .iter()
            .map(|order| order.id)
            .collect::<Vec<_>>()
    };
    let ids = |claims: &[&Claim]| claims.iter().map(|claim| claim.order).collect::<Vec<_>>();
    let mut live = ids(&[&pending, &paid, &waits]);
    let mut found = on(None).await;
    live.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, live);
    let mut found = on(Some("k")).await;
    found.sort_unstable();
    let mut with_key = ids(&[&cancelled, &pending, &paid, &waits]);
    with_key.sort_unstable();
    assert_eq!(found, with_key);
    assert_eq!(on(Some("unused")).await.len(), 3);
}

async fn a_position_is_counted_by_turns(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [voucher, other] = [desk.voucher(1, 1).await, desk.voucher(1, 1).await];
    let late = desk.joined(&voucher, 900, 30).await;
    let early = desk.joined(&voucher, 10, 4).await;
    let middle = desk.joined(&voucher, 200, 9).await;
    let elsewhere = desk.joined(&other, 1, 1).await;
    let position = async |claim: &Claim| {
        desk.ports
            .ledger
            .waiting_position(claim.order)
            .await
            .unwrap()
    };
    for (claim, expected) in [(&early, 1), (&middle, 2), (&late, 3), (&elsewhere, 1)] {
        assert_eq!(position(claim).await, Some(expected));
    }
    desk.apply_one(Decision::Promoted(early.clone())).await;
    assert_eq!(position(&early).await, None);
    assert_eq!(position(&late).await, Some(2));
}

async fn a_balance_says_where_every_unit_is(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    desk.granted(&voucher, 1, 2).await;
    let paid = desk.granted(&voucher, 2, 3).await;
    desk.pay(&paid).await;
    let gone = desk.granted(&voucher, 3, 4).await;
    desk.cancel(&gone).await;
    desk.joined(&voucher, 4, 9).await;
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock), (20, 15));
    assert_eq!(
        (tally.awaiting_payment, tally.paid, tally.parked),
        (2, 3, 0)
    );
    let head = desk.head(desk.partition_of(voucher.id)).await;
    assert_eq!(tally.head, head);
}

async fn a_balance_counts_what_the_gate_has_not_followed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(20, 5).await;
    let mut versions = vec![voucher.version];
    for quantity in [2, 3] {
        let claim = desk.granted(&voucher, 1, quantity).await;
        versions.push(desk.cancel(&claim).await);
    }
    let status = seckill_domain::SaleStatus::Paused;
    versions.push(desk.set_status(voucher.id, status, true).await.version);
    for (version, units) in versions.iter().zip([5, 3, 0, 0]) {
        let tally = desk
            .ports
            .ledger
            .tally(voucher.id, *version)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(tally.units_returned_after, units, "after {version}");
        assert_eq!(tally.version, versions[3]);
    }
    // What the gate has is forgotten, and counts no more whatever is asked.
    desk.ports
        .updates
        .forget(voucher.id, versions[1])
        .await
        .unwrap();
    let tally = desk
        .ports
        .ledger
        .tally(voucher.id, versions[1])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(tally.units_returned_after, 3);
}

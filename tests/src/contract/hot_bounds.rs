//! Every batch has a maximum, and more than it is refused, not cut.

use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{ATTEMPTS_MAX, EntryId, LOAD_CHUNK_MAX, LoadChunk, LoadToken};
use seckill_domain::{
    Attempt, BuyerId, Claim, Event, EventId, EventKind, NewEvent, OrderId, Seat, Sequence, Ticket,
    Timestamp, VoucherId,
};

use super::loading::Load;
use super::opening::{Opening, VOUCHER};
use super::{HotHarness, promises};

promises! { hot_bounds over dyn HotHarness:
    more_attempts_than_promised_are_refused,
    more_facts_than_promised_are_refused,
    more_entries_than_promised_are_refused,
    more_of_a_snapshot_than_promised_is_refused,
    more_grants_than_promised_are_refused,
    more_places_than_promised_are_refused,
    more_holders_than_promised_are_not_looked_for,
    more_orders_than_promised_are_not_queued,
    more_notices_than_promised_are_not_told,
}

/// Asking for too much is a mistake of the caller: nothing happened, and repeating does not help.
fn assert_refused<T>(reply: Result<T, Fault>) {
    let Err(fault) = reply else {
        panic!("it was not refused");
    };
    assert!(!fault.is_retryable(), "{}", fault.chain());
}

async fn more_attempts_than_promised_are_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(100).open(harness).await;
    let buyers = 0..=u64::try_from(ATTEMPTS_MAX).unwrap();
    let attempts: Vec<Attempt> = buyers.map(|n| stall.attempt(1 + n, 1)).collect();
    assert_refused(stall.hot.gate.admit(VOUCHER, &attempts).await);
    assert_eq!(stall.free().await, 100);
}

async fn more_facts_than_promised_are_refused(harness: &dyn HotHarness) {
    let vouchers: Vec<VoucherId> = (1..=101).map(VoucherId::new).collect();
    assert_refused(harness.hot().gate.facts(&vouchers).await);
}

async fn more_entries_than_promised_are_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let (partition, epoch, stream) = (stall.partition, stall.epoch, &stall.hot.stream);
    assert_refused(
        stream
            .read_after(partition, epoch, EntryId::START, 513)
            .await,
    );
    assert_refused(
        stream
            .read_new(partition, epoch, "worker", 513, Duration::ZERO)
            .await,
    );
    let ids = vec![EntryId::START; 513];
    assert_refused(
        stream
            .ack(partition, epoch, &ids, Sequence::default())
            .await,
    );
}

fn claims(count: usize) -> Vec<Claim> {
    let claim = |n| Claim {
        order: seckill_domain::OrderId::new(n),
        voucher: VOUCHER,
        buyer: seckill_domain::BuyerId::new(n),
        quantity: 1,
        key: None,
    };
    (1..=count as u64).map(claim).collect()
}

async fn more_of_a_snapshot_than_promised_is_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let (_, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let token = LoadToken("token".to_owned());
    let mut opening = Opening::of(5);
    for claim in claims(LOAD_CHUNK_MAX + 1) {
        opening = opening.holder(claim.buyer, claim.order, 1);
    }
    let too_much: &LoadChunk = opening.chunk();
    assert_refused(stall.hot.loader.load(VOUCHER, &token, too_much, 0).await);
}

async fn more_grants_than_promised_are_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(5_000).open(harness).await;
    let claims = claims(LOAD_CHUNK_MAX + 1);
    assert_refused(stall.hot.loader.offer(VOUCHER, &claims, &[]).await);
    assert_eq!(stall.decisions().await, []);
    let (_, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let token = LoadToken("token".to_owned());
    assert_refused(
        stall
            .hot
            .loader
            .append_again(VOUCHER, &token, &claims, &[])
            .await,
    );
    assert_eq!(stall.decisions().await, []);
}

async fn more_places_than_promised_are_refused(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5_000).open(harness).await;
    let seat = |(number, claim): (u64, Claim)| Seat {
        ticket: Ticket::new(number),
        order: claim.order,
        buyer: claim.buyer,
        quantity: claim.quantity,
        key: claim.key,
    };
    let seats: Vec<Seat> = (1..).zip(claims(LOAD_CHUNK_MAX + 1)).map(seat).collect();
    assert_refused(stall.hot.loader.offer(VOUCHER, &[], &seats).await);
    assert_eq!(stall.decisions().await, []);
}

async fn more_holders_than_promised_are_not_looked_for(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let buyers: Vec<BuyerId> = (1..=1_001).map(BuyerId::new).collect();
    assert_refused(stall.hot.gate.claimants(VOUCHER, &buyers).await);
}

async fn more_orders_than_promised_are_not_queued(harness: &dyn HotHarness) {
    let delays = &harness.hot().delays;
    let orders: Vec<OrderId> = (1..=1_001).map(OrderId::new).collect();
    let due: Vec<_> = orders
        .iter()
        .map(|order| (*order, Timestamp::from_millis(1)))
        .collect();
    assert_refused(delays.schedule(&due).await);
    assert_refused(delays.complete(&orders).await);
    assert_refused(delays.claim_due(1_001, Duration::from_secs(1)).await);
    assert_eq!(delays.scheduled().await.unwrap(), 0);
}

async fn more_notices_than_promised_are_not_told(harness: &dyn HotHarness) {
    let event = |number| Event {
        id: EventId::new(number),
        what: NewEvent::of_voucher(VOUCHER, EventKind::VoucherPaused),
        at: Timestamp::from_millis(0),
    };
    let events: Vec<Event> = (1..=501).map(event).collect();
    assert_refused(harness.hot().notifier.notify(&events).await);
}

//! What happened, asked of the outbox in a line.

use std::time::Duration;

use seckill_application::ports::{LeaseOwner, LedgerPorts};
use seckill_domain::{Claim, Event, EventId, EventKind, NewEvent};

use super::desk::Desk;

pub(super) const HOLD: Duration = Duration::from_mins(2);

pub(super) fn relay(name: &str) -> LeaseOwner {
    LeaseOwner(name.to_owned())
}

pub(super) async fn of_order(desk: &Desk<'_>, claim: &Claim) -> Vec<Event> {
    let outbox = &desk.ports.events;
    let events = outbox.of_order(claim.order, EventId::default(), 100).await;
    events.unwrap()
}

/// What happened to an order, in order.
pub(super) async fn kinds(desk: &Desk<'_>, claim: &Claim) -> Vec<EventKind> {
    let events = of_order(desk, claim).await;
    events.iter().map(|event| event.what.kind).collect()
}

pub(super) async fn claimed(ports: &LedgerPorts, name: &str, max: usize) -> Vec<Event> {
    let claimed = ports.events.claim(&relay(name), max, HOLD).await;
    claimed.unwrap()
}

pub(super) async fn unpublished(desk: &Desk<'_>) -> u64 {
    desk.ports.events.unpublished().await.unwrap()
}

pub(super) fn about(claim: &Claim, kind: EventKind) -> NewEvent {
    NewEvent {
        kind,
        voucher: claim.voucher,
        order: Some((claim.order, claim.buyer)),
    }
}

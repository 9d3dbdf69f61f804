//! Events: from the transaction that made them true to whoever wants to be told.

use std::time::Duration;

use async_trait::async_trait;
use seckill_domain::{Event, EventId, OrderId};

use super::LeaseOwner;
use crate::Fault;

/// The outbox of events. Written by [`UnitOfWork::append_events`](super::UnitOfWork) and by
/// [`AdmissionLedger::apply`](super::AdmissionLedger), read by a relay, kept for a while for those
/// who reconnect.
#[async_trait]
pub trait EventOutbox: Send + Sync {
    /// Unpublished events, oldest first, at most `max` (1 to 500), claimed for `hold`: another owner
    /// gets them only after that. At least once.
    async fn claim(
        &self,
        owner: &LeaseOwner,
        max: usize,
        hold: Duration,
    ) -> Result<Vec<Event>, Fault>;

    /// Marks events as published. Repeatable. At most 500.
    async fn published(&self, ids: &[EventId]) -> Result<(), Fault>;

    /// How many are unpublished.
    async fn unpublished(&self) -> Result<u64, Fault>;

    /// An order's events after `after`, oldest first, at most `max` (1 to 100), published or not.
    async fn of_order(
        &self,
        order: OrderId,
        after: EventId,
        max: usize,
    ) -> Result<Vec<Event>, Fault>;

    /// Removes published events older than `age`, at most 1,000. Returns how many.
    async fn prune(&self, age: Duration) -> Result<usize, Fault>;
}

/// Tells the world. A notice carries the event's own number, so a repeat is harmless.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Publishes events, at most 500.
    async fn notify(&self, events: &[Event]) -> Result<(), Fault>;
}

/// Wakes those who follow an order in this process.
#[async_trait]
pub trait NoticeFeed: Send + Sync {
    /// Follows an order from now on.
    async fn follow(&self, order: OrderId) -> Result<Box<dyn Following>, Fault>;
}

/// An order that is being followed. Only wakes: what happened is read from the
/// [`EventOutbox`]. A notice may be missed; whoever follows also looks from time to time.
#[async_trait]
pub trait Following: Send {
    /// Returns when something may have happened to the order since the last return.
    async fn changed(&mut self);
}

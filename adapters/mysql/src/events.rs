//! The outbox of events.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{Event, EventId, OrderId};

use crate::store::Store;

#[async_trait]
impl EventOutbox for Store {
    async fn claim(&self, _: &LeaseOwner, _: usize, _: Duration) -> Result<Vec<Event>, Fault> {
        Err(Fault::broken("events.claim", "not there yet"))
    }

    async fn published(&self, _: &[EventId]) -> Result<(), Fault> {
        Err(Fault::broken("events.published", "not there yet"))
    }

    async fn unpublished(&self) -> Result<u64, Fault> {
        Err(Fault::broken("events.unpublished", "not there yet"))
    }

    async fn of_order(&self, _: OrderId, _: EventId, _: usize) -> Result<Vec<Event>, Fault> {
        Err(Fault::broken("events.of_order", "not there yet"))
    }

    async fn prune(&self, _: Duration) -> Result<usize, Fault> {
        Err(Fault::broken("events.prune", "not there yet"))
    }
}

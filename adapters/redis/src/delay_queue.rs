//! Which orders are due when.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{DelayQueue, Following, NoticeFeed, Notifier};
use seckill_domain::{Event, OrderId, Timestamp};

/// To come.
pub(crate) struct Unready;

fn unready() -> Fault {
    Fault::broken("delay_queue", "not yet")
}

#[async_trait]
impl DelayQueue for Unready {
    async fn schedule(&self, _: &[(OrderId, Timestamp)]) -> Result<(), Fault> {
        Err(unready())
    }

    async fn claim_due(&self, _: usize, _: Duration) -> Result<Vec<OrderId>, Fault> {
        Err(unready())
    }

    async fn complete(&self, _: &[OrderId]) -> Result<(), Fault> {
        Err(unready())
    }

    async fn wait(&self, _: Duration) -> Result<(), Fault> {
        Err(unready())
    }

    async fn scheduled(&self) -> Result<u64, Fault> {
        Err(unready())
    }
}

#[async_trait]
impl Notifier for Unready {
    async fn notify(&self, _: &[Event]) -> Result<(), Fault> {
        Err(unready())
    }
}

#[async_trait]
impl NoticeFeed for Unready {
    async fn follow(&self, _: OrderId) -> Result<Box<dyn Following>, Fault> {
        Err(unready())
    }
}

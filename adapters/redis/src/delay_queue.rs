//! Which orders are due when: a sorted set of orders by the millisecond at which somebody may claim
//! them, by Redis's clock. A claim only moves an order's time, so nothing leaves the set before it
//! was handled.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, select};
use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{Clock, DelayQueue};
use seckill_domain::{OrderId, Timestamp};

use crate::fault::at_most;
use crate::keys::{Channel, KeyName};
use crate::reply::malformed;
use crate::scripts::{DELAY_CLAIM, DELAY_NEXT, DELAY_SCHEDULE};
use crate::store::{Lane, Store, millis, words};
use crate::subscription::Subscription;

const ORDERS_MAX: usize = 1_000;

/// The delay queue in Redis.
pub(crate) struct RedisDelays {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) subscription: Arc<Subscription>,
}

/// The first order of the queue.
#[derive(Debug, Clone, Copy)]
struct Next {
    /// How long until then; zero if it is due.
    pause: Duration,
    at_ms: i64,
}

impl RedisDelays {
    async fn next(&self) -> Result<Option<Next>, Fault> {
        let address = self.store.plain_address();
        let reply = self
            .store
            .run_at(
                "delay_queue.wait",
                Lane::Gate,
                &DELAY_NEXT,
                address,
                &|_| {},
            )
            .await?;
        match reply.kind() {
            "NEXT" => Ok(Some(Next {
                pause: Duration::from_millis(reply.parsed(1)?),
                at_ms: reply.parsed(2)?,
            })),
            "NONE" => Ok(None),
            _ => Err(reply.senseless()),
        }
    }

    fn key(&self) -> String {
        let address = self.store.plain_address();
        address.key(KeyName::Delays).to_string()
    }
}

#[async_trait]
impl DelayQueue for RedisDelays {
    async fn schedule(&self, due: &[(OrderId, Timestamp)]) -> Result<(), Fault> {
        const SCHEDULE: &str = "delay_queue.schedule";
        at_most(SCHEDULE, due.len(), ORDERS_MAX)?;
        if due.is_empty() {
            return Ok(());
        }
        let channel = self.store.channel(Channel::Wakes);
        let args = |command: &mut Cmd| {
            words(command, &[&channel]);
            for (order, at) in due {
                words(command, &[&at.as_millis(), order]);
            }
        };
        let address = self.store.plain_address();
        self.store
            .run_at(SCHEDULE, Lane::Bulk, &DELAY_SCHEDULE, address, &args)
            .await?;
        Ok(())
    }

    async fn claim_due(&self, max: usize, hold: Duration) -> Result<Vec<OrderId>, Fault> {
        const CLAIM_DUE: &str = "delay_queue.claim_due";
        at_most(CLAIM_DUE, max, ORDERS_MAX)?;
        let args = |command: &mut Cmd| words(command, &[&max, &millis(hold)]);
        let address = self.store.plain_address();
        let reply = self
            .store
            .run_at(CLAIM_DUE, Lane::Bulk, &DELAY_CLAIM, address, &args)
            .await?;
        // What is no order was not scheduled by us, and would be claimed for ever.
        let (orders, others): (Vec<_>, Vec<_>) = reply
            .rest()
            .iter()
            .map(|word| word.parse::<OrderId>().map_err(|_| word))
            .partition(Result::is_ok);
        if !others.is_empty() {
            tracing::warn!(
                count = others.len(),
                "no orders in the delay queue: removed"
            );
            let mut remove = redis::cmd("ZREM");
            remove.arg(self.key());
            for other in others.into_iter().filter_map(Result::err) {
                remove.arg(other);
            }
            self.store.ask(CLAIM_DUE, Lane::Bulk, &remove).await?;
        }
        Ok(orders.into_iter().flatten().collect())
    }

    async fn complete(&self, orders: &[OrderId]) -> Result<(), Fault> {
        const COMPLETE: &str = "delay_queue.complete";
        at_most(COMPLETE, orders.len(), ORDERS_MAX)?;
        if orders.is_empty() {
            return Ok(());
        }
        let mut remove = redis::cmd("ZREM");
        remove.arg(self.key());
        for order in orders {
            words(&mut remove, &[order]);
        }
        self.store.ask(COMPLETE, Lane::Bulk, &remove).await?;
        Ok(())
    }

    async fn wait(&self, max: Duration) -> Result<(), Fault> {
        // Listens before it looks, so that nothing falls in between.
        let mut wakes = self.subscription.wakes();
        let end = self.clock.monotonic() + max;
        let begun_with = self.next().await?;
        let mut next = begun_with;
        loop {
            let due = next.is_some_and(|next| next.pause.is_zero());
            let earlier =
                next.is_some_and(|next| begun_with.is_none_or(|first| next.at_ms < first.at_ms));
            let left = end.saturating_sub(self.clock.monotonic());
            if due || earlier || left.is_zero() {
                return Ok(());
            }
            let pause = next.map_or(left, |next| next.pause.min(left));
            let slept = self.clock.sleep(pause);
            let woken = self.subscription.while_kept(wakes.changed());
            match select(slept, pin!(woken)).await {
                Either::Left(_) => return Ok(()),
                Either::Right(_) => next = self.next().await?,
            }
        }
    }

    async fn scheduled(&self) -> Result<u64, Fault> {
        const SCHEDULED: &str = "delay_queue.scheduled";
        let mut count = redis::cmd("ZCARD");
        count.arg(self.key());
        match self.store.ask(SCHEDULED, Lane::Bulk, &count).await? {
            redis::Value::Int(count) => Ok(u64::try_from(count).unwrap_or(0)),
            other => Err(malformed(SCHEDULED, format!("{other:?}"))),
        }
    }
}

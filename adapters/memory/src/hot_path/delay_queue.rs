//! Which orders are due when.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::select;
use seckill_application::Fault;
use seckill_application::ports::DelayQueue;
use seckill_domain::{OrderId, Timestamp};

use super::store::Shared;
use crate::chaos::at_most;
use crate::patience::Patience;

const ORDERS_MAX: usize = 1_000;

/// Orders by the time at which somebody may claim them: a sorted set. A claim only moves an order's
/// time.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    by_time: BTreeSet<(Timestamp, OrderId)>,
    times: HashMap<OrderId, Timestamp>,
}

impl Delays {
    fn set(&mut self, order: OrderId, at: Timestamp) {
        self.remove(order);
        self.times.insert(order, at);
        self.by_time.insert((at, order));
    }

    fn remove(&mut self, order: OrderId) -> bool {
        let known = self.times.remove(&order);
        known.is_some_and(|at| self.by_time.remove(&(at, order)))
    }

    fn claim(&mut self, now: Timestamp, max: usize, hold: Duration) -> Vec<OrderId> {
        let due = self.by_time.range(..=(now, OrderId::new(u64::MAX)));
        let due: Vec<OrderId> = due.take(max).map(|(_, order)| *order).collect();
        for order in &due {
            self.set(*order, now.plus(hold));
        }
        due
    }

    fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

#[async_trait]
impl DelayQueue for Shared {
    async fn schedule(&self, due: &[(OrderId, Timestamp)]) -> Result<(), Fault> {
        const SCHEDULE: &str = "delay_queue.schedule";
        at_most(SCHEDULE, due.len(), ORDERS_MAX)?;
        let call = self.chaos.enter(SCHEDULE)?;
        self.store().change_delays(|delays| {
            for (order, at) in due {
                delays.set(*order, *at);
            }
            ((), !due.is_empty())
        });
        self.delays_changed.notify_waiters();
        call.answer(())
    }

    async fn claim_due(&self, max: usize, hold: Duration) -> Result<Vec<OrderId>, Fault> {
        const CLAIM_DUE: &str = "delay_queue.claim_due";
        at_most(CLAIM_DUE, max, ORDERS_MAX)?;
        let call = self.chaos.enter(CLAIM_DUE)?;
        let now = self.clock.now();
        let claimed = self.store().change_delays(|delays| {
            let claimed = delays.claim(now, max, hold);
            let wrote = !claimed.is_empty();
            (claimed, wrote)
        });
        call.answer(claimed)
    }

    async fn complete(&self, orders: &[OrderId]) -> Result<(), Fault> {
        const COMPLETE: &str = "delay_queue.complete";
        at_most(COMPLETE, orders.len(), ORDERS_MAX)?;
        let call = self.chaos.enter(COMPLETE)?;
        self.store().change_delays(|delays| {
            let removed = orders.iter().filter(|order| delays.remove(**order)).count();
            ((), removed > 0)
        });
        call.answer(())
    }

    async fn wait(&self, max: Duration) -> Result<(), Fault> {
        const WAIT: &str = "delay_queue.wait";
        let call = self.chaos.enter(WAIT)?;
        let mut patience = Patience::of(&*self.clock, max);
        let begun_with = self.store().delays.next();
        loop {
            let changed = self.delays_changed.notified();
            let now = self.clock.now();
            let next = self.store().delays.next();
            let due = next.is_some_and(|next| next <= now);
            let earlier = next.is_some_and(|next| begun_with.is_none_or(|first| next < first));
            if due || earlier {
                return call.answer(());
            }
            let pause = next.map_or(max, |next| now.until(next));
            let event = async { drop(select(pin!(changed), self.clock.sleep(pause)).await) };
            let in_time = patience.outlasts(event).await;
            self.chaos.still_up(WAIT)?;
            if !in_time {
                return call.answer(());
            }
        }
    }

    async fn scheduled(&self) -> Result<u64, Fault> {
        let call = self.chaos.enter("delay_queue.scheduled")?;
        let count = self.store().delays.times.len();
        call.answer(count as u64)
    }
}

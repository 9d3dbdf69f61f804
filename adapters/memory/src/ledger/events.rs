//! The outbox of events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{Event, EventId, NewEvent, OrderId, Timestamp};

use super::MemoryLedger;
use crate::chaos::at_most;

const CLAIMED_MAX: usize = 500;
const OF_ORDER_MAX: usize = 100;
const PRUNED_MAX: usize = 1_000;

/// Events by number. Numbers are given when a transaction commits, one transaction after the other,
/// so whoever sees one has been able to see all before it.
#[derive(Debug, Default)]
pub(super) struct Events {
    rows: BTreeMap<EventId, Event>,
    by_order: BTreeSet<(OrderId, EventId)>,
    /// With whoever has claimed it, and until when.
    unpublished: BTreeMap<EventId, Option<(LeaseOwner, Timestamp)>>,
    last: u64,
}

impl Events {
    pub(super) fn add(&mut self, what: NewEvent, at: Timestamp) {
        self.last += 1;
        let id = EventId::new(self.last);
        self.rows.insert(id, Event { id, what, at });
        self.unpublished.insert(id, None);
        if let Some((order, _)) = what.order {
            self.by_order.insert((order, id));
        }
    }

    fn claim(
        &mut self,
        owner: &LeaseOwner,
        max: usize,
        until: Timestamp,
        now: Timestamp,
    ) -> Vec<Event> {
        let free = |claim: &Option<(LeaseOwner, Timestamp)>| {
            let claim = claim.as_ref();
            claim.is_none_or(|(claimed_by, end)| claimed_by == owner || *end <= now)
        };
        let mut claimed = Vec::new();
        for (id, claim) in self.unpublished.iter_mut().filter(|(_, it)| free(it)) {
            if claimed.len() == max {
                break;
            }
            *claim = Some((owner.clone(), until));
            claimed.extend(self.rows.get(id).copied());
        }
        claimed
    }

    fn of_order(&self, order: OrderId, after: EventId, max: usize) -> Vec<Event> {
        let last = EventId::new(u64::MAX);
        self.by_order
            .range((Excluded((order, after)), Included((order, last))))
            .take(max)
            .filter_map(|(_, id)| self.rows.get(id).copied())
            .collect()
    }

    fn prune(&mut self, age: Duration, now: Timestamp) -> usize {
        let old = self.rows.values().filter(|event| event.at.plus(age) <= now);
        let old: Vec<Event> = old
            .filter(|event| !self.unpublished.contains_key(&event.id))
            .take(PRUNED_MAX)
            .copied()
            .collect();
        for event in &old {
            self.rows.remove(&event.id);
            if let Some((order, _)) = event.what.order {
                self.by_order.remove(&(order, event.id));
            }
        }
        old.len()
    }
}

#[async_trait]
impl EventOutbox for MemoryLedger {
    async fn claim(
        &self,
        owner: &LeaseOwner,
        max: usize,
        hold: Duration,
    ) -> Result<Vec<Event>, Fault> {
        const CLAIM: &str = "event_outbox.claim";
        at_most(CLAIM, max, CLAIMED_MAX)?;
        self.write(CLAIM, |book, now| {
            book.events.claim(owner, max, now.plus(hold), now)
        })
    }

    async fn published(&self, ids: &[EventId]) -> Result<(), Fault> {
        const PUBLISHED: &str = "event_outbox.published";
        at_most(PUBLISHED, ids.len(), CLAIMED_MAX)?;
        self.write(PUBLISHED, |book, _| {
            for id in ids {
                book.events.unpublished.remove(id);
            }
        })
    }

    async fn unpublished(&self) -> Result<u64, Fault> {
        self.read("event_outbox.unpublished", |book, _| {
            book.events.unpublished.len() as u64
        })
    }

    async fn of_order(
        &self,
        order: OrderId,
        after: EventId,
        max: usize,
    ) -> Result<Vec<Event>, Fault> {
        const OF_ORDER: &str = "event_outbox.of_order";
        at_most(OF_ORDER, max, OF_ORDER_MAX)?;
        self.read(OF_ORDER, |book, _| book.events.of_order(order, after, max))
    }

    async fn prune(&self, age: Duration) -> Result<usize, Fault> {
        self.write("event_outbox.prune", |book, now| {
            book.events.prune(age, now)
        })
    }
}

//! An admission stream with its consumer group, as Redis keeps it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use seckill_application::ports::{Delivery, Entry, EntryId, Unreadable};
use seckill_domain::{Decision, Epoch, OrderId, Timestamp};

type Body = Result<Entry, Unreadable>;

/// The stream of one life of a partition.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) epoch: Epoch,
    entries: BTreeMap<EntryId, Body>,
    last: EntryId,
    pub(super) group: Option<Group>,
}

/// The consumer group: what was delivered, and to whom.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    last_delivered: EntryId,
    pending: BTreeMap<EntryId, Arc<str>>,
}

impl Stream {
    /// An empty stream with its group at the start.
    pub(super) fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            entries: BTreeMap::new(),
            last: EntryId::START,
            group: Some(Group::default()),
        }
    }

    /// The id of the next entry: after all others, even if the clock stepped back.
    pub(super) fn next_id(&self, now: Timestamp) -> EntryId {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        if millis > self.last.millis {
            EntryId { millis, counter: 0 }
        } else {
            EntryId {
                counter: self.last.counter + 1,
                ..self.last
            }
        }
    }

    pub(super) fn push(&mut self, id: EntryId, body: Body) {
        self.last = id;
        self.entries.insert(id, body);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn pending(&self) -> usize {
        self.group.as_ref().map_or(0, |group| group.pending.len())
    }

    /// Entries after `after`, that can be read.
    pub(super) fn readable_after(&self, after: EntryId) -> impl Iterator<Item = &Entry> {
        self.entries
            .range((Excluded(after), Unbounded))
            .filter_map(|(_, body)| body.as_ref().ok())
    }

    pub(super) fn read_after(&self, after: EntryId, max: usize) -> Vec<Delivery> {
        self.entries
            .range((Excluded(after), Unbounded))
            .take(max)
            .map(|(id, body)| Delivery {
                id: *id,
                body: body.clone(),
            })
            .collect()
    }

    /// Delivers entries that nobody was given yet to `consumer`.
    pub(super) fn deliver(&mut self, consumer: &str, max: usize) -> Vec<Delivery> {
        let from = self.group.get_or_insert_with(Group::default).last_delivered;
        let delivered = self.read_after(from, max);
        if let (Some(group), Some(last)) = (&mut self.group, delivered.last()) {
            group.last_delivered = last.id;
            let consumer: Arc<str> = consumer.into();
            let mine = delivered.iter().map(|it| (it.id, consumer.clone()));
            group.pending.extend(mine);
        }
        delivered
    }

    /// Makes all pending entries this consumer's. Returns how many there are.
    pub(super) fn take_over(&mut self, consumer: &str) -> usize {
        let Some(group) = &mut self.group else {
            return 0;
        };
        let consumer: Arc<str> = consumer.into();
        for owner in group.pending.values_mut() {
            *owner = consumer.clone();
        }
        group.pending.len()
    }

    /// What this consumer has pending after `after`.
    pub(super) fn pending_of(&self, consumer: &str, after: EntryId, max: usize) -> Vec<Delivery> {
        let Some(group) = &self.group else {
            return Vec::new();
        };
        let pending = group.pending.range((Excluded(after), Unbounded));
        let his = pending.filter(|(_, owner)| &***owner == consumer);
        let deliver = |(id, _): (&EntryId, _)| Delivery {
            id: *id,
            body: self.entries.get(id).cloned().unwrap_or_else(gone),
        };
        his.take(max).map(deliver).collect()
    }

    pub(super) fn ack(&mut self, ids: &[EntryId]) {
        if let Some(group) = &mut self.group {
            for id in ids {
                group.pending.remove(id);
            }
        }
    }

    /// Removes the last entry with a decision about an order. `false` if there is none.
    pub(super) fn remove_message(&mut self, order: OrderId) -> bool {
        let Some(id) = self.message_of(order) else {
            return false;
        };
        self.entries.remove(&id);
        self.ack(&[id]);
        true
    }

    /// Makes the last entry with a decision about an order unreadable; what it decided can still be
    /// made out if it `names` it. `false` if there is none.
    pub(super) fn spoil_message(&mut self, order: OrderId, names: bool) -> bool {
        let found = self.message_of(order);
        let Some(body) = found.and_then(|id| self.entries.get_mut(&id)) else {
            return false;
        };
        let decision = body.as_ref().ok().and_then(|it| it.decisions.first());
        let legible = decision.filter(|_| names).cloned();
        *body = Err(Unreadable {
            raw: format!("spoilt: {order}"),
            reason: "spoilt".to_owned(),
            named: legible,
        });
        true
    }

    /// Whether an entry is there.
    pub(super) fn has(&self, id: EntryId) -> bool {
        self.entries.contains_key(&id)
    }

    fn message_of(&self, order: OrderId) -> Option<EntryId> {
        let about = |it: &Decision| it.claim().is_some_and(|claim| claim.order == order);
        let says = |body: &Body| {
            let entry = body.as_ref().ok();
            entry.is_some_and(|entry| entry.decisions.iter().any(about))
        };
        let found = self.entries.iter().rev().find(|(_, body)| says(body));
        found.map(|(id, _)| *id)
    }

    /// Of the oldest `max` entries, removes those that were delivered, are acknowledged, stand at or
    /// before `up_to`, and were written at or before `written`.
    pub(super) fn trim(
        &mut self,
        up_to: EntryId,
        written: Timestamp,
        max: usize,
    ) -> Vec<(EntryId, Body)> {
        let Some(group) = &self.group else {
            return Vec::new();
        };
        let done = |id: &EntryId| {
            *id <= up_to && *id <= group.last_delivered && id.written_at() <= written
        };
        let oldest = self.entries.keys().copied().take(max).take_while(done);
        let ids: Vec<EntryId> = oldest
            .filter(|id| !group.pending.contains_key(id))
            .collect();
        ids.into_iter()
            .filter_map(|id| self.entries.remove_entry(&id))
            .collect()
    }
}

/// An entry that somebody has removed.
fn gone() -> Body {
    Err(Unreadable {
        raw: String::new(),
        reason: "no fields".to_owned(),
        named: None,
    })
}

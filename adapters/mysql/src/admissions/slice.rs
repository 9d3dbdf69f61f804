//! A run of a batch's items, and the positions before and after it.

use seckill_application::ports::{AdmissionBatch, BatchItem, EntryId, PartitionHead};
use seckill_domain::PartitionId;

/// A part of a batch that is applied in one transaction.
#[derive(Clone, Copy)]
pub(super) struct Slice<'b> {
    pub(super) partition: PartitionId,
    /// Where it goes on from.
    pub(super) from: PartitionHead,
    /// The position once it is applied.
    pub(super) to: PartitionHead,
    pub(super) items: &'b [BatchItem],
}

impl<'b> Slice<'b> {
    /// The whole batch, or what is wrong with it.
    pub(super) fn whole(batch: &'b AdmissionBatch) -> Result<Self, String> {
        if batch.items.len() > ITEMS_MAX {
            return Err("more items than a batch may have".to_owned());
        }
        let mut applied = batch.head.applied;
        for item in &batch.items {
            applied = item.after(applied)?;
        }
        let to = PartitionHead {
            applied,
            entry: batch.up_to,
            ..batch.head
        };
        Ok(Self {
            partition: batch.partition,
            from: batch.head,
            to,
            items: &batch.items,
        })
    }

    /// Two halves, if there is more than one item: between two entries if there are two, so that
    /// whoever reads on from between them finds the next entry whole.
    pub(super) fn halves(self) -> Option<(Self, Self)> {
        self.split_at(self.seam().unwrap_or(self.items.len() / 2))
    }

    /// Two halves of whole entries, if there is more than one entry.
    pub(super) fn whole_halves(self) -> Option<(Self, Self)> {
        self.split_at(self.seam()?)
    }

    /// Where an entry ends, as near to the middle as may be.
    fn seam(&self) -> Option<usize> {
        let middle = self.items.len() / 2;
        (1..self.items.len())
            .filter(|at| entry(&self.items[at - 1]) != entry(&self.items[*at]))
            .min_by_key(|at| at.abs_diff(middle))
    }

    fn split_at(self, middle: usize) -> Option<(Self, Self)> {
        let (head, tail) = self.items.split_at(middle);
        let (Some(last), Some(next)) = (head.last(), tail.first()) else {
            return None;
        };
        let applied = head.iter().rev().find_map(sequence);
        let between = PartitionHead {
            applied: applied.unwrap_or(self.from.applied),
            entry: completed(head, entry(last), entry(next)).unwrap_or(self.from.entry),
            ..self.from
        };
        let head = Self {
            to: between,
            items: head,
            ..self
        };
        let tail = Self {
            from: between,
            items: tail,
            ..self
        };
        Some((head, tail))
    }
}

const ITEMS_MAX: usize = 1_024;

/// The last entry that these items complete, when the item after them is of the entry `next`.
fn completed(items: &[BatchItem], last: EntryId, next: EntryId) -> Option<EntryId> {
    if last == next {
        items.iter().rev().map(entry).find(|entry| *entry != next)
    } else {
        Some(last)
    }
}

/// The entry that an item came in.
pub(super) fn entry(item: &BatchItem) -> EntryId {
    match item {
        BatchItem::Decision { entry, .. } | BatchItem::Unreadable { entry, .. } => *entry,
    }
}

fn sequence(item: &BatchItem) -> Option<seckill_domain::Sequence> {
    match item {
        BatchItem::Decision { sequence, .. } => Some(*sequence),
        BatchItem::Unreadable { taken, .. } => taken.map(|taken| taken.last),
    }
}

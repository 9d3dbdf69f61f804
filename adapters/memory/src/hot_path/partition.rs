//! A partition: its epoch and sequence, its stream, its index of decided orders, its vouchers.

use std::collections::HashMap;

use seckill_application::ports::{Entry, EntryId, NotLoaded};
use seckill_domain::{
    AdjustmentId, BuyerId, Decision, Epoch, LeftReason, OrderId, PlaceAtFirst, Sale, Sequence,
    Timestamp, VoucherId,
};

use super::slot::Slot;
use super::stream::Stream;

/// Most decisions of one entry, so that a reader's batch always has room for a whole one.
const ENTRY_DECISIONS_MAX: usize = 128;

/// A partition's hot data. Each piece can go missing by itself, as a key can in Redis.
#[derive(Debug, Clone, Default)]
pub(super) struct Partition {
    pub(super) meta: Option<Meta>,
    pub(super) stream: Option<Stream>,
    pub(super) decided: Option<Decided>,
    pub(super) slots: HashMap<VoucherId, Slot>,
    /// Counts what was written, so that a step that changed nothing shows.
    pub(super) writes: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub(super) epoch: Epoch,
    pub(super) sequence: Sequence,
    pub(super) applied: Sequence,
}

/// What was decided lately.
#[derive(Debug, Clone, Default)]
pub(super) struct Decided {
    pub(super) orders: HashMap<OrderId, DecidedOrder>,
    pub(super) adjustments: HashMap<AdjustmentId, EntryId>,
}

#[derive(Debug, Clone)]
pub(super) struct DecidedOrder {
    pub(super) voucher: VoucherId,
    pub(super) buyer: BuyerId,
    pub(super) quantity: u32,
    pub(super) first: PlaceAtFirst,
    pub(super) decided_at: Timestamp,
    /// Why it left the waitlist, if that is the latest decision about it.
    pub(super) left: Option<LeftReason>,
    /// The number of the latest decision about it.
    pub(super) sequence: Sequence,
    /// That decision's entry.
    entry: EntryId,
}

/// A partition of which nothing essential is missing.
pub(super) struct Live<'a> {
    pub(super) journal: Journal<'a>,
    pub(super) slots: &'a mut HashMap<VoucherId, Slot>,
}

/// Where decisions are written down.
pub(super) struct Journal<'a> {
    pub(super) meta: &'a mut Meta,
    pub(super) stream: &'a mut Stream,
    pub(super) decided: &'a mut Decided,
    writes: &'a mut u64,
}

impl Partition {
    /// The partition, if nothing essential is missing.
    pub(super) fn live(&mut self) -> Option<Live<'_>> {
        let meta = self.meta.as_mut()?;
        let stream = self.stream.as_mut()?;
        let decided = self.decided.as_mut()?;
        (stream.epoch == meta.epoch).then_some(Live {
            journal: Journal {
                meta,
                stream,
                decided,
                writes: &mut self.writes,
            },
            slots: &mut self.slots,
        })
    }

    /// The stream of this life, if it exists.
    pub(super) fn stream_of(&mut self, epoch: Epoch) -> Option<&mut Stream> {
        self.stream.as_mut().filter(|stream| stream.epoch == epoch)
    }
}

impl<'a> Live<'a> {
    /// An open sale, and where its decisions go.
    pub(super) fn open(
        self,
        voucher: VoucherId,
        now: Timestamp,
    ) -> Result<(&'a mut Sale, Journal<'a>), NotLoaded> {
        let slot = self.slots.get_mut(&voucher).ok_or(NotLoaded::Voucher)?;
        let sale = slot.open_sale(self.journal.meta.epoch, now)?;
        Ok((sale, self.journal))
    }
}

impl Journal<'_> {
    /// Decisions that the ledger does not have.
    pub(super) fn backlog(&self) -> u64 {
        let Meta {
            sequence, applied, ..
        } = *self.meta;
        sequence.get().saturating_sub(applied.get())
    }

    /// Writes decisions down: on the stream, with the next numbers, and in the index.
    pub(super) fn append(&mut self, now: Timestamp, decisions: Vec<Decision>) {
        let mut rest = decisions.into_iter().peekable();
        while rest.peek().is_some() {
            let part = rest.by_ref().take(ENTRY_DECISIONS_MAX).collect();
            self.append_entry(now, part);
        }
    }

    fn append_entry(&mut self, now: Timestamp, decisions: Vec<Decision>) {
        let id = self.stream.next_id(now);
        let first = self.meta.sequence.next();
        for decision in &decisions {
            self.meta.sequence = self.meta.sequence.next();
            self.decided.note(decision, self.meta.sequence, id, now);
        }
        let entry = Entry {
            epoch: self.meta.epoch,
            first,
            decisions,
        };
        self.stream.push(id, Ok(entry));
        self.wrote();
    }

    /// Whether an order was decided about by an entry that stands in the stream. What the index knows
    /// of an entry that is gone, without being applied, nobody will ever apply.
    pub(super) fn stands(&self, order: OrderId) -> bool {
        let known = self.decided.orders.get(&order);
        known.is_some_and(|it| self.stream.has(it.entry))
    }

    /// Notes that something was written.
    pub(super) fn wrote(&mut self) {
        *self.writes += 1;
    }
}

/// What the buyer was told when this was decided.
pub(super) fn told(decision: &Decision) -> PlaceAtFirst {
    match decision {
        Decision::Granted(_) | Decision::Lost(_) | Decision::Withdrawn { .. } => {
            PlaceAtFirst::Granted
        }
        Decision::Joined { .. } | Decision::Left { .. } | Decision::Promoted(_) => {
            PlaceAtFirst::Waitlisted
        }
    }
}

impl Decided {
    fn note(&mut self, decision: &Decision, sequence: Sequence, entry: EntryId, now: Timestamp) {
        if let Decision::Withdrawn { adjustment, .. } = decision {
            self.adjustments.insert(*adjustment, entry);
        }
        let Some(claim) = decision.claim() else {
            return;
        };
        let left = match decision {
            Decision::Left { reason, .. } => Some(*reason),
            _ => None,
        };
        self.orders
            .entry(claim.order)
            .and_modify(|known| {
                known.left = left;
                known.decided_at = now;
                known.sequence = sequence;
                known.entry = entry;
            })
            .or_insert_with(|| DecidedOrder {
                voucher: claim.voucher,
                buyer: claim.buyer,
                quantity: claim.quantity,
                first: told(decision),
                decided_at: now,
                left,
                sequence,
                entry,
            });
    }

    /// Forgets what was decided in an entry, unless something later is known about it.
    pub(super) fn forget(&mut self, entry: EntryId, decisions: &[Decision]) {
        for decision in decisions {
            if let Decision::Withdrawn { adjustment, .. } = decision {
                self.adjustments.remove(adjustment);
            }
            if let Some(claim) = decision.claim()
                && self
                    .orders
                    .get(&claim.order)
                    .is_some_and(|it| it.entry == entry)
            {
                self.orders.remove(&claim.order);
            }
        }
    }
}

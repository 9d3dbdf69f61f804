//! Decisions of the gate, applied to the ledger in batches.

use async_trait::async_trait;
use seckill_domain::{
    Decision, Epoch, Fence, OrderId, PartitionId, RejectReason, Sequence, Timestamp,
};

use super::{EntryId, Unreadable};
use crate::Fault;

/// How far the ledger has applied a partition's stream, and who may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionHead {
    /// The life of the hot data that the ledger accepts.
    pub epoch: Epoch,
    /// The fence that may write.
    pub fence: Fence,
    /// The last applied decision.
    pub applied: Sequence,
    /// The last applied entry of this epoch's stream; [`EntryId::START`] before the first.
    pub entry: EntryId,
}

/// One thing to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchItem {
    /// A decision, with the entry it came in.
    Decision {
        /// Its number: one more than the item before it.
        sequence: Sequence,
        /// The entry.
        entry: EntryId,
        /// What was decided.
        decision: Decision,
    },
    /// An entry that cannot be read: it is parked.
    Unreadable {
        /// The entry.
        entry: EntryId,
        /// What it says.
        body: Unreadable,
        /// The decisions that the gate made by it. `None` for one that is not the gate's: it has no
        /// number, and whatever it names counts for nothing.
        taken: Option<Taken>,
    },
}

/// Numbers of decisions that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The first: one more than the item before it.
    pub first: Sequence,
    /// The last.
    pub last: Sequence,
}

impl BatchItem {
    /// What was decided, as far as it can be read: it locks and takes what it is about.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Decision { decision, .. } => Some(decision),
            Self::Unreadable { body, taken, .. } => taken.and(body.named.as_ref()),
        }
    }

    /// The position after it, if it continues `applied`; else what is wrong.
    pub fn after(&self, applied: Sequence) -> Result<Sequence, String> {
        let (first, last) = match self {
            Self::Decision { sequence, .. } => (*sequence, *sequence),
            Self::Unreadable { taken: None, .. } => return Ok(applied),
            Self::Unreadable {
                taken: Some(taken), ..
            } => (taken.first, taken.last),
        };
        if first == applied.next() && first <= last {
            Ok(last)
        } else {
            Err(format!("decisions {first} to {last} after {applied}"))
        }
    }
}

/// What to apply at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionBatch {
    /// Which partition.
    pub partition: PartitionId,
    /// Where the batch goes on from; also carries epoch and fence.
    pub head: PartitionHead,
    /// The items, in stream order, at most 1,024. The first decision is `head.applied + 1`.
    pub items: Vec<BatchItem>,
    /// The last entry that the items complete.
    pub up_to: EntryId,
}

/// What became of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is in the ledger now.
    Confirmed,
    /// It was in the ledger before.
    AlreadyThere,
    /// The ledger refused it, and its order says why. No unit of the ledger was taken; the gate
    /// must be loaded again.
    Rejected(RejectReason),
    /// It cannot be applied as it is, and waits for an administrator.
    Parked(ParkReason),
}

/// Why an item was parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkReason {
    /// It could not be read.
    Unreadable,
    /// Its voucher is not in the ledger, or a draft.
    UnknownVoucher,
    /// The database refused its values.
    BadValues,
}

/// Reply to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// All items are settled; one verdict each, in order.
    Committed {
        /// The verdicts.
        verdicts: Vec<Verdict>,
        /// The new position.
        head: PartitionHead,
        /// When the orders confirmed just now have to be paid.
        due: Vec<(OrderId, Timestamp)>,
    },
    /// Fence, epoch or position are not what the batch says, or what they were once the first entries
    /// of it were applied: the position says what is there. Nothing beyond it changed.
    Stale(PartitionHead),
}

/// The writer's side of the ledger.
#[async_trait]
pub trait AdmissionLedger: Send + Sync {
    /// A partition's position. Creates the partition (epoch 1, nothing applied) if it is new.
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault>;

    /// Draws a higher fence: from now on nobody else writes. Returns the position to go on from.
    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault>;

    /// Raises the epoch if it still is `seen`; the entry position starts over, the sequence goes
    /// on. Returns the position as it is then, whoever raised it.
    async fn next_epoch(&self, partition: PartitionId, seen: Epoch)
    -> Result<PartitionHead, Fault>;

    /// Applies a batch: the position moves only from `head`, orders are inserted (or moved on, for
    /// those that waited), holdings and stock change, and everything up to a position commits with
    /// that position or not at all. Mostly that is the whole batch; a ledger may take the first
    /// entries by themselves, so that after a fault the position says how much is there. If the
    /// database refuses a statement, the items are applied one by one, and each gets its own verdict. Never judges window or status: a grant stands. Idempotent by order id
    /// and kind. The amount and payment window are the voucher's; the window starts at the
    /// database's clock.
    ///
    /// Every order that changes leaves an event in the outbox, in the same transaction; a promotion
    /// leaves [`EventKind::Promoted`](seckill_domain::EventKind::Promoted). A withdrawal leaves
    /// [`EventKind::StockAdjusted`](seckill_domain::EventKind::StockAdjusted).
    ///
    /// A grant for an order that waits in the ledger counts as its promotion. A rejected decision
    /// leaves an order with the reason; so does a place for a buyer who waits for the voucher
    /// already, by an order that Redis has lost. A parked decision leaves a message; the units it
    /// took are out of the ledger's stock until it is replayed or discarded, as far as there is
    /// stock. So does a decision that an unreadable entry of the gate names.
    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault>;

    /// Whether these decisions, with these numbers, were applied before: tells a redelivery from a
    /// stream that has gone back and moved on. Items that are not decisions count as applied.
    async fn has_applied(&self, partition: PartitionId, items: &[BatchItem])
    -> Result<bool, Fault>;

    /// Refuses to work on a deployment with another number of partitions than the one it was
    /// created with. Returns the number in force; `count` is recorded if there is none yet.
    async fn settle_partitions(&self, count: u16) -> Result<u16, Fault>;
}

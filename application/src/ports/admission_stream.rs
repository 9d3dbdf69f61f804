//! What the gate decided, in order, until the ledger has it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use seckill_domain::{Decision, Epoch, PartitionId, Sequence, Timestamp};

use crate::Fault;

/// The place of an entry in a stream: milliseconds of the store's clock, and a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Unix milliseconds.
    pub millis: u64,
    /// Counter within the millisecond.
    pub counter: u64,
}

impl EntryId {
    /// Before every entry.
    pub const START: Self = Self {
        millis: 0,
        counter: 0,
    };

    /// When the entry was written.
    pub fn written_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.millis).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.counter)
    }
}

/// What one step of the gate decided: one entry, so that it is there as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The life of the hot data in which it was decided.
    pub epoch: Epoch,
    /// The number of its first decision; the others follow.
    pub first: Sequence,
    /// The decisions, at least one.
    pub decisions: Vec<Decision>,
}

/// An entry that is not ours, or not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What it says, shortened to 4 KiB.
    pub raw: String,
    /// What is wrong with it.
    pub reason: String,
    /// The one decision that it seems to tell of, as far as that can be made out.
    pub named: Option<Decision>,
}

/// One entry, as delivered. One that cannot be read never blocks the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Where it stands.
    pub id: EntryId,
    /// What it says.
    pub body: Result<Entry, Unreadable>,
}

/// Reply to a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamReply {
    /// Entries in stream order; none if nothing came in time.
    Entries(Vec<Delivery>),
    /// The stream of this epoch does not exist.
    Missing,
}

/// How much a stream holds that the ledger does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Decisions not yet acknowledged as applied.
    pub decisions: u64,
    /// Entries delivered and not acknowledged.
    pub pending: u64,
    /// Entries in the stream, applied ones that are kept for a while included.
    pub length: u64,
}

/// The admission streams. At least once: an entry comes again until it is acknowledged, to this
/// consumer or to one that takes over.
#[async_trait]
pub trait AdmissionStream: Send + Sync {
    /// Entries after `after` in stream order, at most `max` (1 to 512), delivered or not. Reading
    /// changes nothing.
    async fn read_after(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        after: EntryId,
        max: usize,
    ) -> Result<StreamReply, Fault>;

    /// Entries nobody was given yet, at most `max`; waits up to `wait` for the first. They are this
    /// consumer's until acknowledged. Creates the consumer group if it is gone, at the start of the
    /// stream. `consumer` is unique and stable per worker.
    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault>;

    /// Makes everything that other consumers were given and did not acknowledge this consumer's, and
    /// forgets the other consumers. Acknowledges nothing: where an entry stands does not say whether
    /// the ledger has it. Returns how many entries are pending.
    async fn take_over(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
    ) -> Result<usize, Fault>;

    /// What this consumer was given and has not acknowledged, in stream order, after `after`, at
    /// most `max` (1 to 512). An entry that is gone from the stream comes as one that cannot be
    /// read. None where the stream or its consumer group is gone. Reading changes nothing.
    async fn read_pending(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        after: EntryId,
        max: usize,
    ) -> Result<Vec<Delivery>, Fault>;

    /// Acknowledges entries (at most 512), and records that the ledger has applied up to `applied`.
    /// Repeatable; does nothing to a partition that has moved on to another epoch.
    async fn ack(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        ids: &[EntryId],
        applied: Sequence,
    ) -> Result<(), Fault>;

    /// Removes acknowledged entries that were written more than `keep` ago, at most about 1,000 a
    /// call, with their orders from the index of decided orders. `applied_up_to` is the last entry
    /// that the ledger has; nothing after it is removed. Returns how many were removed.
    async fn trim(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied_up_to: EntryId,
        keep: Duration,
    ) -> Result<usize, Fault>;

    /// How much there is.
    async fn backlog(&self, partition: PartitionId) -> Result<Backlog, Fault>;
}

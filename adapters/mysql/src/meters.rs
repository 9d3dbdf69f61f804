//! What the connections went through, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one ledger; they only rise.
#[derive(Debug, Default)]
pub struct LedgerMeters {
    pub(crate) connects: AtomicU64,
    pub(crate) connections_dropped: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) lock_wait_timeouts: AtomicU64,
    pub(crate) statement_timeouts: AtomicU64,
    pub(crate) batches_reexamined: AtomicU64,
    pub(crate) batches_abreast: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerCounts {
    /// Connections opened.
    pub connects: u64,
    /// Connections closed because a statement broke off: an error of the network, no answer in
    /// time, or a caller who went away.
    pub connections_dropped: u64,
    /// Transactions that the database chose as the victim of a deadlock. Normal; they are retried.
    pub deadlocks: u64,
    /// Statements that waited too long for a lock. They are retried.
    pub lock_wait_timeouts: u64,
    /// Statements that had no answer in time.
    pub statement_timeouts: u64,
    /// Batches of decisions that the database refused as a whole, so that each decision was looked
    /// at by itself.
    pub batches_reexamined: u64,
    /// Batches of grants whose halves were written at the same time.
    pub batches_abreast: u64,
}

impl LedgerMeters {
    /// The counters now.
    pub fn counts(&self) -> LedgerCounts {
        LedgerCounts {
            connects: self.connects.load(Relaxed),
            connections_dropped: self.connections_dropped.load(Relaxed),
            deadlocks: self.deadlocks.load(Relaxed),
            lock_wait_timeouts: self.lock_wait_timeouts.load(Relaxed),
            statement_timeouts: self.statement_timeouts.load(Relaxed),
            batches_reexamined: self.batches_reexamined.load(Relaxed),
            batches_abreast: self.batches_abreast.load(Relaxed),
        }
    }

    pub(crate) fn add_one(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }
}

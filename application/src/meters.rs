//! Counts of what matters to an operator, raised where it happens.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the process started. Cheap to raise from any thread.
#[derive(Debug, Default)]
pub struct Meters {
    /// Decisions that the ledger confirmed.
    pub confirmed: Counter,
    /// Decisions that the ledger refused: the gate had promised too much.
    pub rejected: Counter,
    /// Entries and decisions that were parked.
    pub parked: Counter,
    /// Batches applied to the ledger.
    pub batches: Counter,
    /// Batches that had to be tried again.
    pub batch_retries: Counter,
    /// Orders that expired.
    pub expired: Counter,
    /// Updates that the gate followed.
    pub updates_followed: Counter,
    /// Sales that were loaded into the gate.
    pub sales_loaded: Counter,
    /// Sales that were loaded again: the gate had lost them, or had them wrong.
    pub sales_reloaded: Counter,
    /// Times a partition began a new epoch.
    pub epochs_begun: Counter,
    /// Grants and places offered to the gate again because Redis may have lost them.
    pub answers_offered: Counter,
}

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Raises it.
    pub fn add(&self, by: usize) {
        self.0.fetch_add(by as u64, Ordering::Relaxed);
    }

    /// Its value now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

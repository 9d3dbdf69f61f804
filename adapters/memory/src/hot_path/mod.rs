//! The hot store: gate, loading, streams, leases, order ids, the delay queue and notices over one
//! state under one lock, as Redis has one thread.

mod admission_stream;
mod claimants;
mod damage;
mod delay_queue;
mod differences;
mod gate_loader;
mod leases;
mod notices;
mod order_ids;
mod partition;
mod purchase_gate;
mod slot;
mod store;
mod stream;
mod survivors;

use std::sync::Arc;

use seckill_application::ports::{Clock, HotPath};
use seckill_domain::Partitions;

use crate::Chaos;
use store::Shared;

pub use damage::Piece;

/// A guard of the hot store that a test takes away, to show what it is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotGuard {
    /// Units that come back go to the head of the waitlist in the same step. Without it they are
    /// anybody's until somebody serves the waitlist.
    PromotionInStep,
}

/// How a hot store is set up.
#[derive(Debug, Clone, Copy)]
pub struct HotPathOptions {
    /// How many partitions there are.
    pub partitions: Partitions,
    /// Decisions of a partition that may stand in its stream and not yet be in the ledger; beyond
    /// them nobody is admitted.
    pub backlog_limit: u64,
    /// The worker number of the order ids, 0 to 1,023.
    pub worker: u16,
    /// How many of the latest writes [`MemoryHotPath::lose_last`] can take back. Each remembered
    /// write costs a copy of its partition, so 0 outside of tests.
    pub undo_depth: usize,
    /// The guard that is taken away; none outside of tests.
    pub lacks: Option<HotGuard>,
}

impl HotPathOptions {
    /// As a deployment has it: room for 100,000 decisions, and nothing is taken back.
    pub const fn new(partitions: Partitions) -> Self {
        Self {
            partitions,
            backlog_limit: 100_000,
            worker: 0,
            undo_depth: 0,
            lacks: None,
        }
    }
}

/// The hot store in memory. Clones are handles on the same store.
///
/// Like a new Redis it has no partitions until [`begin_epoch`]. Its clock is the clock it was
/// given: sale windows, leases and loading tokens go by its wall-clock time, as they go by the
/// server's in Redis.
///
/// [`begin_epoch`]: seckill_application::ports::GateLoader::begin_epoch
#[derive(Clone)]
pub struct MemoryHotPath {
    shared: Arc<Shared>,
}

impl MemoryHotPath {
    /// An empty store.
    pub fn new(options: HotPathOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared::new(options, clock)),
        }
    }

    /// Its ports. Every call gives handles on the same store.
    pub fn ports(&self) -> HotPath {
        HotPath {
            gate: self.shared.clone(),
            loader: self.shared.clone(),
            stream: self.shared.clone(),
            leases: self.shared.clone(),
            order_ids: self.shared.clone(),
            delays: self.shared.clone(),
            notifier: self.shared.clone(),
            feed: self.shared.clone(),
        }
    }

    /// The switchboard of its faults.
    pub fn chaos(&self) -> &Chaos {
        &self.shared.chaos
    }
}

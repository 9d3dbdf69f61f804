//! The stores behind every way, as they are: for misfortune, and for those who judge.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use seckill_application::Fault;
use seckill_application::ports::{
    BatchItem, Clock, Entry, EntryId, HotPath, LedgerPorts, PartitionHead, PartitionState,
    Payments, StreamReply,
};
use seckill_domain::{Decision, Epoch, OrderId, PartitionId, Partitions, Timestamp};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, SandboxPayments, VirtualClock};

use crate::bug::Bug;

/// Most entries that a look into a stream takes.
const ENTRIES_MAX: usize = 512;

/// A clock that may be wrong, over the one time that there is.
pub struct LocalClock {
    time: Arc<VirtualClock>,
    off_ms: AtomicI64,
}

impl LocalClock {
    /// A clock that is right.
    pub fn new(time: Arc<VirtualClock>) -> Arc<Self> {
        let off_ms = AtomicI64::new(0);
        Arc::new(Self { time, off_ms })
    }

    /// Sets it so much ahead of the time, or behind.
    pub fn set_off(&self, millis: i64) {
        self.off_ms.store(millis, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for LocalClock {
    fn now(&self) -> Timestamp {
        let off_ms = self.off_ms.load(Ordering::Relaxed);
        Timestamp::from_millis(self.time.now().as_millis() + off_ms)
    }

    fn monotonic(&self) -> Duration {
        self.time.monotonic()
    }

    async fn sleep(&self, pause: Duration) {
        self.time.sleep(pause).await;
    }
}

/// The stores of a run.
pub struct Stores {
    /// The hot store.
    pub memory: MemoryHotPath,
    /// Its ports.
    pub hot: HotPath,
    /// Its clock.
    pub hot_clock: Arc<LocalClock>,
    /// The ledger's ports.
    pub ledger: LedgerPorts,
    /// The payment provider.
    pub provider: Arc<SandboxPayments>,
    /// How many partitions there are.
    pub partitions: Partitions,
    /// The bug that is planted.
    pub bug: Option<Bug>,
}

impl Stores {
    /// Empty stores. `undo_depth` is how many writes the hot store can lose.
    pub fn new(time: &Arc<VirtualClock>, undo_depth: usize, bug: Option<Bug>) -> Self {
        let partitions = Partitions::new(NonZeroU16::new(2).expect("not zero"));
        let hot_clock = LocalClock::new(time.clone());
        let options = HotPathOptions {
            undo_depth,
            backlog_limit: 60,
            lacks: bug.and_then(Bug::hot_guard),
            ..HotPathOptions::new(partitions)
        };
        let memory = MemoryHotPath::new(options, hot_clock.clone());
        let ledger = MemoryLedger::new(time.clone(), partitions);
        if let Some(guard) = bug.and_then(Bug::ledger_guard) {
            ledger.disarm(guard);
        }
        Self {
            hot: memory.ports(),
            memory,
            hot_clock,
            ledger: ledger.ports(),
            provider: Arc::new(SandboxPayments::default()),
            partitions,
            bug,
        }
    }

    /// The payment provider as a port.
    pub fn payments(&self) -> Arc<dyn Payments> {
        self.provider.clone()
    }

    /// How far the ledger is.
    pub fn head(&self, partition: PartitionId) -> PartitionHead {
        now(self.ledger.admissions.head(partition))
    }

    /// What stands in a partition's stream and is not in the ledger: whatever life it is of.
    pub fn unapplied(&self, partition: PartitionId) -> Vec<Decision> {
        let head = self.head(partition);
        let epochs = match now(self.hot.loader.partition(partition)) {
            PartitionState::Open { epoch, .. } => vec![epoch],
            // The ledger may have begun the next one already.
            PartitionState::Missing => {
                let before = Epoch::new(head.epoch.get().saturating_sub(1));
                vec![before, head.epoch]
            }
        };
        let mut found = Vec::new();
        for epoch in epochs {
            let after = if epoch == head.epoch {
                head.entry
            } else {
                EntryId::START
            };
            for entry in self.entries(partition, epoch, after) {
                found.extend(self.unknown(partition, entry));
            }
        }
        found
    }

    /// What is decided by entries of one decision each that the ledger has not applied, in a stream
    /// of which all can be read.
    pub fn alone(&self, partition: PartitionId) -> Vec<Decision> {
        let PartitionHead { epoch, entry, .. } = self.head(partition);
        let stream = &self.hot.stream;
        let read = now(stream.read_after(partition, epoch, entry, ENTRIES_MAX));
        let StreamReply::Entries(read) = read else {
            return Vec::new();
        };
        let entries: Result<Vec<Entry>, _> = read.into_iter().map(|it| it.body).collect();
        let entries = entries.unwrap_or_default().into_iter();
        let alone = entries.filter(|entry| entry.decisions.len() == 1);
        alone.flat_map(|it| self.unknown(partition, it)).collect()
    }

    /// What of an entry the ledger has not applied.
    fn unknown(&self, partition: PartitionId, entry: Entry) -> Vec<Decision> {
        let mut sequence = entry.first;
        let mut found = Vec::new();
        for decision in entry.decisions {
            let item = BatchItem::Decision {
                sequence,
                entry: EntryId::START,
                decision: decision.clone(),
            };
            if !now(self.ledger.admissions.has_applied(partition, &[item])) {
                found.push(decision);
            }
            sequence = sequence.next();
        }
        found
    }

    /// Whether anything is on its way to the ledger.
    pub fn is_busy(&self) -> bool {
        let mut partitions = self.partitions.all();
        partitions.any(|it| !self.unapplied(it).is_empty())
    }

    fn entries(&self, partition: PartitionId, epoch: Epoch, mut after: EntryId) -> Vec<Entry> {
        let mut found = Vec::new();
        loop {
            let read = now(self
                .hot
                .stream
                .read_after(partition, epoch, after, ENTRIES_MAX));
            let StreamReply::Entries(read) = read else {
                return found;
            };
            let Some(last) = read.last() else {
                return found;
            };
            after = last.id;
            found.extend(read.into_iter().filter_map(|it| it.body.ok()));
        }
    }

    /// Whether the hot store has an order: in a place of its own, or on its way to the ledger.
    pub fn keeps(&self, order: OrderId) -> bool {
        let on_its_way = |decision: &Decision| decision.claim().is_some_and(|it| it.order == order);
        now(self.hot.gate.find_order(order)).is_some()
            || (self.partitions.all()).any(|it| self.unapplied(it).iter().any(on_its_way))
    }

    /// Whether the ledger has an order, parked or not.
    pub fn has(&self, order: OrderId) -> bool {
        !now(self.ledger.ledger.stages(&[order])).is_empty()
    }
}

/// The answer of a store that never waits.
pub fn now<T>(call: impl Future<Output = Result<T, Fault>>) -> T {
    call.now_or_never()
        .expect("a store answers at once")
        .unwrap_or_else(|fault| panic!("{}", fault.chain()))
}

//! One state under one lock, and the steps that change it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seckill_application::Fault;
use seckill_application::ports::Clock;
use seckill_domain::{PartitionId, Snowflake, Timestamp};
use tokio::sync::Notify;

use super::HotPathOptions;
use super::delay_queue::Delays;
use super::leases::Hold;
use super::notices::Notices;
use super::partition::Partition;
use crate::Chaos;

/// What all handles share.
pub(super) struct Shared {
    pub(super) options: HotPathOptions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) chaos: Chaos,
    /// Not hot data: it belongs to the process, and survives whatever happens to the store.
    pub(super) ids: Mutex<Snowflake>,
    store: Mutex<Store>,
    arrivals: Vec<Notify>,
    pub(super) delays_changed: Notify,
    /// Belongs to the processes, as connections do, and is no hot data.
    pub(super) notices: Arc<Notices>,
}

/// The hot data.
pub(super) struct Store {
    pub(super) partitions: Vec<Partition>,
    pub(super) leases: BTreeMap<String, Hold>,
    pub(super) delays: Delays,
    undo_depth: usize,
    undo: VecDeque<Undo>,
    pub(super) remembered: u64,
}

/// What a write replaced.
enum Undo {
    Partition(usize, Box<Partition>),
    Leases(BTreeMap<String, Hold>),
    Delays(Delays),
}

impl Shared {
    pub(super) fn new(options: HotPathOptions, clock: Arc<dyn Clock>) -> Self {
        let count = usize::from(options.partitions.count());
        Self {
            options,
            clock,
            chaos: Chaos::default(),
            ids: Mutex::new(Snowflake::new(options.worker)),
            store: Mutex::new(Store {
                partitions: vec![Partition::default(); count],
                leases: BTreeMap::new(),
                delays: Delays::default(),
                undo_depth: options.undo_depth,
                undo: VecDeque::new(),
                remembered: 0,
            }),
            arrivals: (0..count).map(|_| Notify::new()).collect(),
            delays_changed: Notify::new(),
            notices: Arc::default(),
        }
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One atomic step of a partition, as the call `name`, with the store's time.
    pub(super) fn step<T>(
        &self,
        name: &'static str,
        partition: PartitionId,
        act: impl FnOnce(&mut Partition, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let call = self.chaos.enter(name)?;
        let answer = self.change(name, partition, act)?;
        call.answer(answer)
    }

    /// [`Shared::step`] without its call: for a call of several steps, or for none.
    pub(super) fn change<T>(
        &self,
        name: &'static str,
        partition: PartitionId,
        act: impl FnOnce(&mut Partition, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let now = self.clock.now();
        let at = usize::from(partition.get());
        let arrival = self
            .arrivals
            .get(at)
            .ok_or_else(|| Fault::broken(name, format!("there is no partition {partition}")))?;
        let (answer, wrote) = self.store().step(at, |partition| act(partition, now));
        if wrote {
            arrival.notify_waiters();
        }
        Ok(answer)
    }

    /// Tells when a partition is written next; ask for it before looking.
    pub(super) fn arrival(&self, partition: PartitionId) -> Option<&Notify> {
        self.arrivals.get(usize::from(partition.get()))
    }

    /// Wakes everybody who waits for anything: the store was changed behind their backs.
    pub(super) fn wake_all(&self) {
        for arrival in &self.arrivals {
            arrival.notify_waiters();
        }
        self.delays_changed.notify_waiters();
    }
}

impl Store {
    fn step<T>(&mut self, at: usize, act: impl FnOnce(&mut Partition) -> T) -> (T, bool) {
        let target = &mut self.partitions[at];
        let before = (self.undo_depth > 0).then(|| Box::new(target.clone()));
        let writes = target.writes;
        let answer = act(target);
        let wrote = target.writes != writes;
        if let Some(before) = before.filter(|_| wrote) {
            self.remember(Undo::Partition(at, before));
        }
        (answer, wrote)
    }

    /// Changes the leases; `act` says whether it did.
    pub(super) fn change_leases<T>(
        &mut self,
        act: impl FnOnce(&mut BTreeMap<String, Hold>) -> (T, bool),
    ) -> T {
        let before = (self.undo_depth > 0).then(|| self.leases.clone());
        let (answer, wrote) = act(&mut self.leases);
        if let Some(before) = before.filter(|_| wrote) {
            self.remember(Undo::Leases(before));
        }
        answer
    }

    /// Changes the delay queue; `act` says whether it did.
    pub(super) fn change_delays<T>(&mut self, act: impl FnOnce(&mut Delays) -> (T, bool)) -> T {
        let before = (self.undo_depth > 0).then(|| self.delays.clone());
        let (answer, wrote) = act(&mut self.delays);
        if let Some(before) = before.filter(|_| wrote) {
            self.remember(Undo::Delays(before));
        }
        answer
    }

    fn remember(&mut self, undo: Undo) {
        self.undo.push_back(undo);
        self.remembered += 1;
        if self.undo.len() > self.undo_depth {
            self.undo.pop_front();
        }
    }

    /// Takes the latest writes back. Returns how many were.
    pub(super) fn lose_last(&mut self, writes: usize) -> usize {
        let mut lost = 0;
        while lost < writes {
            match self.undo.pop_back() {
                Some(Undo::Partition(at, before)) => self.partitions[at] = *before,
                Some(Undo::Leases(before)) => self.leases = before,
                Some(Undo::Delays(before)) => self.delays = before,
                None => break,
            }
            lost += 1;
        }
        lost
    }

    /// Empties the store.
    pub(super) fn wipe(&mut self) {
        self.partitions.fill(Partition::default());
        self.leases.clear();
        self.delays = Delays::default();
        self.undo.clear();
    }
}

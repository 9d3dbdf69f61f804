//! The processes, and the ways to them.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{Either, select};
use seckill_domain::{BuyerId, VoucherId};

use crate::coverage::Seen;
use crate::executor::Group;
use crate::link::{Nature, others_first};
use crate::loops;
use crate::node::Node;
use crate::note;
use crate::promises::Promises;
use crate::stores::{Stores, now};
use crate::watch::Watch;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a failover loses is at most so old.
const LOST_MAX: Duration = Duration::from_secs(2);
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// In whose name things are forged.
pub const FORGED: u64 = 999;

/// A deployment: its stores, its processes, and what it has told the world.
pub struct Site {
    /// Time, chance, tasks.
    pub nature: Nature,
    /// The stores.
    pub stores: Arc<Stores>,
    /// What has been seen.
    pub watch: Arc<Watch>,
    /// What buyers were told.
    pub promises: Promises,
    /// The sales, once they are published.
    pub vouchers: Mutex<Vec<VoucherId>>,
    processes: Mutex<Vec<Process>>,
    buyers: u64,
    /// How many writes the hot store had taken at moments of the last two seconds.
    writes: Mutex<VecDeque<u64>>,
}

#[derive(Default)]
struct Process {
    lives: u32,
    node: Option<Arc<Node>>,
}

/// Whether it happened is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer;

impl Site {
    /// So many processes, none of which runs.
    pub fn new(nature: Nature, stores: Arc<Stores>, processes: usize, buyers: u64) -> Arc<Self> {
        Arc::new(Self {
            watch: Arc::new(Watch::new(nature.clone(), stores.clone())),
            nature,
            stores,
            promises: Promises::default(),
            vouchers: Mutex::default(),
            buyers,
            writes: Mutex::default(),
            processes: Mutex::new((0..processes).map(|_| Process::default()).collect()),
        })
    }

    fn processes(&self) -> MutexGuard<'_, Vec<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How many processes there are, running or not.
    pub fn count(&self) -> usize {
        self.processes().len()
    }

    /// Notes how much is written, for ever.
    pub async fn count_writes(self: Arc<Self>) {
        let moments = LOST_MAX.as_millis() / COUNT_EVERY.as_millis();
        loop {
            {
                let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
                writes.push_back(self.stores.memory.writes_remembered());
                if writes.len() as u128 > moments {
                    writes.pop_front();
                }
            }
            self.nature.sleep(COUNT_EVERY).await;
        }
    }

    /// Whether a sale is missing at the gate that is on sale, or closed and not retired: somebody is
    /// loading it.
    pub fn is_loading(&self) -> bool {
        let vouchers = self.on_sale();
        let facts = now(self.stores.hot.gate.facts(&vouchers));
        let missing = vouchers.iter().zip(facts).filter(|(_, it)| it.is_none());
        missing.into_iter().any(|(voucher, _)| {
            let voucher = now(self.stores.ledger.ledger.voucher(*voucher));
            voucher.is_some_and(|voucher| !voucher.retired)
        })
    }

    /// How many writes are so young that a failover may lose them.
    pub fn recent_writes(&self) -> usize {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.stores.memory.writes_remembered();
        let before = writes.front().copied().unwrap_or(written);
        usize::try_from(written - before).unwrap_or(usize::MAX)
    }

    /// Everybody who may buy.
    pub fn buyers(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.buyers
    }

    /// Everybody who may have an order: also the one in whose name others forge.
    pub fn all_buyers(&self) -> impl Iterator<Item = BuyerId> + use<> {
        self.buyers().chain([FORGED]).map(BuyerId::new)
    }

    /// The published sales.
    pub fn on_sale(&self) -> Vec<VoucherId> {
        self.vouchers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What runs of a process.
    pub fn node(&self, process: usize) -> Option<Arc<Node>> {
        self.processes()[process].node.clone()
    }

    /// Everything that runs.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        let processes = self.processes();
        processes.iter().filter_map(|it| it.node.clone()).collect()
    }

    /// Starts a process, if it does not run.
    pub fn start(&self, process: usize) {
        let group = {
            let mut processes = self.processes();
            if processes[process].node.is_some() {
                return;
            }
            processes[process].lives += 1;
            let number = u32::try_from(process + 1).expect("a few");
            Group(number * 100 + processes[process].lives)
        };
        note!(self.nature.trace, "p{} starts", group.0);
        let node = Arc::new(Node::start(&self.nature, &self.stores, &self.watch, group));
        loops::start(&node);
        self.processes()[process].node = Some(node);
    }

    /// Kills a process: what it was doing stops where it is, and what it remembers is gone.
    pub fn kill(&self, process: usize) {
        let Some(node) = self.processes()[process].node.take() else {
            return;
        };
        note!(self.nature.trace, "p{} is killed", node.group.0);
        self.count_meters(&node);
        self.nature.spawner.resume(node.group);
        self.nature.spawner.kill(node.group);
        self.excuse_the_dead();
    }

    /// The documented exception: Redis has lost it, and no process lives that remembered it.
    pub fn excuse_the_dead(&self) {
        let alive: Vec<Group> = self.nodes().iter().map(|node| node.group).collect();
        self.promises.excuse(|order, promise| {
            !alive.iter().any(|it| promise.by.contains(it))
                && self.watch.is_at_risk(order)
                && !self.stores.has(order)
                && !self.stores.keeps(order)
        });
    }

    /// Adds what a process has counted to the coverage; once, when it ends.
    pub fn count_meters(&self, node: &Node) {
        let coverage = &self.nature.coverage;
        coverage.add(Seen::AnswersOffered, node.meters.answers_offered.get());
        coverage.add(Seen::Rebuild, node.meters.sales_loaded.get());
        coverage.add(Seen::Expiry, node.meters.expired.get());
    }

    /// Asks a process for something. The work is the process's, and dies with it, but not with the
    /// client's patience.
    pub async fn ask<T, F>(
        &self,
        process: usize,
        act: impl FnOnce(Arc<Node>) -> F + Send + 'static,
    ) -> Result<(Group, T), NoAnswer>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.on_the_way().await;
        let node = self.node(process).ok_or(NoAnswer)?;
        let group = node.group;
        let (tell, told) = oneshot::channel();
        self.nature.spawner.spawn(group, async move {
            // Whoever asked may have gone away.
            drop(tell.send(act(node).await));
        });
        let patience = Box::pin(self.nature.sleep(PATIENCE));
        let answer = match select(told, patience).await {
            Either::Left((answer, _)) => answer.map_err(|_| NoAnswer)?,
            Either::Right(_) => return Err(NoAnswer),
        };
        self.on_the_way().await;
        Ok((group, answer))
    }

    async fn on_the_way(&self) {
        let dice = &self.nature.dice;
        if dice.chance(300) {
            self.nature.sleep(dice.millis(1..=5)).await;
        } else {
            others_first().await;
        }
    }

    /// The processes that write orders, as far as the ledger has heard.
    pub fn writers(&self) -> Vec<usize> {
        let writers = self.watch.writers();
        let processes = self.processes();
        let is_one = |process: &usize| {
            let node = processes[*process].node.as_ref();
            node.is_some_and(|node| writers.contains(&node.group))
        };
        (0..processes.len()).filter(is_one).collect()
    }

    /// A process, by chance.
    pub fn any_process(&self) -> usize {
        self.nature.dice.below(self.count())
    }
}

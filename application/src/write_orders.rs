//! The order writer: moves one partition's stream into the ledger, strictly in stream order.

mod after_commit;
mod doubtful;
mod items;
mod unread;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{Continuity, OrderId, PartitionId, Timestamp, VoucherId};

use crate::ports::{
    AdmissionBatch, AdmissionLedger, AdmissionStream, Applied, BatchItem, DelayQueue, Delivery,
    EntryId, GateLoader, HotPath, LedgerPorts, PartitionHead, StreamReply, Verdict,
};
use crate::together::both;
use crate::{Fault, Meters, RecoverPartition, WantedSales};
use items::push_items;

/// How a writer reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct WriterSettings {
    /// Most entries of one read, 1 to 512.
    pub read_max: usize,
    /// Decisions after which a batch is full; the entry that fills it is still taken whole.
    pub batch_min: usize,
    /// How long a read waits for something new.
    pub block: Duration,
    /// How long applied entries stay in the stream.
    pub keep: Duration,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self {
            read_max: 200,
            batch_min: 500,
            block: Duration::from_secs(2),
            keep: Duration::from_mins(1),
        }
    }
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Settled this many items.
    Applied(usize),
    /// Nothing to do.
    Idle,
    /// Another writer has drawn a higher fence: stop.
    Fenced,
}

/// Writes one partition under a fence. Made by whoever holds the partition's lease, which only saves
/// work: two writers at once do no harm, the ledger accepts the higher fence alone.
pub struct OrderWriter {
    partition: PartitionId,
    consumer: String,
    settings: WriterSettings,
    stream: Arc<dyn AdmissionStream>,
    loader: Arc<dyn GateLoader>,
    admissions: Arc<dyn AdmissionLedger>,
    delays: Arc<dyn DelayQueue>,
    recover: Arc<RecoverPartition>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
    head: PartitionHead,
    /// Read and not applied.
    ahead: VecDeque<Delivery>,
    /// Given to the ledger, which has not said that it has them.
    given: Vec<EntryId>,
    /// Applied and not acknowledged.
    unacked: Vec<EntryId>,
    /// Applied, and not yet noted when they are due.
    due: Vec<(OrderId, Timestamp)>,
    /// Sales whose gate promised too much, and that have to be loaded again.
    distrusted: BTreeSet<VoucherId>,
    /// Reading from the ledger's position, and not what is new to the consumer group.
    catching_up: bool,
}

impl OrderWriter {
    /// Draws a fence, and takes over what other consumers were given. `consumer` is unique and
    /// stable for the worker.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a writer works with, said once"
    )]
    pub async fn take_over(
        partition: PartitionId,
        consumer: String,
        settings: WriterSettings,
        hot: &HotPath,
        ledger: &LedgerPorts,
        recover: Arc<RecoverPartition>,
        wanted: Arc<WantedSales>,
        meters: Arc<Meters>,
    ) -> Result<Self, Fault> {
        let head = ledger.admissions.take_over(partition).await?;
        let mut writer = Self {
            partition,
            consumer,
            settings,
            stream: hot.stream.clone(),
            loader: hot.loader.clone(),
            admissions: ledger.admissions.clone(),
            delays: hot.delays.clone(),
            recover,
            wanted,
            meters,
            head,
            ahead: VecDeque::new(),
            given: Vec::new(),
            unacked: Vec::new(),
            due: Vec::new(),
            distrusted: BTreeSet::new(),
            catching_up: true,
        };
        writer.claim_pending().await?;
        Ok(writer)
    }

    /// Returns how many entries were given to somebody and are not applied. Also says how far the
    /// ledger is: the last acknowledgement of whoever had them may be lost.
    async fn claim_pending(&mut self) -> Result<usize, Fault> {
        let PartitionHead { epoch, applied, .. } = self.head;
        let pending = self
            .stream
            .take_over(self.partition, epoch, &self.consumer)
            .await?;
        let settled = if pending > 0 {
            self.settle_pending().await?
        } else {
            0
        };
        self.stream.ack(self.partition, epoch, &[], applied).await?;
        Ok(pending.saturating_sub(settled))
    }

    /// Reads and applies one batch, and acknowledges it, unless there is more to apply: then that is
    /// done beside the next one, or by [`OrderWriter::follow_up`]. After a fault the same step may be
    /// tried again: it starts from the ledger's position.
    pub async fn step(&mut self) -> Result<Step, Fault> {
        let step = self.try_step().await;
        if step.is_err() {
            self.start_over();
            self.meters.batch_retries.add(1);
        }
        step
    }

    /// Removes what is applied and old. Bounded.
    pub async fn trim(&self) -> Result<usize, Fault> {
        let PartitionHead { epoch, entry, .. } = self.head;
        self.stream
            .trim(self.partition, epoch, entry, self.settings.keep)
            .await
    }

    fn start_over(&mut self) {
        self.ahead.clear();
        self.catching_up = true;
    }

    async fn try_step(&mut self) -> Result<Step, Fault> {
        self.unload_distrusted().await?;
        if self.catching_up && self.ahead.is_empty() && !self.refresh().await? {
            return Ok(Step::Fenced);
        }
        if self.ahead.is_empty() && !self.read().await? {
            return self.idle().await;
        }
        let (items, up_to) = self.next_batch().await?;
        if items.is_empty() {
            self.follow_up().await?;
            return Ok(Step::Applied(0));
        }
        self.apply(items, up_to).await
    }

    /// Looks where the ledger is. `false` if another writer has taken over.
    async fn refresh(&mut self) -> Result<bool, Fault> {
        let head = self.admissions.head(self.partition).await?;
        if head.fence != self.head.fence {
            // It keeps its own: a step that came nevertheless would write under the other's.
            return Ok(false);
        }
        let moved = head.epoch != self.head.epoch;
        self.head = head;
        if moved {
            self.unacked.clear();
            self.given.clear();
        }
        // A commit whose answer was lost has settled them.
        let given = self.given.drain(..).filter(|id| *id <= head.entry);
        self.unacked.extend(given);
        Ok(true)
    }

    /// Whether anything was read.
    async fn read(&mut self) -> Result<bool, Fault> {
        let WriterSettings {
            read_max, block, ..
        } = self.settings;
        let PartitionHead { epoch, entry, .. } = self.head;
        let mut reply = StreamReply::Entries(Vec::new());
        if self.catching_up {
            reply = self
                .stream
                .read_after(self.partition, epoch, entry, read_max)
                .await?;
            self.catching_up = matches!(&reply, StreamReply::Entries(read) if !read.is_empty());
        }
        if matches!(&reply, StreamReply::Entries(read) if read.is_empty()) {
            reply = self
                .stream
                .read_new(self.partition, epoch, &self.consumer, read_max, block)
                .await?;
        }
        if let StreamReply::Entries(read) = &reply
            && !self.catching_up
            && self.passes_over(read).await?
        {
            self.catching_up = true;
            reply = self
                .stream
                .read_after(self.partition, epoch, entry, read_max)
                .await?;
        }
        match reply {
            StreamReply::Entries(read) => self.ahead.extend(read),
            StreamReply::Missing => {
                self.recover.run(self.partition).await?;
                self.start_over();
            }
        }
        Ok(!self.ahead.is_empty())
    }

    /// Whether something stands in the stream between the ledger's position and what was delivered:
    /// another consumer was given it, who may have been fenced since. Mostly a gap in the numbers
    /// tells; but after a failover that lost decisions, what was passed over may have numbers that
    /// the ledger has applied already, and what follows seems to continue it.
    async fn passes_over(&self, read: &[Delivery]) -> Result<bool, Fault> {
        let PartitionHead { epoch, entry, .. } = self.head;
        let Some(first) = read.iter().map(|it| it.id).find(|id| *id > entry) else {
            return Ok(false);
        };
        let next = self
            .stream
            .read_after(self.partition, epoch, entry, 1)
            .await?;
        let StreamReply::Entries(next) = next else {
            return Ok(false);
        };
        Ok(next.first().is_some_and(|it| it.id < first))
    }

    /// Nothing came: see whether the hot data is still what it was and whether the partition has
    /// moved on, and acknowledge what is left.
    async fn idle(&mut self) -> Result<Step, Fault> {
        let epoch = self.head.epoch;
        self.recover.run(self.partition).await?;
        if !self.refresh().await? {
            return Ok(Step::Fenced);
        }
        if self.head.epoch == epoch {
            self.follow_up().await?;
            // An acknowledgement was lost, by a failover or on its way; or somebody was given
            // entries and has gone without applying them, and the group will not deliver them again.
            let backlog = self.stream.backlog(self.partition).await?;
            if backlog.pending > 0 {
                if self.claim_pending().await? > 0 {
                    self.start_over();
                }
            } else if backlog.decisions > 0 {
                self.stream
                    .ack(self.partition, epoch, &[], self.head.applied)
                    .await?;
            }
        } else {
            self.start_over();
        }
        Ok(Step::Idle)
    }

    /// The next items that continue the ledger, and the last entry that they complete. Empty if
    /// what was read needs no applying.
    async fn next_batch(&mut self) -> Result<(Vec<BatchItem>, EntryId), Fault> {
        let mut items = Vec::with_capacity(self.settings.batch_min);
        let mut applied = self.head.applied;
        let mut up_to = self.head.entry;
        let mut repeats = Vec::new();
        while items.len() < self.settings.batch_min {
            let Some(delivery) = self.ahead.pop_front() else {
                break;
            };
            let id = delivery.id;
            if id <= self.head.entry {
                repeats.push(delivery);
                continue;
            }
            let read = match &delivery.body {
                Ok(entry) => Continuity::judge(applied, entry.first, entry.decisions.len()),
                Err(_) => Continuity::Next,
            };
            match read {
                Continuity::Next => {
                    let taken = self.taken_by(&delivery, applied).await?;
                    applied = push_items(&mut items, delivery, applied, taken);
                }
                Continuity::Replay | Continuity::Broken if !items.is_empty() => {
                    // Settle what is sound first.
                    self.ahead.push_front(delivery);
                    break;
                }
                Continuity::Replay | Continuity::Broken => {
                    match self.doubtful(delivery, read).await? {
                        Some(item) => items.push(item),
                        None => continue,
                    }
                }
            }
            up_to = id;
            self.given.push(id);
        }
        if !self.are_known(repeats).await? {
            items.clear();
            self.given.clear();
        }
        Ok((items, up_to))
    }

    async fn apply(&mut self, items: Vec<BatchItem>, up_to: EntryId) -> Result<Step, Fault> {
        let batch = AdmissionBatch {
            partition: self.partition,
            head: self.head,
            items,
            up_to,
        };
        let (applied, told) = both(self.admissions.apply(&batch), self.tell()).await;
        let told = self.told(told);
        match applied? {
            Applied::Committed {
                verdicts,
                head,
                due,
            } => {
                self.head = head;
                self.unacked.append(&mut self.given);
                self.due = due;
                self.meters.batches.add(1);
                self.judge(&batch.items, &verdicts);
                told?;
                self.unload_distrusted().await?;
                if self.ahead.is_empty() {
                    self.follow_up().await?;
                }
                Ok(Step::Applied(verdicts.len()))
            }
            Applied::Stale(head) if head.fence != self.head.fence => Ok(Step::Fenced),
            Applied::Stale(_) => {
                self.start_over();
                self.unacked.clear();
                self.given.clear();
                Ok(Step::Idle)
            }
        }
    }

    /// Tells an operator what the ledger did not take, and has the gate loaded again.
    fn judge(&mut self, items: &[BatchItem], verdicts: &[Verdict]) {
        let mut confirmed = 0;
        for (item, verdict) in items.iter().zip(verdicts) {
            match (verdict, item) {
                (Verdict::Confirmed | Verdict::AlreadyThere, _) => confirmed += 1,
                (
                    Verdict::Rejected(reason),
                    BatchItem::Decision {
                        sequence, decision, ..
                    },
                ) => {
                    let voucher = decision.voucher();
                    tracing::error!(%sequence, ?decision, ?reason, %voucher,
                        "the ledger refused what the gate granted");
                    self.meters.rejected.add(1);
                    self.distrusted.insert(voucher);
                }
                (verdict, item) => {
                    tracing::error!(?item, ?verdict, "parked");
                    self.meters.parked.add(1);
                }
            }
        }
        self.meters.confirmed.add(confirmed);
    }

    /// Has sales loaded again; what does not get through is tried again in the next step.
    async fn unload_distrusted(&mut self) -> Result<(), Fault> {
        while let Some(voucher) = self.distrusted.first().copied() {
            self.loader.unload(voucher).await?;
            self.wanted.request(voucher);
            self.distrusted.remove(&voucher);
        }
        Ok(())
    }
}

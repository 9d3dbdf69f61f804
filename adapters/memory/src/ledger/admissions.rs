//! The writer's side of the ledger.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, PartitionHead,
};
use seckill_domain::{Decision, Epoch, PartitionId, Timestamp};

use super::book::{Book, Mark, PartitionRow};
use super::changes::Changes;
use super::locks::Row;
use super::settlement::Settlement;
use super::{LOCK_WAIT_MAX, MemoryLedger};
use crate::chaos::at_most;
use crate::patience::Patience;

const ITEMS_MAX: usize = 1_024;

#[async_trait]
impl AdmissionLedger for MemoryLedger {
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.on_partition("admission_ledger.head", partition, |row| row.head)
    }

    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.on_partition("admission_ledger.take_over", partition, |row| {
            row.head.fence = row.head.fence.next();
            row.head
        })
    }

    async fn next_epoch(
        &self,
        partition: PartitionId,
        seen: Epoch,
    ) -> Result<PartitionHead, Fault> {
        self.on_partition("admission_ledger.next_epoch", partition, |row| {
            if row.head.epoch == seen {
                row.head.epoch = seen.next();
                row.head.entry = PartitionRow::default().head.entry;
            }
            row.head
        })
    }

    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        const APPLY: &str = "admission_ledger.apply";
        at_most(APPLY, batch.items.len(), ITEMS_MAX)?;
        check_numbers(APPLY, batch)?;
        let call = self.shared.chaos.enter(APPLY)?;
        let rows = rows_of(batch.items.iter().filter_map(BatchItem::decision));
        let mut patience = Patience::of(&*self.shared.clock, LOCK_WAIT_MAX);
        loop {
            let unlocked = self.shared.unlocked.notified();
            let now = self.shared.clock.now();
            if let Some(applied) = self.try_apply(batch, &rows, now) {
                return call.answer(applied);
            }
            if !patience.outlasts(unlocked).await {
                return Err(Fault::unavailable(APPLY, "waited too long for a row lock"));
            }
        }
    }

    async fn has_applied(
        &self,
        partition: PartitionId,
        items: &[BatchItem],
    ) -> Result<bool, Fault> {
        self.on_partition("admission_ledger.has_applied", partition, |row| {
            items.iter().all(|item| match item {
                BatchItem::Unreadable { .. } => true,
                BatchItem::Decision {
                    sequence, decision, ..
                } => row.has_applied(*sequence, decision),
            })
        })
    }

    async fn settle_partitions(&self, count: u16) -> Result<u16, Fault> {
        let call = self
            .shared
            .chaos
            .enter("admission_ledger.settle_partitions")?;
        let mut state = self.state();
        let settled = *state.book.partition_count.get_or_insert(count);
        drop(state);
        call.answer(settled)
    }
}

impl MemoryLedger {
    fn on_partition<T>(
        &self,
        name: &'static str,
        partition: PartitionId,
        act: impl FnOnce(&mut PartitionRow) -> T,
    ) -> Result<T, Fault> {
        let call = self.shared.chaos.enter(name)?;
        let answer = act(self.state().book.partition(partition));
        call.answer(answer)
    }

    /// Applies a batch in one step; `None` while a transaction has a row that it needs.
    fn try_apply(&self, batch: &AdmissionBatch, rows: &[Row], now: Timestamp) -> Option<Applied> {
        let mut state = self.state();
        let head = state.book.partition(batch.partition).head;
        if head != batch.head {
            return Some(Applied::Stale(head));
        }
        let idle = state.locks.is_idle();
        if !idle && rows.iter().any(|row| state.locks.is_taken(row)) {
            return None;
        }
        Some(state.book.apply(batch, now))
    }
}

impl Book {
    fn apply(&mut self, batch: &AdmissionBatch, now: Timestamp) -> Applied {
        let mut settlement = Settlement {
            book: self,
            partition: batch.partition,
            now,
            changes: Changes::default(),
            due: Vec::new(),
        };
        let verdicts = batch
            .items
            .iter()
            .map(|item| settlement.settle(item))
            .collect();
        let (changes, due) = (settlement.changes, settlement.due);
        self.commit(changes);
        let row = self.partition(batch.partition);
        for item in &batch.items {
            match item {
                BatchItem::Decision { decision, .. } => row.apply([Mark::of(decision)]),
                BatchItem::Unreadable { taken, .. } => {
                    let count = taken.map_or(0, |it| 1 + it.last.get() - it.first.get());
                    row.apply((0..count).map(|_| Mark::UNREADABLE));
                }
            }
        }
        row.head.entry = batch.up_to;
        Applied::Committed {
            verdicts,
            head: row.head,
            due,
        }
    }
}

/// Refuses a batch whose numbers do not go on from its head, one by one.
fn check_numbers(name: &'static str, batch: &AdmissionBatch) -> Result<(), Fault> {
    let mut applied = batch.head.applied;
    for item in &batch.items {
        applied = item
            .after(applied)
            .map_err(|gap| Fault::broken(name, gap))?;
    }
    Ok(())
}

/// The rows that decisions need.
pub(super) fn rows_of<'a>(decisions: impl IntoIterator<Item = &'a Decision>) -> Vec<Row> {
    let mut rows = Vec::new();
    for decision in decisions {
        rows.push(Row::Voucher(decision.voucher()));
        if let Some(claim) = decision.claim() {
            rows.push(Row::Order(claim.order));
            rows.push(Row::Holding(claim.voucher, claim.buyer));
        }
        if let Decision::Withdrawn { adjustment, .. } = decision {
            rows.push(Row::Adjustment(*adjustment));
        }
    }
    rows
}

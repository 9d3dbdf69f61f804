//! Decisions of the gate, applied in batches.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, EntryId, PartitionHead,
};
use seckill_domain::{Epoch, Fence, PartitionId, Sequence};

use crate::fault::Trouble;
use crate::row::{self, get};
use crate::session::{Session, give_up, statement};
use crate::store::Store;

mod abreast;
mod again;
mod apply;
mod judge;
mod known;
mod plan;
mod replay;
mod slice;
mod writes;

pub(crate) use again::judge_again;
pub(crate) use writes::EVERY_BATCH;

/// What applies a batch.
const PORT: &str = "admissions.apply";

/// The position of a partition that nothing was applied to.
pub(crate) const UNTOUCHED: PartitionHead = PartitionHead {
    epoch: Epoch::new(1),
    fence: Fence::new(0),
    applied: Sequence::new(0),
    entry: EntryId::START,
};

const HEAD: &str = "SELECT fence, epoch, applied_seq, applied_ms, applied_no FROM partitions \
     WHERE partition_id = ?";

/// Reads a partition's position within a transaction.
async fn read_head(
    session: &mut Session,
    partition: PartitionId,
) -> Result<PartitionHead, Trouble> {
    let row = session.row(statement(HEAD).bind(partition.get())).await?;
    row.as_ref().map_or(Ok(UNTOUCHED), row::head)
}

impl Store {
    /// Makes sure that a partition has a row.
    async fn create_partition(
        &self,
        port: &'static str,
        partition: PartitionId,
    ) -> Result<(), Fault> {
        const SQL: &str = "INSERT INTO partitions \
               (partition_id, fence, epoch, applied_seq, applied_ms, applied_no) \
             VALUES (?, ?, ?, 0, 0, 0) ON DUPLICATE KEY UPDATE partition_id = partition_id";
        let write = || {
            statement(SQL)
                .bind(partition.get())
                .bind(UNTOUCHED.fence.get())
                .bind(UNTOUCHED.epoch.get())
        };
        self.write(port, write).await.map(drop)
    }

    async fn partition_head(
        &self,
        port: &'static str,
        partition: PartitionId,
    ) -> Result<PartitionHead, Fault> {
        let read = || statement(HEAD).bind(partition.get());
        let mut found = self.read_row(port, read).await?;
        if found.is_none() {
            self.create_partition(port, partition).await?;
            found = self.read_row(port, read).await?;
        }
        let row = found.ok_or_else(|| Fault::broken(port, "a partition without a row"))?;
        row::head(&row).map_err(|trouble| trouble.before_commit(port))
    }
}

#[async_trait]
impl AdmissionLedger for Store {
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.partition_head("admissions.head", partition).await
    }

    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        const PORT: &str = "admissions.take_over";
        self.partition_head(PORT, partition).await?;
        let mut session = self.begin_writing(PORT).await?;
        match draw_fence(&mut session, partition).await {
            Ok(head) => {
                let committed = session.commit().await;
                committed.map_err(|trouble| trouble.at_commit(PORT))?;
                self.keep(session);
                Ok(head)
            }
            Err(trouble) => Err(give_up(session, PORT, trouble).await),
        }
    }

    async fn next_epoch(
        &self,
        partition: PartitionId,
        seen: Epoch,
    ) -> Result<PartitionHead, Fault> {
        const PORT: &str = "admissions.next_epoch";
        const SQL: &str = "UPDATE partitions SET epoch = epoch + 1, applied_ms = 0, applied_no = 0 \
             WHERE partition_id = ? AND epoch = ?";
        self.partition_head(PORT, partition).await?;
        let write = || statement(SQL).bind(partition.get()).bind(seen.get());
        self.write(PORT, write).await?;
        self.partition_head(PORT, partition).await
    }

    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        apply::apply(self, batch).await
    }

    async fn has_applied(
        &self,
        partition: PartitionId,
        items: &[BatchItem],
    ) -> Result<bool, Fault> {
        replay::has_applied(self, partition, items).await
    }

    async fn settle_partitions(&self, count: u16) -> Result<u16, Fault> {
        const PORT: &str = "admissions.settle_partitions";
        const RECORD: &str = "INSERT INTO deployment (id, partitions) VALUES (1, ?) \
             ON DUPLICATE KEY UPDATE id = id";
        const READ: &str = "SELECT partitions FROM deployment WHERE id = 1";
        self.write(PORT, || statement(RECORD).bind(count)).await?;
        let row = self.read_row(PORT, || statement(READ)).await?;
        let row = row.ok_or_else(|| Fault::broken(PORT, "no number of partitions"))?;
        get(&row, "partitions").map_err(|trouble| trouble.before_commit(PORT))
    }
}

async fn draw_fence(
    session: &mut Session,
    partition: PartitionId,
) -> Result<PartitionHead, Trouble> {
    const SQL: &str = "UPDATE partitions SET fence = fence + 1 WHERE partition_id = ?";
    session
        .execute(statement(SQL).bind(partition.get()))
        .await?;
    read_head(session, partition).await
}

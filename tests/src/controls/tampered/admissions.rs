//! The writer's side of a ledger.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, PartitionHead,
};
use seckill_domain::{Epoch, PartitionId};

use crate::controls::Checkpoint;

/// Stops a batch before it is applied, or lets any fence pass.
pub struct TamperedAdmissions {
    /// What it stands before.
    pub inner: Arc<dyn AdmissionLedger>,
    /// Where a batch stops that was read and is not applied.
    pub before_apply: Option<Checkpoint>,
    /// Puts the fence in force in the place of the batch's own: the fence is off.
    pub any_fence: bool,
}

#[async_trait]
impl AdmissionLedger for TamperedAdmissions {
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.inner.head(partition).await
    }

    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.inner.take_over(partition).await
    }

    async fn next_epoch(
        &self,
        partition: PartitionId,
        seen: Epoch,
    ) -> Result<PartitionHead, Fault> {
        self.inner.next_epoch(partition, seen).await
    }

    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        if let Some(checkpoint) = &self.before_apply {
            checkpoint.stop().await;
        }
        let mut batch = batch.clone();
        if self.any_fence {
            batch.head.fence = self.inner.head(batch.partition).await?.fence;
        }
        self.inner.apply(&batch).await
    }

    async fn has_applied(
        &self,
        partition: PartitionId,
        items: &[BatchItem],
    ) -> Result<bool, Fault> {
        self.inner.has_applied(partition, items).await
    }

    async fn settle_partitions(&self, count: u16) -> Result<u16, Fault> {
        self.inner.settle_partitions(count).await
    }
}

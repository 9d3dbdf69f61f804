//! The loading protocol.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    EpochBegun, GateLoader, LoadBegun, LoadChunk, LoadStep, LoadToken, Offered, OpenSale, Opened,
    PartitionState, Survivors,
};
use seckill_domain::{Claim, Epoch, PartitionId, Seat, Sequence, VoucherId};

use crate::controls::Checkpoint;

/// Makes a loader hasty, or stops it.
pub struct TamperedLoader {
    /// What it stands before.
    pub inner: Arc<dyn GateLoader>,
    /// Tells the loader that nothing was decided before: it does not wait for the ledger before it
    /// takes its snapshot.
    pub hasty: bool,
    /// Where a loader stops that has appended survivors again.
    pub after_append: Option<Checkpoint>,
}

impl TamperedLoader {
    /// The last decision, as the loader is told.
    fn told(&self, sequence: Sequence) -> Sequence {
        if self.hasty {
            Sequence::default()
        } else {
            sequence
        }
    }
}

#[async_trait]
impl GateLoader for TamperedLoader {
    async fn partition(&self, partition: PartitionId) -> Result<PartitionState, Fault> {
        self.inner.partition(partition).await
    }

    async fn begin_epoch(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied: Sequence,
    ) -> Result<EpochBegun, Fault> {
        self.inner.begin_epoch(partition, epoch, applied).await
    }

    async fn begin_load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        ttl: Duration,
    ) -> Result<LoadBegun, Fault> {
        let begun = self.inner.begin_load(voucher, token, ttl).await?;
        Ok(match begun {
            LoadBegun::Begun { epoch, sequence } => LoadBegun::Begun {
                epoch,
                sequence: self.told(sequence),
            },
            other => other,
        })
    }

    async fn survivors(&self, voucher: VoucherId, cursor: u64) -> Result<Survivors, Fault> {
        self.inner.survivors(voucher, cursor).await
    }

    async fn append_again(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        holders: &[Claim],
        seats: &[Seat],
    ) -> Result<LoadStep, Fault> {
        let step = self
            .inner
            .append_again(voucher, token, holders, seats)
            .await?;
        if let Some(checkpoint) = &self.after_append {
            checkpoint.stop().await;
        }
        Ok(match step {
            LoadStep::Done(sequence) => LoadStep::Done(self.told(sequence)),
            LoadStep::NotMine => LoadStep::NotMine,
        })
    }

    async fn load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        chunk: &LoadChunk,
        place: usize,
    ) -> Result<LoadStep, Fault> {
        self.inner.load(voucher, token, chunk, place).await
    }

    async fn open(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        sale: &OpenSale,
        chunks: usize,
    ) -> Result<Opened, Fault> {
        self.inner.open(voucher, token, sale, chunks).await
    }

    async fn abandon(&self, voucher: VoucherId, token: &LoadToken) -> Result<(), Fault> {
        self.inner.abandon(voucher, token).await
    }

    async fn unload(&self, voucher: VoucherId) -> Result<(), Fault> {
        self.inner.unload(voucher).await
    }

    async fn offer(
        &self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
    ) -> Result<Offered, Fault> {
        self.inner.offer(voucher, claims, seats).await
    }

    async fn lose(&self, voucher: VoucherId, claims: &[Claim]) -> Result<Offered, Fault> {
        self.inner.lose(voucher, claims).await
    }
}

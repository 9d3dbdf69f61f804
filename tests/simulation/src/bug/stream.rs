//! Bugs of a stream, and of what is offered to a gate.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionStream, Backlog, Delivery, EntryId, EpochBegun, GateLoader, LoadBegun, LoadChunk,
    LoadStep, LoadToken, Offered, OpenSale, Opened, PartitionState, StreamReply, Survivors,
};
use seckill_domain::{Claim, Epoch, PartitionId, Seat, Sequence, VoucherId};

use super::{Bug, hand_on};

/// Removes entries as soon as they are read, or leaves to the dead what is theirs.
pub(super) struct Careless {
    pub(super) inner: Arc<dyn AdmissionStream>,
    pub(super) bug: Bug,
}

hand_on!(AdmissionStream for Careless {
    read_after(partition: PartitionId, epoch: Epoch, after: EntryId, max: usize) -> StreamReply;
    read_pending(partition: PartitionId, epoch: Epoch, consumer: &str, after: EntryId, max: usize)
        -> Vec<Delivery>;
    ack(partition: PartitionId, epoch: Epoch, ids: &[EntryId], applied: Sequence) -> ();
    trim(partition: PartitionId, epoch: Epoch, applied_up_to: EntryId, keep: Duration) -> usize;
    backlog(partition: PartitionId) -> Backlog;
} but {
    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault> {
        let reply = self.inner.read_new(partition, epoch, consumer, max, wait).await?;
        if let (Bug::AckBeforeCommit, StreamReply::Entries(read)) = (self.bug, &reply)
            && let Some(last) = read.last()
        {
            let ids: Vec<EntryId> = read.iter().map(|it| it.id).collect();
            self.inner.ack(partition, epoch, &ids, Sequence::default()).await?;
            self.inner.trim(partition, epoch, last.id, Duration::ZERO).await?;
        }
        Ok(reply)
    }

    async fn take_over(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
    ) -> Result<usize, Fault> {
        if self.bug == Bug::NoTakeOver {
            return Ok(0);
        }
        self.inner.take_over(partition, epoch, consumer).await
    }
});

/// Takes what is offered, and does nothing with it.
pub(super) struct Silent {
    pub(super) inner: Arc<dyn GateLoader>,
}

hand_on!(GateLoader for Silent {
    partition(partition: PartitionId) -> PartitionState;
    begin_epoch(partition: PartitionId, epoch: Epoch, applied: Sequence) -> EpochBegun;
    begin_load(voucher: VoucherId, token: &LoadToken, ttl: Duration) -> LoadBegun;
    survivors(voucher: VoucherId, cursor: u64) -> Survivors;
    append_again(voucher: VoucherId, token: &LoadToken, holders: &[Claim], seats: &[Seat]) -> LoadStep;
    load(voucher: VoucherId, token: &LoadToken, chunk: &LoadChunk, place: usize) -> LoadStep;
    open(voucher: VoucherId, token: &LoadToken, sale: &OpenSale, chunks: usize) -> Opened;
    lose(voucher: VoucherId, claims: &[Claim]) -> Offered;
    abandon(voucher: VoucherId, token: &LoadToken) -> ();
    unload(voucher: VoucherId) -> ();
} but {
    async fn offer(&self, _: VoucherId, _: &[Claim], _: &[Seat]) -> Result<Offered, Fault> {
        Ok(Offered::Taken)
    }
});

//! What the gate decided, in order.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{AdmissionStream, Backlog, Delivery, EntryId, StreamReply};
use seckill_domain::{Epoch, PartitionId, Sequence, Timestamp};

use super::partition::Partition;
use super::store::Shared;
use crate::chaos::at_most;
use crate::patience::Patience;

const READ_MAX: usize = 512;
const ACK_MAX: usize = 512;
const TRIM_MAX: usize = 1_000;

#[async_trait]
impl AdmissionStream for Shared {
    async fn read_after(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        after: EntryId,
        max: usize,
    ) -> Result<StreamReply, Fault> {
        const READ_AFTER: &str = "admission_stream.read_after";
        at_most(READ_AFTER, max, READ_MAX)?;
        self.step(READ_AFTER, partition, |partition, _| {
            let stream = partition.stream_of(epoch);
            stream.map_or(StreamReply::Missing, |stream| {
                StreamReply::Entries(stream.read_after(after, max))
            })
        })
    }

    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault> {
        const READ_NEW: &str = "admission_stream.read_new";
        at_most(READ_NEW, max, READ_MAX)?;
        let call = self.chaos.enter(READ_NEW)?;
        let mut patience = Patience::of(&*self.clock, wait);
        loop {
            let arrival = self.arrival(partition).map(|arrival| arrival.notified());
            let reply = self.change(READ_NEW, partition, |partition, _| {
                partition.read_new(epoch, consumer, max)
            })?;
            let nothing = StreamReply::Entries(Vec::new());
            if reply != nothing || wait.is_zero() {
                return call.answer(reply);
            }
            let Some(arrival) = arrival else {
                return call.answer(reply);
            };
            let came = patience.outlasts(arrival).await;
            self.chaos.still_up(READ_NEW)?;
            if !came {
                return call.answer(nothing);
            }
        }
    }

    async fn take_over(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
    ) -> Result<usize, Fault> {
        self.step("admission_stream.take_over", partition, |partition, _| {
            partition.writes += 1;
            let stream = partition.stream_of(epoch);
            stream.map_or(0, |stream| stream.take_over(consumer))
        })
    }

    async fn read_pending(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        after: EntryId,
        max: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        const READ_PENDING: &str = "admission_stream.read_pending";
        at_most(READ_PENDING, max, READ_MAX)?;
        self.step(READ_PENDING, partition, |partition, _| {
            let stream = partition.stream_of(epoch);
            stream.map_or_else(Vec::new, |stream| stream.pending_of(consumer, after, max))
        })
    }

    async fn ack(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        ids: &[EntryId],
        applied: Sequence,
    ) -> Result<(), Fault> {
        const ACK: &str = "admission_stream.ack";
        at_most(ACK, ids.len(), ACK_MAX)?;
        self.step(ACK, partition, |partition, _| {
            partition.ack(epoch, ids, applied);
        })
    }

    async fn trim(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied_up_to: EntryId,
        keep: Duration,
    ) -> Result<usize, Fault> {
        self.step("admission_stream.trim", partition, |partition, now| {
            partition.trim(epoch, applied_up_to, minus(now, keep))
        })
    }

    async fn backlog(&self, partition: PartitionId) -> Result<Backlog, Fault> {
        self.step("admission_stream.backlog", partition, |partition, _| {
            partition.backlog()
        })
    }
}

impl Partition {
    fn read_new(&mut self, epoch: Epoch, consumer: &str, max: usize) -> StreamReply {
        let Some(stream) = self.stream_of(epoch) else {
            return StreamReply::Missing;
        };
        let delivered = stream.deliver(consumer, max);
        if !delivered.is_empty() {
            self.writes += 1;
        }
        StreamReply::Entries(delivered)
    }

    fn ack(&mut self, epoch: Epoch, ids: &[EntryId], applied: Sequence) {
        if let Some(stream) = self.stream_of(epoch) {
            stream.ack(ids);
        }
        if let Some(meta) = self.meta.as_mut().filter(|meta| meta.epoch == epoch) {
            meta.applied = meta.applied.max(applied);
        }
        self.writes += 1;
    }

    fn trim(&mut self, epoch: Epoch, up_to: EntryId, written: Timestamp) -> usize {
        let (Some(stream), Some(decided)) = (&mut self.stream, &mut self.decided) else {
            return 0;
        };
        if stream.epoch != epoch {
            return 0;
        }
        let trimmed = stream.trim(up_to, written, TRIM_MAX);
        for (id, body) in &trimmed {
            if let Ok(entry) = body {
                decided.forget(*id, &entry.decisions);
            }
        }
        if !trimmed.is_empty() {
            self.writes += 1;
        }
        trimmed.len()
    }

    fn backlog(&self) -> Backlog {
        let behind = self.meta.map_or(0, |meta| {
            meta.sequence.get().saturating_sub(meta.applied.get())
        });
        let count = |of: fn(&super::stream::Stream) -> usize| {
            self.stream.as_ref().map_or(0, |stream| of(stream) as u64)
        };
        Backlog {
            decisions: behind,
            pending: count(super::stream::Stream::pending),
            length: count(super::stream::Stream::len),
        }
    }
}

fn minus(now: Timestamp, keep: Duration) -> Timestamp {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(keep))
}

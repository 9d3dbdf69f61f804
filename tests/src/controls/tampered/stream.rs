//! Admission streams.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{AdmissionStream, Backlog, Delivery, EntryId, StreamReply};
use seckill_domain::{Epoch, PartitionId, Sequence};

/// When an entry is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckOrder {
    /// When the writer says so: after its commit.
    AfterCommit,
    /// As soon as it was read: the guard is off.
    OnRead,
}

/// A stream used as a plain message broker is: what is acknowledged counts as done, and is not read
/// again. Takes away the layer behind the order of commit and acknowledgement, which is that our
/// writers go on from the ledger's position, acknowledged or not.
pub struct BrokerStream {
    inner: Arc<dyn AdmissionStream>,
    order: AckOrder,
    done: Mutex<BTreeSet<EntryId>>,
}

impl BrokerStream {
    /// Before a stream in which nothing was acknowledged yet.
    pub fn new(inner: Arc<dyn AdmissionStream>, order: AckOrder) -> Self {
        Self {
            inner,
            order,
            done: Mutex::default(),
        }
    }

    /// Hides what is done.
    fn undone(&self, reply: StreamReply) -> StreamReply {
        let done = self.done.lock().unwrap();
        match reply {
            StreamReply::Entries(mut read) => {
                read.retain(|delivery| !done.contains(&delivery.id));
                StreamReply::Entries(read)
            }
            StreamReply::Missing => StreamReply::Missing,
        }
    }

    async fn read(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        reply: StreamReply,
    ) -> Result<StreamReply, Fault> {
        if let (AckOrder::OnRead, StreamReply::Entries(read)) = (self.order, &reply)
            && !read.is_empty()
        {
            let ids: Vec<EntryId> = read.iter().map(|delivery: &Delivery| delivery.id).collect();
            self.ack(partition, epoch, &ids, Sequence::default())
                .await?;
        }
        Ok(reply)
    }
}

#[async_trait]
impl AdmissionStream for BrokerStream {
    async fn read_after(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        after: EntryId,
        max: usize,
    ) -> Result<StreamReply, Fault> {
        let reply = self.inner.read_after(partition, epoch, after, max).await?;
        self.read(partition, epoch, self.undone(reply)).await
    }

    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault> {
        let reply = self
            .inner
            .read_new(partition, epoch, consumer, max, wait)
            .await?;
        self.read(partition, epoch, reply).await
    }

    async fn take_over(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
    ) -> Result<usize, Fault> {
        self.inner.take_over(partition, epoch, consumer).await
    }

    async fn read_pending(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        after: EntryId,
        max: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        self.inner
            .read_pending(partition, epoch, consumer, after, max)
            .await
    }

    async fn ack(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        ids: &[EntryId],
        applied: Sequence,
    ) -> Result<(), Fault> {
        self.inner.ack(partition, epoch, ids, applied).await?;
        self.done.lock().unwrap().extend(ids);
        Ok(())
    }

    async fn trim(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied_up_to: EntryId,
        keep: Duration,
    ) -> Result<usize, Fault> {
        self.inner.trim(partition, epoch, applied_up_to, keep).await
    }

    async fn backlog(&self, partition: PartitionId) -> Result<Backlog, Fault> {
        self.inner.backlog(partition).await
    }
}

//! Between the looks: the ledger applies what the gate had decided at the first.

use std::collections::BTreeSet;
use std::time::Duration;

use seckill_domain::{Epoch, PartitionId, Sequence};

use super::Reconcile;
use super::first_look::Look;
use crate::Fault;
use crate::ports::{PartitionHead, PartitionState, StreamReply};

/// How long the second look waits for the ledger to catch up.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// What a partition had decided.
struct Watermark {
    partition: PartitionId,
    epoch: Epoch,
    sequence: Sequence,
}

impl Reconcile {
    /// Waits until the ledger has applied what the gate has decided by now, or what is left of it,
    /// in each partition with something to look at again. Returns where it got there in time.
    pub(super) async fn reach_watermarks(
        &self,
        looks: &[Look],
    ) -> Result<BTreeSet<PartitionId>, Fault> {
        let suspected = looks.iter().filter(|look| !look.suspicions.is_empty());
        let partitions: BTreeSet<PartitionId> = suspected
            .map(|look| self.partitions.of(look.voucher))
            .collect();
        let mut watermarks = Vec::with_capacity(partitions.len());
        for partition in partitions {
            // One that is missing has to be begun again, and its sales loaded.
            if let PartitionState::Open {
                epoch, sequence, ..
            } = self.loader.partition(partition).await?
            {
                watermarks.push(Watermark {
                    partition,
                    epoch,
                    sequence,
                });
            }
        }
        let deadline = self.clock.monotonic() + PATIENCE;
        let mut reached = BTreeSet::new();
        for mark in watermarks {
            while !reached.contains(&mark.partition) {
                if self.has_applied(&mark).await? {
                    reached.insert(mark.partition);
                } else if self.clock.monotonic() >= deadline {
                    break;
                } else {
                    self.clock.sleep(PAUSE).await;
                }
            }
        }
        Ok(reached)
    }

    async fn has_applied(&self, mark: &Watermark) -> Result<bool, Fault> {
        let head = self.admissions.head(mark.partition).await?;
        let applied = head.epoch == mark.epoch && head.applied >= mark.sequence;
        Ok(applied || self.nothing_stands(mark.partition, head).await?)
    }

    /// Whether the stream has nothing for the ledger to apply: then what the gate has decided
    /// beyond the ledger's position is gone, for nothing behind it has told the order writer.
    async fn nothing_stands(
        &self,
        partition: PartitionId,
        head: PartitionHead,
    ) -> Result<bool, Fault> {
        let reply = self
            .stream
            .read_after(partition, head.epoch, head.entry, 1)
            .await?;
        let empty = matches!(&reply, StreamReply::Entries(entries) if entries.is_empty());
        // What was applied meanwhile may be trimmed already.
        Ok(empty && self.admissions.head(partition).await? == head)
    }
}

//! A partition's hot data is missing, incomplete, or older than what the ledger has applied.

mod remains;

use std::sync::Arc;

use seckill_domain::{Claim, Continuity, Epoch, PartitionId, Sequence};

use crate::ports::{
    AdmissionLedger, AdmissionStream, EpochBegun, GateLoader, HotPath, Ledger, LedgerPorts,
    PartitionHead, PartitionState, StreamReply,
};
use crate::{Fault, Meters, RememberedAnswers};

/// Brings a partition of the hot store to the epoch of the ledger, or both to a new one.
pub struct RecoverPartition {
    loader: Arc<dyn GateLoader>,
    stream: Arc<dyn AdmissionStream>,
    admissions: Arc<dyn AdmissionLedger>,
    ledger: Arc<dyn Ledger>,
    remembered: Arc<RememberedAnswers>,
    meters: Arc<Meters>,
}

/// Most epochs drawn in one call, for a ledger that was restored from a backup and is far behind
/// the hot store.
const DRAWS_MAX: usize = 10_000;

impl RecoverPartition {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        remembered: Arc<RememberedAnswers>,
        meters: Arc<Meters>,
    ) -> Self {
        Self {
            loader: hot.loader.clone(),
            stream: hot.stream.clone(),
            admissions: ledger.admissions.clone(),
            ledger: ledger.ledger.clone(),
            remembered,
            meters,
        }
    }

    /// Gives grants that the gate still holds the keys that they were asked for with, as far as this
    /// process remembers: the gate keeps keys elsewhere, and may have lost them alone.
    pub(crate) fn complete(&self, grants: &mut [Claim]) {
        for claim in grants {
            self.remembered.complete(claim);
        }
    }

    /// Makes the partition usable. `false` if the order writer first has to finish what survives of
    /// the old stream; call again. Repeatable, and safe to run in several processes at once.
    pub async fn run(&self, partition: PartitionId) -> Result<bool, Fault> {
        let head = self.admissions.head(partition).await?;
        match self.loader.partition(partition).await? {
            PartitionState::Open {
                epoch, sequence, ..
            } if epoch == head.epoch => {
                if sequence >= head.applied {
                    return Ok(true);
                }
                tracing::error!(%partition, %epoch, gate = %sequence, ledger = %head.applied,
                    "redis went back to before what the ledger has applied");
                self.restart(partition, head.epoch).await?;
            }
            PartitionState::Open { epoch, .. } if epoch > head.epoch => {
                tracing::error!(%partition, gate = %epoch, ledger = %head.epoch,
                    "the ledger is older than redis: was it restored from a backup?");
                self.pass(partition, head, epoch).await?;
            }
            PartitionState::Open { .. } => self.begin(partition, head).await?,
            PartitionState::Missing if self.goes_on(partition, head).await? => return Ok(false),
            PartitionState::Missing => self.restart(partition, head.epoch).await?,
        }
        Ok(true)
    }

    /// Gives the partition a new life, if it still is in the epoch `seen`.
    pub async fn restart(&self, partition: PartitionId, seen: Epoch) -> Result<(), Fault> {
        let old = self.admissions.head(partition).await?;
        if old.epoch == seen {
            self.remember_remains(partition, old).await?;
        }
        let head = self.admissions.next_epoch(partition, seen).await?;
        self.begin(partition, head).await
    }

    /// Gives the partition a new life if the gate has decided something in the epoch `seen` that the
    /// ledger does not have, and nothing of it stands in the stream: nobody would ever apply it.
    pub(crate) async fn restart_if_gone(
        &self,
        partition: PartitionId,
        seen: Epoch,
    ) -> Result<(), Fault> {
        let head = self.admissions.head(partition).await?;
        let ahead = match self.loader.partition(partition).await? {
            PartitionState::Open {
                epoch, sequence, ..
            } => epoch == seen && sequence > head.applied,
            PartitionState::Missing => false,
        };
        if !ahead {
            return Ok(());
        }
        let reply = self
            .stream
            .read_after(partition, head.epoch, head.entry, 1)
            .await?;
        let nothing = matches!(&reply, StreamReply::Entries(entries) if entries.is_empty());
        // What was applied meanwhile may be trimmed already.
        let still = head.epoch == seen && self.admissions.head(partition).await? == head;
        if nothing && still {
            tracing::error!(%partition, epoch = %seen, applied = %head.applied,
                "decisions are gone from the stream");
            self.restart(partition, seen).await?;
        }
        Ok(())
    }

    async fn begin(&self, partition: PartitionId, head: PartitionHead) -> Result<(), Fault> {
        match self
            .loader
            .begin_epoch(partition, head.epoch, head.applied)
            .await?
        {
            EpochBegun::Begun => {
                self.meters.epochs_begun.add(1);
                if head.applied == Sequence::default() {
                    tracing::info!(%partition, epoch = %head.epoch, "partition begins");
                } else {
                    tracing::warn!(%partition, epoch = %head.epoch, applied = %head.applied,
                        "partition begins a new epoch");
                }
            }
            EpochBegun::NotNewer(epoch) => {
                tracing::debug!(%partition, %epoch, "partition has this epoch already");
            }
        }
        Ok(())
    }

    /// Draws epochs until the ledger's is above the hot store's.
    async fn pass(
        &self,
        partition: PartitionId,
        mut head: PartitionHead,
        above: Epoch,
    ) -> Result<(), Fault> {
        for _ in 0..DRAWS_MAX {
            if head.epoch > above {
                break;
            }
            head = self.admissions.next_epoch(partition, head.epoch).await?;
        }
        self.begin(partition, head).await
    }

    /// Whether the old stream still holds the very next decision, or something that is no decision
    /// at all: then the order writer can go on, and nothing of it needs to be lost.
    async fn goes_on(&self, partition: PartitionId, head: PartitionHead) -> Result<bool, Fault> {
        let reply = self
            .stream
            .read_after(partition, head.epoch, head.entry, 1)
            .await?;
        let StreamReply::Entries(entries) = reply else {
            return Ok(false);
        };
        let Some(next) = entries.first() else {
            return Ok(false);
        };
        Ok(match &next.body {
            Ok(entry) => Self::continues(head.applied, entry.first, entry.decisions.len()),
            Err(_) => true,
        })
    }

    fn continues(applied: Sequence, first: Sequence, count: usize) -> bool {
        Continuity::judge(applied, first, count) == Continuity::Next
    }
}

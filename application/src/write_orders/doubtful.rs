//! Entries that do not continue the ledger: known already, missed something before them, foreign, or
//! a sign that Redis went back.

use seckill_domain::Sequence;

use super::items::{foreign, push_items};
use super::{Continuity, OrderWriter};
use crate::Fault;
use crate::ports::{BatchItem, Delivery, EntryId, PartitionHead, PartitionState};

impl OrderWriter {
    /// Acknowledges what was taken over and stands at or before the ledger's position, if the ledger
    /// has it: an acknowledgement was lost. Returns how many entries that were.
    pub(super) async fn settle_pending(&mut self) -> Result<usize, Fault> {
        let PartitionHead { epoch, entry, .. } = self.head;
        let (mut settled, mut after) = (0, EntryId::START);
        loop {
            let max = self.settings.read_max;
            let mut pending = self
                .stream
                .read_pending(self.partition, epoch, &self.consumer, after, max)
                .await?;
            pending.retain(|delivery| delivery.id <= entry);
            let Some(last) = pending.last() else {
                return Ok(settled);
            };
            after = last.id;
            settled += pending.len();
            if !self.are_known(pending).await? {
                return Ok(settled);
            }
            self.follow_up().await?;
        }
    }

    /// Whether the ledger has what stands at or before its position. The consumer group delivers what
    /// catching up has applied, and that is acknowledged. But a Redis that lost decisions, and whose
    /// clock is behind that of the one before it, writes new ones there: then a new life begins.
    pub(super) async fn are_known(&mut self, repeats: Vec<Delivery>) -> Result<bool, Fault> {
        let Some(last) = repeats.last().map(|delivery| delivery.id) else {
            return Ok(true);
        };
        let ids: Vec<EntryId> = repeats.iter().map(|delivery| delivery.id).collect();
        let mut items = Vec::with_capacity(repeats.len());
        for delivery in repeats {
            let before = self.head.applied;
            push_items(&mut items, delivery, before, None);
        }
        if self.are_applied(items).await? {
            self.unacked.extend(ids);
            return Ok(true);
        }
        self.went_back(last).await?;
        // Of the life that is over, applied or not.
        self.unacked.clear();
        Ok(false)
    }

    /// What is numbered beyond the gate was parked as foreign, and is no sign of anything.
    async fn are_applied(&self, mut items: Vec<BatchItem>) -> Result<bool, Fault> {
        if self.admissions.has_applied(self.partition, &items).await? {
            return Ok(true);
        }
        let Some(decided) = self.decided().await? else {
            return Ok(false);
        };
        let count = items.len();
        items.retain(|item| match item {
            BatchItem::Decision { sequence, .. } => *sequence <= decided,
            BatchItem::Unreadable { .. } => true,
        });
        Ok(items.len() < count && self.admissions.has_applied(self.partition, &items).await?)
    }

    /// How far the gate has decided; `None` if it lives in another epoch than the ledger.
    pub(super) async fn decided(&self) -> Result<Option<Sequence>, Fault> {
        Ok(match self.loader.partition(self.partition).await? {
            PartitionState::Open {
                epoch, sequence, ..
            } if epoch == self.head.epoch => Some(sequence),
            _ => None,
        })
    }

    /// An entry that does not continue the ledger: known already, missed something before it,
    /// foreign, or a sign that Redis went back. Returns what to park.
    pub(super) async fn doubtful(
        &mut self,
        delivery: Delivery,
        read: Continuity,
    ) -> Result<Option<BatchItem>, Fault> {
        let id = delivery.id;
        let Ok(entry) = &delivery.body else {
            return Ok(None);
        };
        if !self.catching_up {
            // Perhaps another consumer was given what is missing; the stream itself knows.
            self.start_over();
            return Ok(None);
        }
        let mut items = Vec::with_capacity(entry.decisions.len());
        push_items(&mut items, delivery.clone(), entry.first, None);
        if read == Continuity::Replay && self.admissions.has_applied(self.partition, &items).await?
        {
            return Ok(Some(foreign(id, "repeats an entry that is applied")));
        }
        let decided = self.decided().await?;
        if decided.is_some_and(|decided| entry.first > decided) {
            let reason = "numbered beyond what the gate has decided";
            return Ok(Some(foreign(id, reason)));
        }
        self.went_back(id).await?;
        Ok(None)
    }

    /// What stands in the stream is not what the ledger has applied: all of it begins anew.
    async fn went_back(&mut self, entry: EntryId) -> Result<(), Fault> {
        tracing::error!(partition = %self.partition, %entry, applied = %self.head.applied,
            "the stream does not continue the ledger: redis went back");
        let epoch = self.head.epoch;
        self.recover.restart(self.partition, epoch).await?;
        self.start_over();
        Ok(())
    }
}

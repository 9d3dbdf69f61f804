//! Entries that do not continue the ledger: known already, missed something before them, foreign, or
//! a sign that Redis went back.

use super::items::{foreign, push_items};
use super::{Continuity, OrderWriter};
use crate::Fault;
use crate::ports::{BatchItem, Delivery, EntryId, PartitionState};

impl OrderWriter {
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
        if self.admissions.has_applied(self.partition, &items).await? {
            self.unacked.extend(ids);
            return Ok(true);
        }
        self.went_back(last).await?;
        // Of the life that is over, applied or not.
        self.unacked.clear();
        Ok(false)
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
        if let PartitionState::Open {
            epoch, sequence, ..
        } = self.loader.partition(self.partition).await?
            && epoch == self.head.epoch
            && entry.first > sequence
        {
            return Ok(Some(foreign(
                id,
                "numbered beyond what the gate has decided",
            )));
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

//! What the stream of a life that ends still tells of.

use std::collections::HashMap;

use seckill_domain::{Decision, PartitionId, VoucherId};

use super::RecoverPartition;
use crate::Fault;
use crate::ports::{PartitionHead, StreamReply};

/// Most entries of one read.
const READ_MAX: usize = 512;
/// Most reads: two million entries, more than anybody remembers.
const READS_MAX: usize = 4_096;

impl RecoverPartition {
    /// Remembers what the stream says after the position `old` was given to somebody, as whoever
    /// answered does: the stream goes with its life, and both the holders and the process that
    /// answered may be gone already. What the ledger has is forgotten again when it is asked after.
    pub(super) async fn remember_remains(
        &self,
        partition: PartitionId,
        old: PartitionHead,
    ) -> Result<(), Fault> {
        let mut after = old.entry;
        let mut on_sale = HashMap::new();
        for _ in 0..READS_MAX {
            let reply = self
                .stream
                .read_after(partition, old.epoch, after, READ_MAX);
            let StreamReply::Entries(entries) = reply.await? else {
                return Ok(());
            };
            let Some(last) = entries.last() else {
                return Ok(());
            };
            after = last.id;
            let readable = entries.into_iter().filter_map(|entry| entry.body.ok());
            for decision in readable.flat_map(|entry| entry.decisions) {
                if self.is_known(decision.voucher(), &mut on_sale).await? {
                    self.remember(decision);
                }
            }
        }
        Ok(())
    }

    /// Whether the ledger has the voucher. What speaks of another is foreign, or cannot be given back.
    async fn is_known(
        &self,
        voucher: VoucherId,
        asked: &mut HashMap<VoucherId, bool>,
    ) -> Result<bool, Fault> {
        if let Some(known) = asked.get(&voucher) {
            return Ok(*known);
        }
        let known = self.ledger.voucher(voucher).await?.is_some();
        asked.insert(voucher, known);
        Ok(known)
    }

    /// A place that was given up comes back: that it was is lost with the life.
    fn remember(&self, decision: Decision) {
        match decision {
            Decision::Granted(claim) | Decision::Promoted(claim) => {
                self.remembered.remember_grant(claim);
            }
            Decision::Joined { claim, ticket } => self.remembered.remember_place(claim, ticket),
            Decision::Left { .. } | Decision::Lost(_) | Decision::Withdrawn { .. } => {}
        }
    }
}

//! What a commit leaves to be done in the hot path. The next transaction does not depend on it: while
//! a backlog stands, both are under way at the same time.

use super::OrderWriter;
use crate::Fault;
use crate::ports::PartitionHead;
use crate::together::both;

/// Most orders of one call of the delay queue.
const SCHEDULE_MAX: usize = 1_000;
/// Most entries of one acknowledgement.
const ACK_MAX: usize = 512;

impl OrderWriter {
    /// Does what earlier commits have left. A writer that ends without leaves the acknowledgements to
    /// whoever takes over, and the ends of payment windows to the sweep.
    pub async fn follow_up(&mut self) -> Result<(), Fault> {
        let told = self.tell().await;
        self.told(told)
    }

    /// Acknowledges what is applied, and notes when its orders are due.
    pub(super) async fn tell(&self) -> Result<(), Fault> {
        let (acknowledged, ()) = both(self.acknowledge(), self.schedule()).await;
        acknowledged
    }

    /// Forgets what was told. An acknowledgement that failed is repeated as a whole.
    pub(super) fn told(&mut self, told: Result<(), Fault>) -> Result<(), Fault> {
        self.due.clear();
        told?;
        self.unacked.clear();
        Ok(())
    }

    async fn acknowledge(&self) -> Result<(), Fault> {
        let PartitionHead { epoch, applied, .. } = self.head;
        for ids in self.unacked.chunks(ACK_MAX) {
            self.stream.ack(self.partition, epoch, ids, applied).await?;
        }
        Ok(())
    }

    /// If that fails the sweep finds them.
    async fn schedule(&self) {
        for due in self.due.chunks(SCHEDULE_MAX) {
            if let Err(fault) = self.delays.schedule(due).await {
                tracing::warn!(fault = fault.chain(), "left to the sweep");
            }
        }
    }
}

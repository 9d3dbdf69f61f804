//! What the ledger changed and the gate has to follow: an outbox.

use async_trait::async_trait;
use seckill_domain::{GateUpdate, GateVersion, VoucherId};

use crate::Fault;

/// The outbox of gate updates. A row is written in the transaction that makes it true
/// ([`UnitOfWork`](super::UnitOfWork)) and forgotten once the gate has it. A relay may repeat,
/// crash, or run twice: the gate applies each version once.
#[async_trait]
pub trait GateUpdates: Send + Sync {
    /// A voucher's updates after `after`, in the order of versions, at most `max` (1 to 100).
    async fn after(
        &self,
        voucher: VoucherId,
        after: GateVersion,
        max: usize,
    ) -> Result<Vec<GateUpdate>, Fault>;

    /// Vouchers that have updates, at most `max` (1 to 1,000), those with the oldest first.
    async fn waiting(&self, max: usize) -> Result<Vec<VoucherId>, Fault>;

    /// Forgets a voucher's updates up to and including `up_to`. Repeatable.
    async fn forget(&self, voucher: VoucherId, up_to: GateVersion) -> Result<(), Fault>;
}

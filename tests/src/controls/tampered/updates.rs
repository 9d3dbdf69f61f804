//! An outbox of gate updates.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::GateUpdates;
use seckill_domain::{GateUpdate, GateVersion, VoucherId};

/// Keeps what it was told to forget: every relay dies after the gate has an update and before the
/// outbox knows.
pub struct KeptUpdates(pub Arc<dyn GateUpdates>);

#[async_trait]
impl GateUpdates for KeptUpdates {
    async fn after(
        &self,
        voucher: VoucherId,
        after: GateVersion,
        max: usize,
    ) -> Result<Vec<GateUpdate>, Fault> {
        self.0.after(voucher, after, max).await
    }

    async fn waiting(&self, max: usize) -> Result<Vec<VoucherId>, Fault> {
        self.0.waiting(max).await
    }

    async fn forget(&self, _voucher: VoucherId, _up_to: GateVersion) -> Result<(), Fault> {
        Ok(())
    }
}

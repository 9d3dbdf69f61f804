//! The process's own clock.

use std::time::Duration;

use async_trait::async_trait;
use seckill_domain::Timestamp;

/// Time of this process: for waiting and for measuring, never for deciding a sale's window (the
/// gate's clock does) or an order's expiry (the ledger's clock does).
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall-clock time. May step.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point in the past. Never steps back.
    fn monotonic(&self) -> Duration;

    /// Returns after `pause`.
    async fn sleep(&self, pause: Duration);
}

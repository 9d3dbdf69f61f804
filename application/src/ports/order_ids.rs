//! New order ids.

use async_trait::async_trait;
use seckill_domain::OrderId;

use crate::Fault;

/// Issues order ids.
#[async_trait]
pub trait OrderIds: Send + Sync {
    /// A new id. No id is ever issued twice: not by two processes, not after the hot store lost its
    /// data, not after the clock stepped back, and not by a process that was paused beyond its
    /// lease. Costs no round trip but now and then. Refuses with a fault when that cannot be
    /// promised right now.
    async fn next(&self) -> Result<OrderId, Fault>;
}

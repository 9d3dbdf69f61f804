//! Wakes the expiry of orders on time.

use std::time::Duration;

use async_trait::async_trait;
use seckill_domain::{OrderId, Timestamp};

use crate::Fault;

/// A queue of orders by the end of their payment window. Gives precision only: the ledger says what
/// is overdue, and the sweep finds what this queue lost.
#[async_trait]
pub trait DelayQueue: Send + Sync {
    /// Notes when orders are due; the same order again replaces its time. At most 1,000. Wakes
    /// whoever waits for a later one.
    async fn schedule(&self, due: &[(OrderId, Timestamp)]) -> Result<(), Fault>;

    /// Orders that are due by the queue's clock, at most `max` (1 to 1,000), oldest first. They stay
    /// in the queue and are claimed by nobody else for `hold`; not completed by then, they are due
    /// again.
    async fn claim_due(&self, max: usize, hold: Duration) -> Result<Vec<OrderId>, Fault>;

    /// Removes orders that are handled. Repeatable. At most 1,000.
    async fn complete(&self, orders: &[OrderId]) -> Result<(), Fault>;

    /// Returns when the next order is due, when something earlier was scheduled, or after `max`,
    /// whichever is first.
    async fn wait(&self, max: Duration) -> Result<(), Fault>;

    /// How many orders are scheduled.
    async fn scheduled(&self) -> Result<u64, Fault>;
}

//! The payment provider.

use async_trait::async_trait;
use seckill_domain::{Money, OrderId, PaymentId, Refund};

use crate::Fault;

/// What the provider says about a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// It covers the order.
    Confirmed,
    /// It does not; in the provider's words.
    Declined(String),
}

/// Asks and tells the payment provider. That money moved is known only from its signed
/// notifications, which come in through the API.
#[async_trait]
pub trait Payments: Send + Sync {
    /// Whether this payment covers this order. A question: nothing moves. Repeatable.
    async fn confirm(
        &self,
        payment: &PaymentId,
        order: OrderId,
        amount: Money,
    ) -> Result<Confirmation, Fault>;

    /// Has money sent back. Repeatable: the provider knows a refund by its number.
    async fn refund(&self, refund: &Refund) -> Result<(), Fault>;
}

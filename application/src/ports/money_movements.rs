//! Payments that were notified, and refunds.

use async_trait::async_trait;
use seckill_domain::{Money, OrderId, PaymentId, Refund};

use super::Page;
use crate::Fault;

/// What became of a payment; stored with it, so that a repeated notification gets the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentOutcome {
    /// It paid its order.
    Paid,
    /// It is on its way back: too late.
    RefundedTooLate,
    /// It is on its way back: the order still waits for units.
    RefundedTooEarly,
    /// It is on its way back: the order was paid by another.
    RefundedSecond,
    /// It is on its way back: a wrong amount.
    RefundedWrongAmount,
    /// It is on its way back: there is no such order.
    RefundedUnknownOrder,
}

/// A payment, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRecord {
    /// The provider's id.
    pub payment: PaymentId,
    /// For which order.
    pub order: OrderId,
    /// How much.
    pub amount: Money,
    /// What became of it.
    pub outcome: PaymentOutcome,
}

/// Reads of money that moved. Writing is part of a [`UnitOfWork`](super::UnitOfWork).
#[async_trait]
pub trait MoneyMovements: Send + Sync {
    /// Refunds, newest first, those before `before`, at most `limit` (1 to 100).
    async fn refunds(&self, before: Option<u64>, limit: usize) -> Result<Page<Refund>, Fault>;

    /// Refunds that the provider has not been told of, oldest first, at most `max` (1 to 100).
    async fn unsent(&self, max: usize) -> Result<Vec<Refund>, Fault>;

    /// Marks a refund as told. Repeatable.
    async fn sent(&self, refund: u64) -> Result<(), Fault>;
}

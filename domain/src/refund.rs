//! Money that came and may not stay.

use crate::{Money, OrderId, PaymentId, Timestamp};

/// A refund record: whoever sent the money gets it back, and an administrator can see why. Never
/// silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// Its number in the ledger.
    pub id: u64,
    /// For which order the money came; the order may not exist.
    pub order: OrderId,
    /// Which payment.
    pub payment: PaymentId,
    /// How much goes back.
    pub amount: Money,
    /// Why.
    pub reason: RefundReason,
    /// Whether the provider has been told.
    pub sent: bool,
    /// When it was recorded, by the ledger's clock.
    pub created_at: Timestamp,
}

/// Why money goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefundReason {
    /// It came after the order had expired, was cancelled, or had ended without units.
    TooLate,
    /// The order still waits for units: there is nothing to pay for yet.
    TooEarly,
    /// The order was paid by another payment already.
    SecondPayment,
    /// It is not what the order costs.
    WrongAmount,
    /// There is no such order.
    UnknownOrder,
    /// An administrator refunded the order.
    Requested,
}

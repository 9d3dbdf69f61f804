//! The life of an order.

use crate::{
    BuyerId, IdempotencyKey, Money, OrderId, PaymentId, RejectReason, Ticket, Timestamp, VoucherId,
};

/// A buyer's order of some units of one voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// Of which voucher.
    pub voucher: VoucherId,
    /// Whose it is.
    pub buyer: BuyerId,
    /// How many units.
    pub quantity: u32,
    /// What they cost together.
    pub amount: Money,
    /// The client's key for the purchase.
    pub key: Option<IdempotencyKey>,
    /// When the gate decided it.
    pub created_at: Timestamp,
    /// The turn it had on the waitlist, if it came from there.
    pub ticket: Option<Ticket>,
    /// The end of its payment window, once the ledger has set it. Nothing moves it.
    pub expires_at: Option<Timestamp>,
    /// Where it is in its life.
    pub stage: Stage,
}

/// Where an order is in its life, with what is true only there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// On the waitlist.
    Waiting,
    /// The gate granted it; the ledger does not have it yet.
    Queued,
    /// It holds its units until `expires_at`.
    PendingPayment,
    /// Paid.
    Paid {
        /// By which payment.
        payment: PaymentId,
    },
    /// The buyer gave it up before paying.
    Cancelled,
    /// The payment window ended.
    Expired,
    /// Paid, and the money is on its way back.
    Refunded {
        /// Of which payment.
        payment: PaymentId,
    },
    /// The ledger refused it.
    Rejected {
        /// Why.
        reason: RejectReason,
    },
    /// The buyer left the waitlist.
    Withdrawn,
    /// The sale ended while it waited.
    ClosedOut,
}

/// The bare name of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each is described at the stage of the same name"
)]
pub enum OrderStatus {
    Waiting,
    Queued,
    PendingPayment,
    Paid,
    Cancelled,
    Expired,
    Refunded,
    Rejected,
    Withdrawn,
    ClosedOut,
}

impl OrderStatus {
    /// Whether an order in this stage takes units from the stock. These are the orders that count
    /// against a buyer's limit.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Queued | Self::PendingPayment | Self::Paid)
    }

    /// Whether nothing can happen to the order any more without somebody asking for it.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Queued | Self::PendingPayment)
    }
}

/// Whether a command changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// It did.
    Applied,
    /// It had been done before.
    AlreadyApplied,
}

/// Why a command is not possible now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The payment window has ended.
    #[error("the payment window of the order has ended")]
    Expired,
    /// The buyer cancelled it, or left the waitlist.
    #[error("the order was cancelled")]
    Cancelled,
    /// It is paid; with another payment, where one was given.
    #[error("the order is paid")]
    Paid,
    /// It is not in the ledger yet.
    #[error("the order is not in the ledger yet")]
    Queued,
    /// It waits for units.
    #[error("the order waits for units")]
    Waiting,
    /// It never held units for the buyer.
    #[error("the order was rejected")]
    Rejected,
    /// It was never paid.
    #[error("the order is not paid")]
    NotPaid,
    /// The money went back.
    #[error("the order was refunded")]
    Refunded,
}

impl Stage {
    /// Its bare name.
    pub fn status(&self) -> OrderStatus {
        match self {
            Stage::Waiting => OrderStatus::Waiting,
            Stage::Queued => OrderStatus::Queued,
            Stage::PendingPayment => OrderStatus::PendingPayment,
            Stage::Paid { .. } => OrderStatus::Paid,
            Stage::Cancelled => OrderStatus::Cancelled,
            Stage::Expired => OrderStatus::Expired,
            Stage::Refunded { .. } => OrderStatus::Refunded,
            Stage::Rejected { .. } => OrderStatus::Rejected,
            Stage::Withdrawn => OrderStatus::Withdrawn,
            Stage::ClosedOut => OrderStatus::ClosedOut,
        }
    }
}

impl Order {
    /// The bare name of its stage.
    pub fn status(&self) -> OrderStatus {
        self.stage.status()
    }

    /// Whether the payment window has ended at `now`, swept or not.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether it waits for payment and its window has not ended at `now`.
    pub fn is_due_later(&self, now: Timestamp) -> bool {
        self.stage == Stage::PendingPayment && !self.is_overdue(now)
    }

    /// Pays for it. Possible only before `expires_at`; repeatable with the same payment.
    pub fn pay(&mut self, payment: &PaymentId, now: Timestamp) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::PendingPayment if self.is_overdue(now) => Err(Forbidden::Expired),
            Stage::PendingPayment => {
                self.stage = Stage::Paid {
                    payment: payment.clone(),
                };
                Ok(Transition::Applied)
            }
            Stage::Paid { payment: known } if known == payment => Ok(Transition::AlreadyApplied),
            Stage::Paid { .. } => Err(Forbidden::Paid),
            stage => Err(Self::refusal(stage)),
        }
    }

    /// Gives it up before paying. A waiting one leaves at the gate, not here.
    pub fn cancel(&mut self, now: Timestamp) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::PendingPayment if self.is_overdue(now) => Err(Forbidden::Expired),
            Stage::PendingPayment => {
                self.stage = Stage::Cancelled;
                Ok(Transition::Applied)
            }
            Stage::Cancelled | Stage::Withdrawn => Ok(Transition::AlreadyApplied),
            stage => Err(Self::refusal(stage)),
        }
    }

    /// Ends it because nobody paid in time.
    pub fn expire(&mut self, now: Timestamp) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::PendingPayment if self.is_overdue(now) => {
                self.stage = Stage::Expired;
                Ok(Transition::Applied)
            }
            Stage::PendingPayment => Err(Forbidden::NotPaid),
            Stage::Expired => Ok(Transition::AlreadyApplied),
            stage => Err(Self::refusal(stage)),
        }
    }

    /// Sends the money back and the units with it.
    pub fn refund(&mut self) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::Paid { payment } => {
                self.stage = Stage::Refunded {
                    payment: payment.clone(),
                };
                Ok(Transition::Applied)
            }
            Stage::Refunded { .. } => Ok(Transition::AlreadyApplied),
            Stage::PendingPayment => Err(Forbidden::NotPaid),
            stage => Err(Self::refusal(stage)),
        }
    }

    /// Gives it its units after waiting, with a payment window of its own.
    pub fn promote(&mut self, expires_at: Timestamp) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::Waiting => {
                self.stage = Stage::PendingPayment;
                self.expires_at = Some(expires_at);
                Ok(Transition::Applied)
            }
            stage if Self::was_promoted(stage) => Ok(Transition::AlreadyApplied),
            stage => Err(Self::refusal(stage)),
        }
    }

    /// Takes it off the waitlist for good, in the stage that says why.
    pub fn leave_waitlist(&mut self, into: Stage) -> Result<Transition, Forbidden> {
        match &self.stage {
            Stage::Waiting => {
                self.stage = into;
                Ok(Transition::Applied)
            }
            stage if *stage == into => Ok(Transition::AlreadyApplied),
            stage => Err(Self::refusal(stage)),
        }
    }

    fn was_promoted(stage: &Stage) -> bool {
        !matches!(
            stage,
            Stage::Waiting | Stage::Withdrawn | Stage::ClosedOut | Stage::Rejected { .. }
        )
    }

    fn refusal(stage: &Stage) -> Forbidden {
        match stage {
            Stage::Waiting => Forbidden::Waiting,
            Stage::Queued => Forbidden::Queued,
            Stage::PendingPayment => Forbidden::NotPaid,
            Stage::Paid { .. } => Forbidden::Paid,
            Stage::Cancelled | Stage::Withdrawn => Forbidden::Cancelled,
            Stage::Expired | Stage::ClosedOut => Forbidden::Expired,
            Stage::Refunded { .. } => Forbidden::Refunded,
            Stage::Rejected { .. } => Forbidden::Rejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> Order {
        Order {
            id: OrderId::new(1),
            voucher: VoucherId::new(2),
            buyer: BuyerId::new(3),
            quantity: 1,
            amount: Money {
                minor: 80,
                currency: "CNY".parse().unwrap(),
            },
            key: None,
            created_at: Timestamp::from_millis(0),
            ticket: None,
            expires_at: Some(Timestamp::from_millis(1_000)),
            stage: Stage::PendingPayment,
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn payment(id: &str) -> PaymentId {
        id.parse().unwrap()
    }

    #[test]
    fn paying_needs_time_left_and_repeats_only_with_the_same_payment() {
        let mut order = pending();
        assert_eq!(
            order.pay(&payment("a"), at(1_000)),
            Err(Forbidden::Expired),
            "at the instant"
        );
        assert_eq!(order.pay(&payment("a"), at(999)), Ok(Transition::Applied));
        assert_eq!(
            order.pay(&payment("a"), at(5_000)),
            Ok(Transition::AlreadyApplied)
        );
        assert_eq!(order.pay(&payment("b"), at(999)), Err(Forbidden::Paid));
        assert_eq!(order.cancel(at(999)), Err(Forbidden::Paid));
        assert_eq!(order.expire(at(5_000)), Err(Forbidden::Paid));
    }

    #[test]
    fn an_order_expires_only_when_its_window_has_ended() {
        let mut order = pending();
        assert_eq!(order.expire(at(999)), Err(Forbidden::NotPaid));
        assert_eq!(order.expire(at(1_000)), Ok(Transition::Applied));
        assert_eq!(order.expire(at(1_001)), Ok(Transition::AlreadyApplied));
        assert_eq!(order.pay(&payment("a"), at(1)), Err(Forbidden::Expired));
        assert_eq!(order.cancel(at(1)), Err(Forbidden::Expired));
    }

    #[test]
    fn a_cancelled_order_stays_cancelled() {
        let mut order = pending();
        assert_eq!(order.cancel(at(1)), Ok(Transition::Applied));
        assert_eq!(order.cancel(at(1)), Ok(Transition::AlreadyApplied));
        assert_eq!(order.pay(&payment("a"), at(1)), Err(Forbidden::Cancelled));
        assert_eq!(order.expire(at(2_000)), Err(Forbidden::Cancelled));
        assert_eq!(order.refund(), Err(Forbidden::Cancelled));
    }

    #[test]
    fn only_a_waiting_order_is_promoted_or_leaves() {
        let mut order = Order {
            stage: Stage::Waiting,
            expires_at: None,
            ..pending()
        };
        assert_eq!(order.promote(at(9)), Ok(Transition::Applied));
        assert_eq!(order.promote(at(10)), Ok(Transition::AlreadyApplied));
        assert_eq!(
            order.expires_at,
            Some(at(9)),
            "nothing moves the end of the window"
        );
        assert_eq!(
            order.leave_waitlist(Stage::Withdrawn),
            Err(Forbidden::NotPaid)
        );
        let mut order = Order {
            stage: Stage::Waiting,
            expires_at: None,
            ..pending()
        };
        assert_eq!(
            order.leave_waitlist(Stage::ClosedOut),
            Ok(Transition::Applied)
        );
        assert_eq!(order.promote(at(9)), Err(Forbidden::Expired));
    }
}

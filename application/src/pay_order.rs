//! A buyer pays.

use std::sync::Arc;

use seckill_domain::{
    BuyerId, Forbidden, NewEvent, Order, OrderId, OrderStatus, PaymentId, Timestamp, Transition,
};

use crate::ports::{
    Clock, Confirmation, Ledger, LedgerPorts, PaymentOutcome, PaymentRecord, Payments,
};
use crate::retrying::retrying;
use crate::{Fault, ReadOrders};

/// What became of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayReply {
    /// The order is paid, now or by an earlier call with the same payment.
    Paid(Order),
    /// There is no such order of his.
    NotFound,
    /// Not possible; nothing was taken.
    Refused(Forbidden),
    /// The provider does not vouch for the payment; in its words.
    Declined(String),
    /// The payment belongs to another order, or is on its way back.
    PaymentUsed,
}

/// Pays an order with a conditional update from its known stage.
pub struct PayOrder {
    ledger: Arc<dyn Ledger>,
    payments: Arc<dyn Payments>,
    orders: Arc<ReadOrders>,
    clock: Arc<dyn Clock>,
}

impl PayOrder {
    /// Over these ports.
    pub fn new(
        ledger: &LedgerPorts,
        payments: Arc<dyn Payments>,
        orders: Arc<ReadOrders>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
            payments,
            orders,
            clock,
        }
    }

    /// Pays. Repeatable with the same payment. Waits up to 2 s for an order that is queued.
    pub async fn run(
        &self,
        id: OrderId,
        buyer: BuyerId,
        payment: &PaymentId,
    ) -> Result<PayReply, Fault> {
        let Some(order) = self.orders.find_settled(id, buyer).await? else {
            return Ok(PayReply::NotFound);
        };
        match order.status() {
            OrderStatus::Queued => return Ok(PayReply::Refused(Forbidden::Queued)),
            // Nothing can be paid, whether or not the ledger knows that already.
            OrderStatus::Waiting
            | OrderStatus::Withdrawn
            | OrderStatus::ClosedOut
            | OrderStatus::Rejected => {
                return Ok(Self::unpayable(order, payment, self.clock.now()));
            }
            OrderStatus::PendingPayment => {
                let answer = self.payments.confirm(payment, id, order.amount).await?;
                if let Confirmation::Declined(why) = answer {
                    return Ok(PayReply::Declined(why));
                }
            }
            _ => {}
        }
        retrying(&*self.clock, || self.pay(id, payment)).await
    }

    fn unpayable(mut order: Order, payment: &PaymentId, now: Timestamp) -> PayReply {
        match order.pay(payment, now) {
            Ok(_) => PayReply::Paid(order),
            Err(why) => PayReply::Refused(why),
        }
    }

    async fn pay(&self, id: OrderId, payment: &PaymentId) -> Result<PayReply, Fault> {
        let mut unit = self.ledger.begin().await?;
        let Some(mut order) = unit.lock_order(id).await? else {
            // Decided at the gate and not in the ledger yet.
            return Ok(PayReply::Refused(Forbidden::Queued));
        };
        let before = order.status();
        match order.pay(payment, unit.now().await?) {
            Err(refused) => Ok(PayReply::Refused(refused)),
            Ok(Transition::AlreadyApplied) => Ok(PayReply::Paid(order)),
            Ok(Transition::Applied) => {
                let saved = unit
                    .save_orders(before, std::slice::from_ref(&order))
                    .await?;
                if saved != 1 {
                    return Err(Fault::unavailable(
                        "pay_order",
                        "the order moved under its lock",
                    ));
                }
                let record = PaymentRecord {
                    payment: payment.clone(),
                    order: id,
                    amount: order.amount,
                    outcome: PaymentOutcome::Paid,
                };
                if unit
                    .record_payment(&record)
                    .await?
                    .is_some_and(|known| known != record)
                {
                    return Ok(PayReply::PaymentUsed);
                }
                unit.append_events(&[NewEvent::of_order(&order)]).await?;
                unit.commit().await?;
                Ok(PayReply::Paid(order))
            }
        }
    }
}

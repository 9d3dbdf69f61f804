//! The payment provider says that money moved.

use std::sync::Arc;

use seckill_domain::{
    EventKind, Forbidden, Money, NewEvent, Order, OrderId, OrderStatus, PaymentId, RefundReason,
};

use crate::ports::{Clock, Ledger, LedgerPorts, PaymentOutcome, PaymentRecord};
use crate::retrying::retrying;
use crate::{Fault, ReadOrders};

/// A notification whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentNotice {
    /// The provider's id of the payment.
    pub payment: PaymentId,
    /// For which order.
    pub order: OrderId,
    /// How much came.
    pub amount: Money,
}

/// Settles money that has moved: it pays its order, or it leaves a refund record. Never silence.
pub struct HearPayment {
    ledger: Arc<dyn Ledger>,
    orders: Arc<ReadOrders>,
    clock: Arc<dyn Clock>,
}

impl HearPayment {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts, orders: Arc<ReadOrders>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
            orders,
            clock,
        }
    }

    /// Settles a notice. Repeatable by payment: a repeat is answered as the first was. `None` if the
    /// order is granted and its row does not come in time: the provider tries again.
    pub async fn run(&self, notice: &PaymentNotice) -> Result<Option<PaymentOutcome>, Fault> {
        if self.orders.is_still_queued(notice.order).await? {
            return Ok(None);
        }
        retrying(&*self.clock, || self.settle(notice))
            .await
            .map(Some)
    }

    async fn settle(&self, notice: &PaymentNotice) -> Result<PaymentOutcome, Fault> {
        let mut unit = self.ledger.begin().await?;
        let mut order = unit.lock_order(notice.order).await?;
        let before = order.as_ref().map(Order::status);
        let now = unit.now().await?;
        let outcome = match &mut order {
            None => PaymentOutcome::RefundedUnknownOrder,
            Some(order) if order.amount != notice.amount => PaymentOutcome::RefundedWrongAmount,
            Some(order) => match order.pay(&notice.payment, now) {
                Ok(_) => PaymentOutcome::Paid,
                Err(Forbidden::Paid) => PaymentOutcome::RefundedSecond,
                Err(_) => PaymentOutcome::RefundedTooLate,
            },
        };
        let record = PaymentRecord {
            payment: notice.payment.clone(),
            order: notice.order,
            amount: notice.amount,
            outcome,
        };
        if let Some(first) = unit.record_payment(&record).await? {
            return Ok(first.outcome);
        }
        if let (Some(order), Some(OrderStatus::PendingPayment), PaymentOutcome::Paid) =
            (&order, before, outcome)
        {
            let saved = unit.save_orders(OrderStatus::PendingPayment, std::slice::from_ref(order));
            if saved.await? != 1 {
                return Err(Fault::unavailable(
                    "hear_payment",
                    "the order moved under its lock",
                ));
            }
            unit.append_events(&[NewEvent::of_order(order)]).await?;
        }
        if let Some(reason) = refund_reason(outcome) {
            unit.record_refund(notice.order, &notice.payment, notice.amount, reason)
                .await?;
            if let Some(order) = &order {
                let kind = EventKind::RefundRecorded;
                unit.append_events(&[NewEvent {
                    kind,
                    ..NewEvent::of_order(order)
                }])
                .await?;
            }
        }
        unit.commit().await?;
        Ok(outcome)
    }
}

fn refund_reason(outcome: PaymentOutcome) -> Option<RefundReason> {
    match outcome {
        PaymentOutcome::Paid => None,
        PaymentOutcome::RefundedTooLate => Some(RefundReason::TooLate),
        PaymentOutcome::RefundedSecond => Some(RefundReason::SecondPayment),
        PaymentOutcome::RefundedWrongAmount => Some(RefundReason::WrongAmount),
        PaymentOutcome::RefundedUnknownOrder => Some(RefundReason::UnknownOrder),
    }
}

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

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HearReply {
    /// The money is accounted for, now or by an earlier notice of the same payment.
    Settled(PaymentOutcome),
    /// The order is granted and its row has not come in time: the provider tries again.
    OrderQueued,
    /// An earlier notice of this very payment named another order or another amount. One of the two
    /// is wrong, which only a person can tell; the first one stands.
    Contradicted,
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

    /// Settles a notice. Repeatable by payment: a repeat is answered as the first was. Waits up to
    /// 2 s for an order that is queued.
    pub async fn run(&self, notice: &PaymentNotice) -> Result<HearReply, Fault> {
        if self.orders.is_still_queued(notice.order).await? {
            return Ok(HearReply::OrderQueued);
        }
        retrying(&*self.clock, || self.settle(notice)).await
    }

    async fn settle(&self, notice: &PaymentNotice) -> Result<HearReply, Fault> {
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
                Err(Forbidden::Waiting) => PaymentOutcome::RefundedTooEarly,
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
            return Ok(Self::as_the_first(notice, &first));
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
        Ok(HearReply::Settled(outcome))
    }

    fn as_the_first(notice: &PaymentNotice, first: &PaymentRecord) -> HearReply {
        if (first.order, first.amount) == (notice.order, notice.amount) {
            return HearReply::Settled(first.outcome);
        }
        tracing::error!(payment = %notice.payment, order = %notice.order, amount = notice.amount.minor,
            first_order = %first.order, first_amount = first.amount.minor,
            "the provider contradicts itself about a payment");
        HearReply::Contradicted
    }
}

fn refund_reason(outcome: PaymentOutcome) -> Option<RefundReason> {
    match outcome {
        PaymentOutcome::Paid => None,
        PaymentOutcome::RefundedTooLate => Some(RefundReason::TooLate),
        PaymentOutcome::RefundedTooEarly => Some(RefundReason::TooEarly),
        PaymentOutcome::RefundedSecond => Some(RefundReason::SecondPayment),
        PaymentOutcome::RefundedWrongAmount => Some(RefundReason::WrongAmount),
        PaymentOutcome::RefundedUnknownOrder => Some(RefundReason::UnknownOrder),
    }
}

//! An administrator refunds a paid order.

use std::sync::Arc;

use seckill_domain::{
    EventKind, Forbidden, NewEvent, Order, OrderId, RefundReason, Stage, Transition,
};

use crate::ports::{Clock, Ledger, LedgerPorts, Release};
use crate::retrying::retrying;
use crate::{Fault, RelayUpdates};

/// What became of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundReply {
    /// The order is refunded, now or by an earlier call; its units are back in the sale.
    Refunded(Order),
    /// There is no such order.
    NotFound,
    /// Not possible; nothing changed.
    Refused(Forbidden),
}

/// Refunds orders: money and units go back in one transaction.
pub struct RefundOrder {
    ledger: Arc<dyn Ledger>,
    relay: Arc<RelayUpdates>,
    clock: Arc<dyn Clock>,
}

impl RefundOrder {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts, relay: Arc<RelayUpdates>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
            relay,
            clock,
        }
    }

    /// Refunds. Repeatable.
    pub async fn run(&self, id: OrderId) -> Result<RefundReply, Fault> {
        let reply = retrying(&*self.clock, || self.refund(id)).await?;
        if let RefundReply::Refunded(order) = &reply {
            self.relay.nudge(order.voucher).await;
        }
        Ok(reply)
    }

    async fn refund(&self, id: OrderId) -> Result<RefundReply, Fault> {
        let mut unit = self.ledger.begin().await?;
        let Some(mut order) = unit.lock_order(id).await? else {
            return Ok(RefundReply::NotFound);
        };
        let before = order.status();
        match order.refund() {
            Err(refused) => return Ok(RefundReply::Refused(refused)),
            Ok(Transition::AlreadyApplied) => return Ok(RefundReply::Refunded(order)),
            Ok(Transition::Applied) => {}
        }
        if unit
            .save_orders(before, std::slice::from_ref(&order))
            .await?
            != 1
        {
            return Err(Fault::unavailable(
                "refund_order",
                "the order moved under its lock",
            ));
        }
        if let Stage::Refunded { payment } = &order.stage {
            unit.record_refund(id, payment, order.amount, RefundReason::Requested)
                .await?;
        }
        let refunded = NewEvent::of_order(&order);
        let recorded = NewEvent {
            kind: EventKind::RefundRecorded,
            ..refunded
        };
        unit.append_events(&[refunded, recorded]).await?;
        unit.release(order.voucher, &[Release::of(&order)]).await?;
        unit.commit().await?;
        Ok(RefundReply::Refunded(order))
    }
}

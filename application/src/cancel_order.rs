//! A buyer gives an order up before paying.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{
    BuyerId, Forbidden, NewEvent, Order, OrderId, OrderStatus, Stage, Timestamp, Transition,
};

use crate::ports::{Clock, HotPath, LeaveReply, Ledger, LedgerPorts, PurchaseGate, Release};
use crate::retrying::retrying;
use crate::serve_waitlist::nudge_waitlist;
use crate::{Fault, ReadOrders, RelayUpdates};

/// What became of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelReply {
    /// The order is given up, now or by an earlier call.
    Cancelled(Order),
    /// There is no such order of his.
    NotFound,
    /// Not possible; nothing changed.
    Refused(Forbidden),
}

/// How long a place that the gate does not have any more may stand in the ledger.
const LEDGER_PATIENCE: Duration = Duration::from_secs(2);
const LEDGER_PAUSE: Duration = Duration::from_millis(20);

/// Cancels an order and gives its units back, in one transaction; then lets the gate follow.
pub struct CancelOrder {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    orders: Arc<ReadOrders>,
    relay: Arc<RelayUpdates>,
    clock: Arc<dyn Clock>,
}

impl CancelOrder {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        orders: Arc<ReadOrders>,
        relay: Arc<RelayUpdates>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            orders,
            relay,
            clock,
        }
    }

    /// Cancels. Repeatable. A waiting order leaves the list. Waits up to 2 s for one that is queued.
    pub async fn run(&self, id: OrderId, buyer: BuyerId) -> Result<CancelReply, Fault> {
        // A waiting order may be promoted between the look and the leaving; then it is looked at
        // again as what it has become.
        for _ in 0..2 {
            let Some(order) = self.orders.find_settled(id, buyer).await? else {
                return Ok(CancelReply::NotFound);
            };
            match order.status() {
                OrderStatus::Queued => return Ok(CancelReply::Refused(Forbidden::Queued)),
                OrderStatus::Waiting => {
                    if let Some(left) = self.leave(order).await? {
                        return Ok(left);
                    }
                }
                // Over without units: there is nothing to give back, whether or not the ledger
                // knows that already.
                OrderStatus::Withdrawn | OrderStatus::ClosedOut | OrderStatus::Rejected => {
                    return Ok(Self::over(order, self.clock.now()));
                }
                _ => return self.cancel_live(id).await,
            }
        }
        Ok(CancelReply::Refused(Forbidden::Queued))
    }

    fn over(mut order: Order, now: Timestamp) -> CancelReply {
        match order.cancel(now) {
            Ok(_) => CancelReply::Cancelled(order),
            Err(why) => CancelReply::Refused(why),
        }
    }

    /// `None` if the order does not wait any more.
    async fn leave(&self, order: Order) -> Result<Option<CancelReply>, Fault> {
        match self.gate.leave(order.voucher, order.buyer).await? {
            LeaveReply::Left(left) if left == order.id => {
                nudge_waitlist(&*self.gate, order.voucher).await;
                Ok(Some(CancelReply::Cancelled(Order {
                    stage: Stage::Withdrawn,
                    ..order
                })))
            }
            LeaveReply::Left(_) | LeaveReply::AlreadyPromoted(_) => Ok(None),
            LeaveReply::NotWaiting => self.left_before(order.id).await,
            LeaveReply::NotLoaded(_) => Err(Fault::unavailable(
                "cancel_order",
                "the gate is being loaded",
            )),
        }
    }

    /// The gate does not have the place any more: it was given up a moment ago and the ledger is
    /// about to say so, or the gate has lost it and will have it again. `None` if the order went
    /// another way.
    async fn left_before(&self, id: OrderId) -> Result<Option<CancelReply>, Fault> {
        let deadline = self.clock.monotonic() + LEDGER_PATIENCE;
        loop {
            let seen = self.ledger.order(id).await?;
            match seen.as_ref().map(Order::status) {
                Some(OrderStatus::Waiting) => {}
                Some(OrderStatus::Withdrawn) => return Ok(seen.map(CancelReply::Cancelled)),
                Some(_) | None => return Ok(None),
            }
            if self.clock.monotonic() >= deadline {
                let why = "the ledger has a place that the gate does not";
                return Err(Fault::unavailable("cancel_order", why));
            }
            self.clock.sleep(LEDGER_PAUSE).await;
        }
    }

    async fn cancel_live(&self, id: OrderId) -> Result<CancelReply, Fault> {
        let reply = retrying(&*self.clock, || self.cancel(id)).await?;
        if let CancelReply::Cancelled(order) = &reply {
            self.relay.nudge(order.voucher).await;
        }
        Ok(reply)
    }

    async fn cancel(&self, id: OrderId) -> Result<CancelReply, Fault> {
        let mut unit = self.ledger.begin().await?;
        let Some(mut order) = unit.lock_order(id).await? else {
            return Ok(CancelReply::Refused(Forbidden::Queued));
        };
        let before = order.status();
        match order.cancel(unit.now().await?) {
            Err(refused) => Ok(CancelReply::Refused(refused)),
            Ok(Transition::AlreadyApplied) => Ok(CancelReply::Cancelled(order)),
            Ok(Transition::Applied) => {
                if unit
                    .save_orders(before, std::slice::from_ref(&order))
                    .await?
                    != 1
                {
                    let moved = "the order moved under its lock";
                    return Err(Fault::unavailable("cancel_order", moved));
                }
                unit.release(order.voucher, &[Release::of(&order)]).await?;
                unit.append_events(&[NewEvent::of_order(&order)]).await?;
                unit.commit().await?;
                Ok(CancelReply::Cancelled(order))
            }
        }
    }
}

impl Release {
    /// All units of an order.
    pub fn of(order: &Order) -> Self {
        Self {
            order: order.id,
            buyer: order.buyer,
            quantity: order.quantity,
        }
    }
}

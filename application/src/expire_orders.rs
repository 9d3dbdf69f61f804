//! Payment windows end.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{NewEvent, Order, OrderId, OrderStatus, Timestamp, Transition, VoucherId};

use crate::ports::{DelayQueue, HotPath, Ledger, LedgerPorts, Release, UnitOfWork};
use crate::{Fault, Meters, RelayUpdates};

/// How long a claim of the delay queue lasts; a worker that dies has its orders due again then.
const CLAIM_HOLD: Duration = Duration::from_secs(10);
/// Most orders of one transaction.
const BATCH_MAX: usize = 500;

/// Expires overdue orders in batches, by the ledger's clock, and gives their units back in the same
/// transaction.
pub struct ExpireOrders {
    ledger: Arc<dyn Ledger>,
    delays: Arc<dyn DelayQueue>,
    relay: Arc<RelayUpdates>,
    meters: Arc<Meters>,
}

impl ExpireOrders {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        relay: Arc<RelayUpdates>,
        meters: Arc<Meters>,
    ) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
            delays: hot.delays.clone(),
            relay,
            meters,
        }
    }

    /// The sweep: expires one batch of what the ledger says is overdue. Returns how many orders
    /// expired; call again while it is [`ExpireOrders::BATCH_MAX`].
    pub async fn sweep(&self) -> Result<usize, Fault> {
        let mut unit = self.ledger.begin().await?;
        let overdue = unit.lock_overdue_orders(BATCH_MAX).await?;
        self.expire(unit, overdue).await
    }

    /// The delay queue: expires one batch of what it says is due. What the ledger says is not due
    /// yet goes back to its time. Returns how many orders were claimed; call again while it is
    /// [`ExpireOrders::BATCH_MAX`].
    pub async fn on_time(&self) -> Result<usize, Fault> {
        let due = self.delays.claim_due(BATCH_MAX, CLAIM_HOLD).await?;
        if due.is_empty() {
            return Ok(0);
        }
        let mut unit = self.ledger.begin().await?;
        let orders = unit.lock_orders(&due).await?;
        let early: Vec<(OrderId, Timestamp)> = Self::not_yet_due(&orders, unit.now().await?);
        self.expire(unit, orders).await?;
        let early_ids: HashSet<OrderId> = early.iter().map(|(id, _)| *id).collect();
        let claimed = due.len();
        let handled: Vec<OrderId> = due
            .into_iter()
            .filter(|id| !early_ids.contains(id))
            .collect();
        self.delays.complete(&handled).await?;
        self.delays.schedule(&early).await?;
        Ok(claimed)
    }

    fn not_yet_due(orders: &[Order], now: Timestamp) -> Vec<(OrderId, Timestamp)> {
        let early = orders.iter().filter(|order| order.is_due_later(now));
        early
            .filter_map(|order| Some((order.id, order.expires_at?)))
            .collect()
    }

    /// Expires those of the locked orders that are overdue, gives their units back, and lets the
    /// gate follow.
    async fn expire(
        &self,
        mut unit: Box<dyn UnitOfWork>,
        mut orders: Vec<Order>,
    ) -> Result<usize, Fault> {
        if orders.is_empty() {
            return Ok(0);
        }
        let now = unit.now().await?;
        orders.retain_mut(|order| order.expire(now) == Ok(Transition::Applied));
        if unit
            .save_orders(OrderStatus::PendingPayment, &orders)
            .await?
            != orders.len()
        {
            return Err(Fault::unavailable(
                "expire_orders",
                "orders moved under their locks",
            ));
        }
        let by_voucher = Self::by_voucher(&orders);
        for (voucher, releases) in &by_voucher {
            unit.release(*voucher, releases).await?;
        }
        let events: Vec<NewEvent> = orders.iter().map(NewEvent::of_order).collect();
        unit.append_events(&events).await?;
        unit.commit().await?;
        self.meters.expired.add(orders.len());
        for voucher in by_voucher.keys() {
            self.relay.nudge(*voucher).await;
        }
        Ok(orders.len())
    }

    /// Most orders of one call.
    pub const BATCH_MAX: usize = BATCH_MAX;

    /// Sorted, so that transactions lock vouchers in one order.
    fn by_voucher(orders: &[Order]) -> BTreeMap<VoucherId, Vec<Release>> {
        let mut releases: BTreeMap<VoucherId, Vec<Release>> = BTreeMap::new();
        for order in orders {
            releases
                .entry(order.voucher)
                .or_default()
                .push(Release::of(order));
        }
        releases
    }
}

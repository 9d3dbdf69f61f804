//! Payment windows end.

use std::collections::BTreeMap;
use std::sync::Arc;

use seckill_domain::{Order, OrderStatus, Transition, VoucherId};

use crate::ports::{Ledger, LedgerPorts, Release};
use crate::{Fault, Meters, RelayUpdates};

/// Most orders of one transaction.
const BATCH_MAX: usize = 500;

/// Expires overdue orders in batches, by the ledger's clock, and gives their units back in the same
/// transaction.
pub struct ExpireOrders {
    ledger: Arc<dyn Ledger>,
    relay: Arc<RelayUpdates>,
    meters: Arc<Meters>,
}

impl ExpireOrders {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts, relay: Arc<RelayUpdates>, meters: Arc<Meters>) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
            relay,
            meters,
        }
    }

    /// Expires one batch and lets the gate follow. Returns how many orders expired; call again
    /// while it is [`ExpireOrders::BATCH_MAX`].
    pub async fn run(&self) -> Result<usize, Fault> {
        let mut unit = self.ledger.begin().await?;
        let mut due = unit.lock_overdue_orders(BATCH_MAX).await?;
        if due.is_empty() {
            return Ok(0);
        }
        let now = unit.now().await?;
        due.retain_mut(|order| order.expire(now) == Ok(Transition::Applied));
        if unit.save_orders(OrderStatus::PendingPayment, &due).await? != due.len() {
            return Err(Fault::unavailable(
                "expire_orders",
                "orders moved under their locks",
            ));
        }
        let by_voucher = Self::by_voucher(&due);
        for (voucher, releases) in &by_voucher {
            unit.release(*voucher, releases).await?;
        }
        unit.commit().await?;
        self.meters.expired.add(due.len());
        for voucher in by_voucher.keys() {
            self.relay.nudge(*voucher).await;
        }
        Ok(due.len())
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

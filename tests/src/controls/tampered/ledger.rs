//! The reads of a ledger.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Ledger, LedgerTally, Page, ParkedOrder, SaleSnapshot, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    BuyerId, GateVersion, IdempotencyKey, Order, OrderId, OrderStatus, Voucher, VoucherId,
};

use super::unit_of_work::StoppedUnit;
use crate::controls::Checkpoint;

/// Stops whoever has read and is about to write.
pub struct TamperedLedger {
    /// What it stands before.
    pub inner: Arc<dyn Ledger>,
    /// Where a loader stops that has its snapshot.
    pub after_snapshot: Option<Checkpoint>,
    /// Where a command stops that is about to write the stages of orders.
    pub before_save: Option<Checkpoint>,
}

#[async_trait]
impl Ledger for TamperedLedger {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let inner = self.inner.begin().await?;
        Ok(match &self.before_save {
            Some(checkpoint) => Box::new(StoppedUnit {
                inner,
                before_save: checkpoint.clone(),
            }),
            None => inner,
        })
    }

    async fn is_unsettled(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.inner.is_unsettled(voucher).await
    }

    async fn voucher(&self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        self.inner.voucher(id).await
    }

    async fn vouchers(
        &self,
        filter: VoucherFilter,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<Voucher>, Fault> {
        self.inner.vouchers(filter, before, limit).await
    }

    async fn parked_order(&self, id: OrderId) -> Result<Option<ParkedOrder>, Fault> {
        self.inner.parked_order(id).await
    }

    async fn order(&self, id: OrderId) -> Result<Option<Order>, Fault> {
        self.inner.order(id).await
    }

    async fn stages(&self, ids: &[OrderId]) -> Result<Vec<(OrderId, OrderStatus)>, Fault> {
        self.inner.stages(ids).await
    }

    async fn orders_of(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<Order>, Fault> {
        self.inner.orders_of(buyer, before, limit).await
    }

    async fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Order>, Fault> {
        self.inner.orders_on(voucher, buyer, key).await
    }

    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
        let snapshot = self.inner.sale_snapshot(voucher).await?;
        if let Some(checkpoint) = &self.after_snapshot {
            checkpoint.stop().await;
        }
        Ok(snapshot)
    }

    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault> {
        self.inner.tally(voucher, gate_version).await
    }

    async fn waiting_position(&self, order: OrderId) -> Result<Option<u32>, Fault> {
        self.inner.waiting_position(order).await
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.inner.ping().await
    }
}

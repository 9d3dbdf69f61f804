//! A transaction.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, NewAdjustment, NewVoucher, PaymentRecord, Release, UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Money, NewEvent, Order, OrderId, OrderStatus, PaymentId,
    RefundReason, Timestamp, Voucher, VoucherId,
};

use crate::controls::Checkpoint;

/// Stops before it writes the stages of orders.
pub(super) struct StoppedUnit {
    pub(super) inner: Box<dyn UnitOfWork>,
    pub(super) before_save: Checkpoint,
}

#[async_trait]
impl UnitOfWork for StoppedUnit {
    async fn now(&mut self) -> Result<Timestamp, Fault> {
        self.inner.now().await
    }

    async fn insert_voucher(&mut self, voucher: &NewVoucher) -> Result<Voucher, Fault> {
        self.inner.insert_voucher(voucher).await
    }

    async fn lock_voucher(&mut self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        self.inner.lock_voucher(id).await
    }

    async fn save_voucher(
        &mut self,
        voucher: &Voucher,
        follow: bool,
    ) -> Result<GateVersion, Fault> {
        self.inner.save_voucher(voucher, follow).await
    }

    async fn lock_order(&mut self, id: OrderId) -> Result<Option<Order>, Fault> {
        self.inner.lock_order(id).await
    }

    async fn lock_orders(&mut self, ids: &[OrderId]) -> Result<Vec<Order>, Fault> {
        self.inner.lock_orders(ids).await
    }

    async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault> {
        self.inner.lock_overdue_orders(max).await
    }

    async fn save_orders(&mut self, from: OrderStatus, orders: &[Order]) -> Result<usize, Fault> {
        self.before_save.stop().await;
        self.inner.save_orders(from, orders).await
    }

    async fn release(
        &mut self,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault> {
        self.inner.release(voucher, releases).await
    }

    async fn record_adjustment(
        &mut self,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault> {
        self.inner.record_adjustment(adjustment).await
    }

    async fn add_units(
        &mut self,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault> {
        self.inner.add_units(voucher, adjustment, units).await
    }

    async fn refuse_adjustment(&mut self, adjustment: AdjustmentId) -> Result<(), Fault> {
        self.inner.refuse_adjustment(adjustment).await
    }

    async fn adjustment(&mut self, id: AdjustmentId) -> Result<Option<Adjustment>, Fault> {
        self.inner.adjustment(id).await
    }

    async fn push_update(
        &mut self,
        voucher: VoucherId,
        changes: &[GateChange],
    ) -> Result<GateVersion, Fault> {
        self.inner.push_update(voucher, changes).await
    }

    async fn mark_retired(&mut self, voucher: VoucherId) -> Result<(), Fault> {
        self.inner.mark_retired(voucher).await
    }

    async fn append_events(&mut self, events: &[NewEvent]) -> Result<(), Fault> {
        self.inner.append_events(events).await
    }

    async fn record_payment(
        &mut self,
        payment: &PaymentRecord,
    ) -> Result<Option<PaymentRecord>, Fault> {
        self.inner.record_payment(payment).await
    }

    async fn record_refund(
        &mut self,
        order: OrderId,
        payment: &PaymentId,
        amount: Money,
        reason: RefundReason,
    ) -> Result<(), Fault> {
        self.inner
            .record_refund(order, payment, amount, reason)
            .await
    }

    async fn commit(self: Box<Self>) -> Result<(), Fault> {
        self.inner.commit().await
    }
}

//! Bugs of a transaction, and of whoever should be told of it.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, NewAdjustment, NewVoucher, Notifier, PaymentRecord, Release,
    UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, Event, GateChange, GateVersion, Money, NewEvent, Order, OrderId, OrderStatus,
    PaymentId, RefundReason, Timestamp, Voucher, VoucherId,
};

use super::Bug;

/// Writes no events, records half of a refund, or goes by a clock that stands still.
pub(super) struct Careless {
    pub(super) inner: Box<dyn UnitOfWork>,
    pub(super) bug: Bug,
}

/// Tells nobody.
pub(super) struct Mute;

#[async_trait]
impl Notifier for Mute {
    async fn notify(&self, _: &[Event]) -> Result<(), Fault> {
        Ok(())
    }
}

macro_rules! statements {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*) => {
        #[async_trait]
        impl UnitOfWork for Careless {
            $(async fn $method(&mut self, $($arg: $ty),*) -> Result<$reply, Fault> {
                self.inner.$method($($arg),*).await
            })*

            async fn now(&mut self) -> Result<Timestamp, Fault> {
                let now = self.inner.now().await?;
                let stands_still = self.bug == Bug::NoWindow;
                Ok(if stands_still { Timestamp::from_millis(0) } else { now })
            }

            async fn append_events(&mut self, events: &[NewEvent]) -> Result<(), Fault> {
                if self.bug == Bug::NothingWritten {
                    return Ok(());
                }
                self.inner.append_events(events).await
            }

            async fn record_refund(
                &mut self,
                order: OrderId,
                payment: &PaymentId,
                mut amount: Money,
                reason: RefundReason,
            ) -> Result<(), Fault> {
                if self.bug == Bug::HalfRefunds {
                    amount.minor /= 2;
                }
                self.inner.record_refund(order, payment, amount, reason).await
            }

            async fn commit(self: Box<Self>) -> Result<(), Fault> {
                self.inner.commit().await
            }
        }
    };
}

statements! {
    insert_voucher(voucher: &NewVoucher) -> Voucher;
    lock_voucher(id: VoucherId) -> Option<Voucher>;
    save_voucher(voucher: &Voucher, follow: bool) -> GateVersion;
    lock_order(id: OrderId) -> Option<Order>;
    lock_orders(ids: &[OrderId]) -> Vec<Order>;
    lock_overdue_orders(max: usize) -> Vec<Order>;
    save_orders(from: OrderStatus, orders: &[Order]) -> usize;
    release(voucher: VoucherId, releases: &[Release]) -> GateVersion;
    record_adjustment(adjustment: &NewAdjustment) -> AdjustmentReply;
    add_units(voucher: VoucherId, adjustment: AdjustmentId, units: u32) -> GateVersion;
    refuse_adjustment(adjustment: AdjustmentId) -> ();
    adjustment(id: AdjustmentId) -> Option<Adjustment>;
    push_update(voucher: VoucherId, changes: &[GateChange]) -> GateVersion;
    mark_retired(voucher: VoucherId) -> ();
    record_payment(payment: &PaymentRecord) -> Option<PaymentRecord>;
}

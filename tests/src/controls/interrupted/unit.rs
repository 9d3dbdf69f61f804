//! A transaction of a process that stops in it: it is dropped, and the database rolls it back.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, NewAdjustment, NewVoucher, PaymentRecord, Release, UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Money, NewEvent, Order, OrderId, OrderStatus, PaymentId,
    RefundReason, Timestamp, Voucher, VoucherId,
};

use super::Fuse;

/// Counts each statement.
pub(super) struct InterruptedUnit {
    inner: Box<dyn UnitOfWork>,
    fuse: Arc<Fuse>,
}

impl InterruptedUnit {
    pub(super) fn new(inner: Box<dyn UnitOfWork>, fuse: Arc<Fuse>) -> Self {
        Self { inner, fuse }
    }
}

macro_rules! statements {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*) => {
        #[async_trait]
        impl UnitOfWork for InterruptedUnit {
            $(async fn $method(&mut self, $($arg: $ty),*) -> Result<$reply, Fault> {
                const NAME: &str = concat!("unit_of_work.", stringify!($method));
                self.fuse.call(NAME, self.inner.$method($($arg),*)).await
            })*

            async fn commit(self: Box<Self>) -> Result<(), Fault> {
                self.fuse.call("unit_of_work.commit", self.inner.commit()).await
            }
        }
    };
}

statements! {
    now() -> Timestamp;
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
    append_events(events: &[NewEvent]) -> ();
    record_payment(payment: &PaymentRecord) -> Option<PaymentRecord>;
    record_refund(order: OrderId, payment: &PaymentId, amount: Money, reason: RefundReason) -> ();
}

//! A transaction whose connection may break.

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

use crate::link::{Link, Way};
use crate::watch::Watch;

/// A transaction over a way. A statement that fails ends it: the database rolls back what a broken
/// connection leaves behind, so its effect is known.
pub(super) struct FaultyUnit {
    inner: Option<Box<dyn UnitOfWork>>,
    link: Arc<Link>,
    watch: Arc<Watch>,
}

impl FaultyUnit {
    pub(super) fn new(inner: Box<dyn UnitOfWork>, link: Arc<Link>, watch: Arc<Watch>) -> Self {
        Self {
            inner: Some(inner),
            link,
            watch,
        }
    }

    fn broken<T>(&mut self, name: &'static str, fault: Fault) -> Result<T, Fault> {
        self.inner = None;
        if fault.is_retryable() {
            return Err(Fault::unavailable(name, fault));
        }
        Err(fault)
    }
}

macro_rules! statements {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*) => {
        #[async_trait]
        impl UnitOfWork for FaultyUnit {
            $(async fn $method(&mut self, $($arg: $ty),*) -> Result<$reply, Fault> {
                const NAME: &str = concat!("unit_of_work.", stringify!($method));
                let Some(inner) = &mut self.inner else {
                    return Err(Fault::unavailable(NAME, "the connection is broken"));
                };
                match self.link.call(NAME, inner.$method($($arg),*)).await {
                    Ok(reply) => Ok(reply),
                    Err(fault) => self.broken(NAME, fault),
                }
            })*

            async fn commit(mut self: Box<Self>) -> Result<(), Fault> {
                const NAME: &str = "unit_of_work.commit";
                let Some(inner) = self.inner.take() else {
                    return Err(Fault::unavailable(NAME, "the connection is broken"));
                };
                let watch = |(): &(), way: Way| self.watch.committed(way);
                self.link.watched(NAME, None, inner.commit(), watch).await
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

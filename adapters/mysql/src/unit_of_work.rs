//! A transaction for single commands.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, NewAdjustment, NewVoucher, PaymentRecord, Release, UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Money, NewEvent, Order, OrderId, OrderStatus, PaymentId,
    RefundReason, Timestamp, Voucher, VoucherId,
};

use crate::fault::{Trouble, at_most};
use crate::session::Session;

mod adjustments;
mod money;
mod orders;
pub(crate) mod releases;
mod vouchers;

/// Most orders, and most events, of one call.
const ROWS_MAX: usize = 1_000;

/// A session with an open transaction. After any error it can only be rolled back: the database may
/// have done so already, and a commit would make half of the work stand.
pub(crate) struct MySqlUnit {
    session: Session,
    failed: bool,
}

impl MySqlUnit {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            failed: false,
        }
    }

    fn settle<T>(&mut self, port: &'static str, done: Result<T, Trouble>) -> Result<T, Fault> {
        done.map_err(|trouble| {
            self.failed = true;
            trouble.before_commit(port)
        })
    }
}

#[async_trait]
impl UnitOfWork for MySqlUnit {
    async fn now(&mut self) -> Result<Timestamp, Fault> {
        let done = orders::now(&mut self.session).await;
        self.settle("unit_of_work.now", done)
    }

    async fn insert_voucher(&mut self, voucher: &NewVoucher) -> Result<Voucher, Fault> {
        let done = vouchers::insert(&mut self.session, voucher).await;
        self.settle("unit_of_work.insert_voucher", done)
    }

    async fn lock_voucher(&mut self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        let done = vouchers::lock(&mut self.session, id).await;
        self.settle("unit_of_work.lock_voucher", done)
    }

    async fn save_voucher(
        &mut self,
        voucher: &Voucher,
        follow: bool,
    ) -> Result<GateVersion, Fault> {
        let done = vouchers::save(&mut self.session, voucher, follow).await;
        self.settle("unit_of_work.save_voucher", done)
    }

    async fn lock_order(&mut self, id: OrderId) -> Result<Option<Order>, Fault> {
        let done = orders::lock(&mut self.session, id).await;
        self.settle("unit_of_work.lock_order", done)
    }

    async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault> {
        const PORT: &str = "unit_of_work.lock_overdue_orders";
        at_most(PORT, max, ROWS_MAX)?;
        let done = orders::lock_overdue(&mut self.session, max).await;
        self.settle(PORT, done)
    }

    async fn save_orders(&mut self, from: OrderStatus, orders: &[Order]) -> Result<usize, Fault> {
        const PORT: &str = "unit_of_work.save_orders";
        at_most(PORT, orders.len(), ROWS_MAX)?;
        let done = orders::save(&mut self.session, from, orders).await;
        self.settle(PORT, done)
    }

    async fn release(
        &mut self,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault> {
        const PORT: &str = "unit_of_work.release";
        at_most(PORT, releases.len(), ROWS_MAX)?;
        let done = releases::release(&mut self.session, voucher, releases).await;
        self.settle(PORT, done)
    }

    async fn record_adjustment(
        &mut self,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault> {
        let done = adjustments::record(&mut self.session, adjustment).await;
        self.settle("unit_of_work.record_adjustment", done)
    }

    async fn add_units(
        &mut self,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault> {
        let done = adjustments::add_units(&mut self.session, voucher, adjustment, units).await;
        self.settle("unit_of_work.add_units", done)
    }

    async fn refuse_adjustment(&mut self, adjustment: AdjustmentId) -> Result<(), Fault> {
        let done = adjustments::refuse(&mut self.session, adjustment).await;
        self.settle("unit_of_work.refuse_adjustment", done)
    }

    async fn adjustment(&mut self, id: AdjustmentId) -> Result<Option<Adjustment>, Fault> {
        let done = adjustments::find(&mut self.session, id).await;
        self.settle("unit_of_work.adjustment", done)
    }

    async fn push_update(
        &mut self,
        voucher: VoucherId,
        changes: &[GateChange],
    ) -> Result<GateVersion, Fault> {
        let done = releases::push_update(&mut self.session, voucher, changes).await;
        self.settle("unit_of_work.push_update", done)
    }

    async fn lock_orders(&mut self, ids: &[OrderId]) -> Result<Vec<Order>, Fault> {
        const PORT: &str = "unit_of_work.lock_orders";
        at_most(PORT, ids.len(), ROWS_MAX)?;
        let done = orders::lock_many(&mut self.session, ids).await;
        self.settle(PORT, done)
    }

    async fn mark_retired(&mut self, voucher: VoucherId) -> Result<(), Fault> {
        let done = vouchers::mark_retired(&mut self.session, voucher).await;
        self.settle("unit_of_work.mark_retired", done)
    }

    async fn append_events(&mut self, events: &[NewEvent]) -> Result<(), Fault> {
        const PORT: &str = "unit_of_work.append_events";
        at_most(PORT, events.len(), ROWS_MAX)?;
        let done = crate::events::append(&mut self.session, events).await;
        self.settle(PORT, done)
    }

    async fn record_payment(
        &mut self,
        payment: &PaymentRecord,
    ) -> Result<Option<PaymentRecord>, Fault> {
        let done = money::record_payment(&mut self.session, payment).await;
        self.settle("unit_of_work.record_payment", done)
    }

    async fn record_refund(
        &mut self,
        order: OrderId,
        payment: &PaymentId,
        amount: Money,
        reason: RefundReason,
    ) -> Result<(), Fault> {
        let done = money::record_refund(&mut self.session, order, payment, amount, reason).await;
        self.settle("unit_of_work.record_refund", done)
    }

    async fn commit(mut self: Box<Self>) -> Result<(), Fault> {
        const PORT: &str = "unit_of_work.commit";
        if self.failed {
            let trouble = Trouble::broken("an earlier statement of the transaction failed");
            return Err(trouble.before_commit(PORT));
        }
        self.session
            .commit()
            .await
            .map_err(|trouble| trouble.at_commit(PORT))
    }
}

//! A transaction: what it changes is its own until it commits, and gone if it does not.

use std::collections::BTreeSet;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, NewAdjustment, NewVoucher, PaymentRecord, Release, UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Money, NewEvent, Order, OrderId, OrderStatus, PaymentId,
    RefundReason, Timestamp, Voucher, VoucherId,
};

use super::book::Book;
use super::changes::Changes;
use super::locks::{Row, TransactionId};
use super::money::NewRefund;
use super::{MemoryLedger, State};
use crate::chaos::at_most;

const ORDERS_MAX: usize = 1_000;
const EVENTS_MAX: usize = 1_000;

/// A transaction under way. Dropped, it is rolled back.
pub(super) struct Transaction {
    ledger: MemoryLedger,
    id: TransactionId,
    changes: Changes,
    /// The database has rolled it back, or the connection is gone.
    over: bool,
}

impl Transaction {
    pub(super) fn begin(ledger: MemoryLedger) -> Self {
        let id = ledger.state().locks.begin();
        Self {
            ledger,
            id,
            changes: Changes::default(),
            over: false,
        }
    }

    /// One statement: takes its rows, one after the other, then does its work in one step. One that
    /// fails ends the transaction, as a lost connection or a deadlock does.
    async fn statement<T>(
        &mut self,
        name: &'static str,
        rows: impl IntoIterator<Item = Row> + Send,
        work: impl FnOnce(&mut Changes, &mut Book) -> Result<T, Fault> + Send,
    ) -> Result<T, Fault> {
        self.take(name, rows.into_iter().collect()).await?;
        let done = self.execute(name, work);
        if done.is_err() {
            self.roll_back();
        }
        done
    }

    fn execute<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Changes, &mut Book) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let call = self.ledger.shared.chaos.enter(name)?;
        let done = work(&mut self.changes, &mut self.ledger.state().book)?;
        // Whatever the statement did is rolled back when its answer is lost: the effect is known.
        call.answer(done)
            .map_err(|_| Fault::unavailable(name, "the connection broke; rolled back"))
    }

    async fn take(&mut self, name: &'static str, rows: Vec<Row>) -> Result<(), Fault> {
        if self.over {
            return Err(Fault::unavailable(name, "the transaction was rolled back"));
        }
        for row in rows {
            if let Err(fault) = self.ledger.lock(name, self.id, row).await {
                self.roll_back();
                return Err(fault);
            }
        }
        Ok(())
    }

    fn clock_time(&self) -> Timestamp {
        self.ledger.shared.clock.now()
    }

    fn roll_back(&mut self) {
        self.over = true;
        self.changes = Changes::default();
        self.ledger.unlock(self.id);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.ledger.unlock(self.id);
    }
}

#[async_trait]
impl UnitOfWork for Transaction {
    async fn now(&mut self) -> Result<Timestamp, Fault> {
        let now = self.clock_time();
        self.statement("unit_of_work.now", [], |_, _| Ok(now)).await
    }

    async fn insert_voucher(&mut self, voucher: &NewVoucher) -> Result<Voucher, Fault> {
        let now = self.clock_time();
        self.statement("unit_of_work.insert_voucher", [], |changes, book| {
            Ok(changes.insert_voucher(book, voucher, now))
        })
        .await
    }

    async fn lock_voucher(&mut self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        let rows = [Row::Voucher(id)];
        self.statement("unit_of_work.lock_voucher", rows, |changes, book| {
            Ok(changes.voucher(book, id).cloned())
        })
        .await
    }

    async fn save_voucher(
        &mut self,
        voucher: &Voucher,
        follow: bool,
    ) -> Result<GateVersion, Fault> {
        let rows = [Row::Voucher(voucher.id)];
        self.statement("unit_of_work.save_voucher", rows, |changes, book| {
            changes.save_voucher(book, voucher, follow)
        })
        .await
    }

    async fn lock_order(&mut self, id: OrderId) -> Result<Option<Order>, Fault> {
        let rows = [Row::Order(id)];
        self.statement("unit_of_work.lock_order", rows, |changes, book| {
            Ok(changes.order(book, id).cloned())
        })
        .await
    }

    async fn lock_orders(&mut self, ids: &[OrderId]) -> Result<Vec<Order>, Fault> {
        const LOCK_ORDERS: &str = "unit_of_work.lock_orders";
        at_most(LOCK_ORDERS, ids.len(), ORDERS_MAX)?;
        let ids: BTreeSet<OrderId> = ids.iter().copied().collect();
        let rows: Vec<Row> = ids.iter().copied().map(Row::Order).collect();
        self.statement(LOCK_ORDERS, rows, |changes, book| {
            let orders = ids.iter().filter_map(|id| changes.order(book, *id));
            Ok(orders.cloned().collect())
        })
        .await
    }

    async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault> {
        const LOCK_OVERDUE: &str = "unit_of_work.lock_overdue_orders";
        at_most(LOCK_OVERDUE, max, ORDERS_MAX)?;
        let now = self.clock_time();
        // A statement of its own, so that a broken connection shows before anything is locked.
        self.statement(LOCK_OVERDUE, [], |_, _| Ok(())).await?;
        let mut state = self.ledger.state();
        let State { book, locks } = &mut *state;
        let mut overdue = Vec::new();
        for (_, id) in book.due.range(..=(now, OrderId::new(u64::MAX))) {
            if overdue.len() == max {
                break;
            }
            let Some(order) = self.changes.order(book, *id) else {
                continue;
            };
            let ours = order.status() == OrderStatus::PendingPayment;
            if ours && locks.try_take(self.id, &Row::Order(*id)) {
                overdue.push(order.clone());
            }
        }
        Ok(overdue)
    }

    async fn save_orders(&mut self, from: OrderStatus, orders: &[Order]) -> Result<usize, Fault> {
        let rows: Vec<Row> = orders.iter().map(|order| Row::Order(order.id)).collect();
        self.statement("unit_of_work.save_orders", rows, |changes, book| {
            Ok(changes.save_orders(book, from, orders))
        })
        .await
    }

    async fn release(
        &mut self,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault> {
        let buyers = releases.iter().map(|release| release.buyer);
        let mut rows: Vec<Row> = buyers.map(|buyer| Row::Holding(voucher, buyer)).collect();
        rows.push(Row::Voucher(voucher));
        self.statement("unit_of_work.release", rows, |changes, book| {
            changes.release(book, voucher, releases)
        })
        .await
    }

    async fn record_adjustment(
        &mut self,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault> {
        let key = adjustment.key.clone();
        let row = key.map(|key| Row::AdjustmentKey(adjustment.voucher, key));
        self.statement("unit_of_work.record_adjustment", row, |changes, book| {
            changes.record_adjustment(book, adjustment)
        })
        .await
    }

    async fn add_units(
        &mut self,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault> {
        let rows = [Row::Adjustment(adjustment), Row::Voucher(voucher)];
        self.statement("unit_of_work.add_units", rows, |changes, book| {
            changes.add_units(book, voucher, adjustment, units)
        })
        .await
    }

    async fn refuse_adjustment(&mut self, adjustment: AdjustmentId) -> Result<(), Fault> {
        let rows = [Row::Adjustment(adjustment)];
        self.statement("unit_of_work.refuse_adjustment", rows, |changes, book| {
            changes.refuse_adjustment(book, adjustment)
        })
        .await
    }

    async fn adjustment(&mut self, id: AdjustmentId) -> Result<Option<Adjustment>, Fault> {
        self.statement("unit_of_work.adjustment", [], |changes, book| {
            let row = changes.adjustment(book, id);
            Ok(row.map(|row| row.adjustment.clone()))
        })
        .await
    }

    async fn push_update(
        &mut self,
        voucher: VoucherId,
        changes: &[GateChange],
    ) -> Result<GateVersion, Fault> {
        const PUSH_UPDATE: &str = "unit_of_work.push_update";
        let pushed = changes.to_vec();
        let rows = [Row::Voucher(voucher)];
        self.statement(PUSH_UPDATE, rows, |changes, book| {
            changes.push_update(book, PUSH_UPDATE, voucher, pushed)
        })
        .await
    }

    async fn mark_retired(&mut self, voucher: VoucherId) -> Result<(), Fault> {
        let rows = [Row::Voucher(voucher)];
        self.statement("unit_of_work.mark_retired", rows, |changes, book| {
            changes.mark_retired(book, voucher)
        })
        .await
    }

    async fn append_events(&mut self, events: &[NewEvent]) -> Result<(), Fault> {
        const APPEND_EVENTS: &str = "unit_of_work.append_events";
        at_most(APPEND_EVENTS, events.len(), EVENTS_MAX)?;
        let now = self.clock_time();
        self.statement(APPEND_EVENTS, [], |changes, _| {
            changes.events.extend(events.iter().map(|it| (*it, now)));
            Ok(())
        })
        .await
    }

    async fn record_payment(
        &mut self,
        payment: &PaymentRecord,
    ) -> Result<Option<PaymentRecord>, Fault> {
        let rows = [Row::Payment(payment.payment.clone())];
        self.statement("unit_of_work.record_payment", rows, |changes, book| {
            Ok(changes.record_payment(book, payment))
        })
        .await
    }

    async fn record_refund(
        &mut self,
        order: OrderId,
        payment: &PaymentId,
        amount: Money,
        reason: RefundReason,
    ) -> Result<(), Fault> {
        let refund = NewRefund {
            order,
            amount,
            reason,
            at: self.clock_time(),
        };
        let rows = [Row::Refund(payment.clone())];
        self.statement("unit_of_work.record_refund", rows, |changes, book| {
            changes.record_refund(book, payment, refund);
            Ok(())
        })
        .await
    }

    async fn commit(mut self: Box<Self>) -> Result<(), Fault> {
        const COMMIT: &str = "unit_of_work.commit";
        if self.over {
            return Err(Fault::unavailable(
                COMMIT,
                "the transaction was rolled back",
            ));
        }
        let call = self.ledger.shared.chaos.enter(COMMIT)?;
        let changes = std::mem::take(&mut self.changes);
        self.ledger.state().book.commit(changes);
        call.answer(())
    }
}

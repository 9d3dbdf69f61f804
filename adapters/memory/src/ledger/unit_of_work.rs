//! A transaction: what it changes is its own until it commits, and gone if it does not.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, AdjustmentState, NewAdjustment, NewVoucher, Release, UnitOfWork,
};
use seckill_domain::{
    AdjustmentId, GateChange, GateVersion, Order, OrderId, OrderStatus, SaleStatus, Timestamp,
    Voucher, VoucherId,
};

use super::book::{AdjustmentRow, Book};
use super::changes::Changes;
use super::locks::{Row, TransactionId};
use super::{MemoryLedger, State};
use crate::chaos::at_most;

const OVERDUE_MAX: usize = 1_000;

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
        let now = self.ledger.shared.clock.now();
        self.statement("unit_of_work.now", [], |_, _| Ok(now)).await
    }

    async fn insert_voucher(&mut self, voucher: &NewVoucher) -> Result<Voucher, Fault> {
        let now = self.ledger.shared.clock.now();
        let insert = |changes: &mut Changes, book: &mut Book| {
            let row = Voucher {
                id: book.next_voucher(),
                terms: voucher.terms.clone(),
                total_units: voucher.total_units,
                stock_units: voucher.total_units,
                status: SaleStatus::Draft,
                version: GateVersion::default(),
                created_at: now,
            };
            changes.vouchers.insert(row.id, row.clone());
            Ok(row)
        };
        self.statement("unit_of_work.insert_voucher", [], insert)
            .await
    }

    async fn lock_voucher(&mut self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        let look = |changes: &mut Changes, book: &mut Book| Ok(changes.voucher(book, id).cloned());
        self.statement("unit_of_work.lock_voucher", [Row::Voucher(id)], look)
            .await
    }

    async fn save_voucher(
        &mut self,
        voucher: &Voucher,
        follow: bool,
    ) -> Result<GateVersion, Fault> {
        const SAVE_VOUCHER: &str = "unit_of_work.save_voucher";
        let id = voucher.id;
        let save = |changes: &mut Changes, book: &mut Book| {
            let row = changes
                .voucher_mut(book, id)
                .ok_or_else(|| unknown(SAVE_VOUCHER, id))?;
            if row.status == SaleStatus::Draft {
                row.total_units = voucher.total_units;
                row.stock_units = voucher.stock_units;
            }
            row.terms.clone_from(&voucher.terms);
            row.status = voucher.status;
            let (version, terms) = (row.version, row.sale_terms());
            let followed = follow
                .then(|| changes.follow(book, id, vec![GateChange::SetTerms(terms)]))
                .flatten();
            Ok(followed.unwrap_or(version))
        };
        self.statement(SAVE_VOUCHER, [Row::Voucher(id)], save).await
    }

    async fn lock_order(&mut self, id: OrderId) -> Result<Option<Order>, Fault> {
        let look = |changes: &mut Changes, book: &mut Book| Ok(changes.order(book, id).cloned());
        self.statement("unit_of_work.lock_order", [Row::Order(id)], look)
            .await
    }

    async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault> {
        const LOCK_OVERDUE: &str = "unit_of_work.lock_overdue_orders";
        at_most(LOCK_OVERDUE, max, OVERDUE_MAX)?;
        let now = self.ledger.shared.clock.now();
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
        let save = |changes: &mut Changes, book: &mut Book| {
            let mut saved = 0;
            for order in orders {
                let known = changes.order(book, order.id);
                let Some(row) = known.filter(|row| row.status() == from) else {
                    continue;
                };
                let row = Order {
                    stage: order.stage.clone(),
                    ..row.clone()
                };
                changes.put_order(row);
                saved += 1;
            }
            Ok(saved)
        };
        self.statement("unit_of_work.save_orders", rows, save).await
    }

    async fn release(
        &mut self,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault> {
        const RELEASE: &str = "unit_of_work.release";
        let mut rows: Vec<Row> = releases
            .iter()
            .map(|release| Row::Holding(voucher, release.buyer))
            .collect();
        rows.push(Row::Voucher(voucher));
        let release = |changes: &mut Changes, book: &mut Book| {
            let row = changes
                .voucher_mut(book, voucher)
                .ok_or_else(|| unknown(RELEASE, voucher))?;
            row.stock_units += releases.iter().map(|it| it.quantity).sum::<u32>();
            if row.stock_units > row.total_units {
                return Err(Fault::broken(RELEASE, "more units back than there are"));
            }
            let limit = row.terms.per_buyer_limit;
            for release in releases {
                changes
                    .holding_mut(book, voucher, release.buyer, limit)
                    .remove(release.quantity)
                    .map_err(|refused| Fault::broken(RELEASE, refused))?;
            }
            let followed = changes.follow(book, voucher, releases.iter().map(change).collect());
            followed.ok_or_else(|| unknown(RELEASE, voucher))
        };
        self.statement(RELEASE, rows, release).await
    }

    async fn record_adjustment(
        &mut self,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault> {
        const RECORD: &str = "unit_of_work.record_adjustment";
        let voucher = adjustment.voucher;
        let key = adjustment.key.clone().map(|key| (voucher, key));
        let row = key
            .clone()
            .map(|(voucher, key)| Row::AdjustmentKey(voucher, key));
        let record = |changes: &mut Changes, book: &mut Book| {
            changes
                .voucher(book, voucher)
                .ok_or_else(|| unknown(RECORD, voucher))?;
            if let Some(known) = key
                .as_ref()
                .and_then(|key| changes.adjustment_of(book, key))
            {
                return Ok(if known.delta == adjustment.delta {
                    AdjustmentReply::Recorded(known.clone())
                } else {
                    AdjustmentReply::KeyReused
                });
            }
            let recorded = Adjustment {
                id: book.next_adjustment(),
                delta: adjustment.delta,
                state: AdjustmentState::Pending,
            };
            if let Some(key) = key {
                changes.adjustment_keys.insert(key, recorded.id);
            }
            let row = AdjustmentRow {
                voucher,
                adjustment: recorded.clone(),
            };
            changes.adjustments.insert(recorded.id, row);
            Ok(AdjustmentReply::Recorded(recorded))
        };
        self.statement(RECORD, row, record).await
    }

    async fn add_units(
        &mut self,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault> {
        const ADD_UNITS: &str = "unit_of_work.add_units";
        let rows = [Row::Adjustment(adjustment), Row::Voucher(voucher)];
        let add = |changes: &mut Changes, book: &mut Book| {
            let known = changes.adjustment(book, adjustment);
            let fits = known.is_some_and(|row| {
                row.voucher == voucher && i64::from(row.adjustment.delta) == i64::from(units)
            });
            if !fits || !changes.settle_adjustment(book, adjustment, AdjustmentState::Applied) {
                return Err(Fault::broken(ADD_UNITS, "the adjustment is not pending"));
            }
            let row = changes
                .voucher_mut(book, voucher)
                .ok_or_else(|| unknown(ADD_UNITS, voucher))?;
            row.total_units += units;
            row.stock_units += units;
            let added = vec![GateChange::AddUnits { units }];
            let followed = changes.follow(book, voucher, added);
            followed.ok_or_else(|| unknown(ADD_UNITS, voucher))
        };
        self.statement(ADD_UNITS, rows, add).await
    }

    async fn refuse_adjustment(&mut self, adjustment: AdjustmentId) -> Result<(), Fault> {
        const REFUSE: &str = "unit_of_work.refuse_adjustment";
        let refuse = |changes: &mut Changes, book: &mut Book| {
            let known = changes.adjustment(book, adjustment);
            match known.map(|row| row.adjustment.state) {
                Some(AdjustmentState::Pending) => {
                    changes.settle_adjustment(book, adjustment, AdjustmentState::Refused);
                    Ok(())
                }
                Some(AdjustmentState::Refused) => Ok(()),
                _ => Err(Fault::broken(REFUSE, "the adjustment is not pending")),
            }
        };
        let rows = [Row::Adjustment(adjustment)];
        self.statement(REFUSE, rows, refuse).await
    }

    async fn adjustment(&mut self, id: AdjustmentId) -> Result<Option<Adjustment>, Fault> {
        let look = |changes: &mut Changes, book: &mut Book| {
            let row = changes.adjustment(book, id);
            Ok(row.map(|row| row.adjustment.clone()))
        };
        self.statement("unit_of_work.adjustment", [], look).await
    }

    async fn push_update(
        &mut self,
        voucher: VoucherId,
        changes: &[GateChange],
    ) -> Result<GateVersion, Fault> {
        const PUSH_UPDATE: &str = "unit_of_work.push_update";
        let pushed = changes.to_vec();
        let push = |changes: &mut Changes, book: &mut Book| {
            let followed = changes.follow(book, voucher, pushed);
            followed.ok_or_else(|| unknown(PUSH_UPDATE, voucher))
        };
        self.statement(PUSH_UPDATE, [Row::Voucher(voucher)], push)
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

fn unknown(name: &'static str, voucher: VoucherId) -> Fault {
    Fault::broken(name, format!("there is no voucher {voucher}"))
}

fn change(release: &Release) -> GateChange {
    GateChange::Release {
        order: release.order,
        buyer: release.buyer,
        quantity: release.quantity,
    }
}

//! The ledger's side of reconciliation.

use std::collections::HashSet;
use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    DifferenceKind, LastRuns, LedgerOrder, Page, Reconciliations, Report, Told,
};
use seckill_domain::{
    Claim, Decision, GateChange, Order, OrderId, OrderStatus, Timestamp, VoucherId,
};

use super::MemoryLedger;
use super::book::Book;
use super::changes::Changes;
use super::locks::Row;
use super::parked::ParkedRow;
use super::reads::page;
use crate::chaos::at_most;

const ORDERS_MAX: usize = 1_000;
const REPORTS_MAX: usize = 100;
const FORGOTTEN_MAX: usize = 100;
const VOUCHERS_MAX: usize = 1_000;

#[async_trait]
impl Reconciliations for MemoryLedger {
    async fn open_orders(
        &self,
        voucher: VoucherId,
        after: OrderId,
        max: usize,
    ) -> Result<Vec<LedgerOrder>, Fault> {
        const OPEN_ORDERS: &str = "reconciliations.open_orders";
        at_most(OPEN_ORDERS, max, ORDERS_MAX)?;
        self.read(OPEN_ORDERS, |book, _| {
            let last = (voucher, OrderId::new(u64::MAX));
            let orders = book
                .orders_by_voucher
                .range((Excluded((voucher, after)), Included(last)))
                .filter_map(|(_, id)| book.orders.get(id));
            let open = orders.filter(|order| {
                let status = order.status();
                status.is_live() || status == OrderStatus::Waiting
            });
            open.take(max).map(stored).collect()
        })
    }

    async fn orders(&self, ids: &[OrderId]) -> Result<Vec<LedgerOrder>, Fault> {
        const ORDERS: &str = "reconciliations.orders";
        at_most(ORDERS, ids.len(), ORDERS_MAX)?;
        self.read(ORDERS, |book, _| {
            let orders = ids.iter().filter_map(|id| book.ledger_order(*id));
            orders.collect()
        })
    }

    async fn being_released(
        &self,
        voucher: VoucherId,
        ids: &[OrderId],
    ) -> Result<Vec<OrderId>, Fault> {
        const BEING_RELEASED: &str = "reconciliations.being_released";
        at_most(BEING_RELEASED, ids.len(), ORDERS_MAX)?;
        self.read(BEING_RELEASED, |book, _| {
            let updates = book.outbox.get(&voucher).into_iter();
            let changes = updates.flat_map(|it| it.values().flat_map(|(_, it)| &it.changes));
            let released: HashSet<OrderId> = changes.filter_map(released_order).collect();
            let ids = ids.iter().filter(|id| released.contains(id));
            ids.copied().collect()
        })
    }

    async fn repair(
        &self,
        kind: DifferenceKind,
        claim: &Claim,
        seen: Option<OrderStatus>,
    ) -> Result<bool, Fault> {
        const REPAIR: &str = "reconciliations.repair";
        let change = kind
            .mended_by(claim)
            .ok_or_else(|| Fault::broken(REPAIR, "no update mends this"))?;
        let rows = |_: &Book| vec![Row::Order(claim.order), Row::Voucher(claim.voucher)];
        self.when_free(REPAIR, rows, |book, _| {
            let now = book.ledger_order(claim.order).map(|order| order.status);
            let mut changes = Changes::default();
            if now != seen || changes.follow(book, claim.voucher, vec![change]).is_none() {
                return false;
            }
            book.commit(changes);
            true
        })
        .await
    }

    async fn store(&self, report: &Report) -> Result<u64, Fault> {
        self.write("reconciliations.store", |book, _| {
            let id = book.reports.back().map_or(1, |last| last.id + 1);
            book.reports.push_back(Report {
                id,
                ..report.clone()
            });
            if !report.dry_run {
                for found in &report.vouchers {
                    book.loads
                        .entry(found.voucher)
                        .or_default()
                        .tell(found.reloads);
                }
            }
            id
        })
    }

    async fn told_before(&self, voucher: VoucherId) -> Result<Vec<Told>, Fault> {
        self.read("reconciliations.told_before", |book, _| {
            let newest = book.reports.iter().rev().filter(|it| !it.dry_run);
            let mut about = newest.filter_map(|report| {
                let mut found = report.vouchers.iter();
                found.find(|found| found.voucher == voucher)
            });
            let told = about.next().into_iter().flat_map(|it| &it.differences);
            told.map(|it| Told::of(&it.claim, it.kind)).collect()
        })
    }

    async fn note_load(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.write("reconciliations.note_load", |book, _| {
            let loads = book.loads.entry(voucher).or_default();
            loads.count += 1;
            loads.count > 1
        })
    }

    async fn reloads(&self, vouchers: &[VoucherId]) -> Result<Vec<(VoucherId, u32)>, Fault> {
        const RELOADS: &str = "reconciliations.reloads";
        at_most(RELOADS, vouchers.len(), VOUCHERS_MAX)?;
        self.read(RELOADS, |book, _| {
            let untold = vouchers.iter().map(|voucher| {
                let loads = book.loads.get(voucher).copied().unwrap_or_default();
                (*voucher, loads.untold())
            });
            untold.filter(|(_, reloads)| *reloads > 0).collect()
        })
    }

    async fn last_runs(&self) -> Result<LastRuns, Fault> {
        self.read("reconciliations.last_runs", |book, _| {
            let newest = || book.reports.iter().rev().filter(|it| !it.dry_run);
            LastRuns {
                any: newest().map(|it| it.started_at).next(),
                full: newest().filter(|it| it.full).map(|it| it.started_at).next(),
            }
        })
    }

    async fn forget(&self, before: Timestamp, max: usize) -> Result<usize, Fault> {
        const FORGET: &str = "reconciliations.forget";
        at_most(FORGET, max, FORGOTTEN_MAX)?;
        self.write(FORGET, |book, _| {
            let old = book.reports.iter().take(max);
            let old = old.take_while(|it| it.started_at < before).count();
            book.reports.drain(..old);
            old
        })
    }

    async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault> {
        const REPORTS: &str = "reconciliations.reports";
        at_most(REPORTS, limit, REPORTS_MAX)?;
        self.read(REPORTS, |book, _| {
            let older = |report: &&Report| before.is_none_or(|before| report.id < before);
            let found = book.reports.iter().rev().filter(older);
            page(found.cloned(), limit, |report| report.id)
        })
    }
}

impl Book {
    /// An order for comparison. One that is parked counts as queued, with what its message claims.
    fn ledger_order(&self, id: OrderId) -> Option<LedgerOrder> {
        let status = self.status_of(id)?;
        let decision = self.parked.of_order(id).and_then(ParkedRow::decision);
        let parked = decision.and_then(Decision::claim).cloned();
        if let Some(order) = self.orders.get(&id) {
            let order = LedgerOrder {
                status,
                ..stored(order)
            };
            return Some(order.contested_by(parked));
        }
        Some(LedgerOrder {
            claim: parked?,
            status,
            ticket: None,
            contested: None,
        })
    }
}

fn stored(order: &Order) -> LedgerOrder {
    LedgerOrder {
        claim: Claim {
            order: order.id,
            voucher: order.voucher,
            buyer: order.buyer,
            quantity: order.quantity,
            key: order.key.clone(),
        },
        status: order.status(),
        ticket: order.ticket,
        contested: None,
    }
}

fn released_order(change: &GateChange) -> Option<OrderId> {
    match change {
        GateChange::Release { order, .. } | GateChange::DropPlace { order, .. } => Some(*order),
        _ => None,
    }
}

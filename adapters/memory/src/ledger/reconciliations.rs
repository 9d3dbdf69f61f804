//! The ledger's side of reconciliation.

use std::collections::HashSet;
use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{DifferenceKind, LedgerOrder, Page, Reconciliations, Report};
use seckill_domain::{Claim, Decision, GateChange, Order, OrderId, OrderStatus, VoucherId};

use super::MemoryLedger;
use super::book::Book;
use super::changes::Changes;
use super::locks::Row;
use super::parked::ParkedRow;
use super::reads::page;
use crate::chaos::at_most;

const ORDERS_MAX: usize = 1_000;
const REPORTS_MAX: usize = 100;

#[async_trait]
impl Reconciliations for MemoryLedger {
    async fn live_orders(
        &self,
        voucher: VoucherId,
        after: OrderId,
        max: usize,
    ) -> Result<Vec<LedgerOrder>, Fault> {
        const LIVE_ORDERS: &str = "reconciliations.live_orders";
        at_most(LIVE_ORDERS, max, ORDERS_MAX)?;
        self.read(LIVE_ORDERS, |book, _| {
            let last = (voucher, OrderId::new(u64::MAX));
            let orders = book
                .orders_by_voucher
                .range((Excluded((voucher, after)), Included(last)))
                .filter_map(|(_, id)| book.orders.get(id));
            let live = orders.filter(|order| order.status().is_live());
            live.take(max).map(stored).collect()
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
        let change = repair_of(kind, claim)
            .ok_or_else(|| Fault::broken(REPAIR, "a message that stands is delivered"))?;
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
            let id = book.reports.len() as u64 + 1;
            book.reports.push(Report {
                id,
                ..report.clone()
            });
            id
        })
    }

    async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault> {
        const REPORTS: &str = "reconciliations.reports";
        at_most(REPORTS, limit, REPORTS_MAX)?;
        self.read(REPORTS, |book, _| {
            let older = |report: &&Report| before.is_none_or(|before| report.id < before);
            let found = book.reports.iter().rev().filter(older);
            page(found, limit, |report| report.id)
        })
    }
}

impl Book {
    /// An order for comparison. One that is parked counts as queued, with what its message claims.
    fn ledger_order(&self, id: OrderId) -> Option<LedgerOrder> {
        let status = self.status_of(id)?;
        if let Some(order) = self.orders.get(&id) {
            return Some(LedgerOrder {
                status,
                ..stored(order)
            });
        }
        let decision = self.parked.of_order(id).and_then(ParkedRow::decision);
        let claim = decision.and_then(Decision::claim)?.clone();
        Some(LedgerOrder { claim, status })
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
    }
}

fn released_order(change: &GateChange) -> Option<OrderId> {
    match change {
        GateChange::Release { order, .. } => Some(*order),
        _ => None,
    }
}

/// What mends a difference; a message that stands is left to the order writer.
fn repair_of(kind: DifferenceKind, claim: &Claim) -> Option<GateChange> {
    Some(match kind {
        DifferenceKind::NotDelivered => return None,
        DifferenceKind::MessageGone => GateChange::AppendAgain(claim.clone()),
        DifferenceKind::HolderGone => GateChange::RestoreHolder(claim.clone()),
        DifferenceKind::NotReleased => GateChange::Release {
            order: claim.order,
            buyer: claim.buyer,
            quantity: claim.quantity,
        },
    })
}

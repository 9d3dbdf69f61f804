//! The ledger's side of reconciliation.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    DifferenceKind, LastRuns, LedgerOrder, Page, Reconciliations, Report, Told,
};
use seckill_domain::{BuyerId, Claim, OrderId, OrderStatus, Timestamp, VoucherId};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::json_rows::{json_ids, wanted_ids};
use crate::page::all;
use crate::row::{get, get_text, read_status, ticket};
use crate::session::statement;
use crate::store::Store;
use crate::wire;

mod loads;
mod repair;
mod reports;

const ORDERS_MAX: usize = 1_000;
const REPORTS_MAX: usize = 100;

/// Reads an order for comparison.
fn stored(row: &MySqlRow) -> Result<LedgerOrder, Trouble> {
    Ok(LedgerOrder {
        claim: Claim {
            order: OrderId::new(get(row, "id")?),
            voucher: VoucherId::new(get(row, "voucher_id")?),
            buyer: BuyerId::new(get(row, "user_id")?),
            quantity: get(row, "quantity")?,
            key: get_text(row, "idempotency_key")?,
        },
        status: read_status(get(row, "status")?)?,
        ticket: ticket(row)?,
        contested: None,
    })
}

/// An order with the newest message about it that is parked. A parked order counts as queued, and
/// no more as waiting.
fn stored_or_parked(row: &MySqlRow) -> Result<Option<LedgerOrder>, Trouble> {
    let parked: Option<&str> = get(row, "payload")?;
    let status: Option<&str> = get(row, "status")?;
    let order = status.map(|_| stored(row)).transpose()?;
    let Some(parked) = parked else {
        return Ok(order);
    };
    let (parked, queued) = (wire::read_claim(parked)?, OrderStatus::Queued);
    let Some(order) = order else {
        return Ok(parked.map(|claim| LedgerOrder {
            claim,
            status: queued,
            ticket: None,
            contested: None,
        }));
    };
    let status = match order.status {
        OrderStatus::Waiting => queued,
        status => status,
    };
    Ok(Some(LedgerOrder { status, ..order }.contested_by(parked)))
}

#[async_trait]
impl Reconciliations for Store {
    async fn open_orders(
        &self,
        voucher: VoucherId,
        after: OrderId,
        max: usize,
    ) -> Result<Vec<LedgerOrder>, Fault> {
        const PORT: &str = "reconciliations.open_orders";
        /// The next page of one stage; all stages come by rising id from the index.
        macro_rules! next {
            ($status:literal) => {
                concat!(
                    "(SELECT o.id, o.voucher_id, o.user_id, o.quantity, o.status, \
                        o.ticket, o.idempotency_key \
                      FROM orders o FORCE INDEX (orders_by_voucher) \
                      WHERE o.voucher_id = ? AND o.status = '",
                    $status,
                    "' AND o.id > ? ORDER BY o.id LIMIT ?)"
                )
            };
        }
        const SQL: &str = concat!(
            next!("pending_payment"),
            " UNION ALL ",
            next!("paid"),
            " UNION ALL ",
            next!("waiting"),
            " ORDER BY id LIMIT ?"
        );
        at_most(PORT, max, ORDERS_MAX)?;
        let (voucher, after, max) = (voucher.get(), after.get(), max as u64);
        let read = || {
            let one = statement(SQL).bind(voucher).bind(after).bind(max);
            let two = one.bind(voucher).bind(after).bind(max);
            two.bind(voucher).bind(after).bind(max).bind(max)
        };
        let rows = self.read(PORT, read).await?;
        all(PORT, &rows, stored)
    }

    async fn orders(&self, ids: &[OrderId]) -> Result<Vec<LedgerOrder>, Fault> {
        const PORT: &str = "reconciliations.orders";
        const SQL: &str = concat!(
            "SELECT wanted.id, o.voucher_id, o.user_id, o.quantity, o.status, o.ticket, \
               o.idempotency_key, p.payload \
             FROM ",
            wanted_ids!(),
            "LEFT JOIN orders o ON o.id = wanted.id \
             LEFT JOIN parked_messages p ON p.id = (SELECT MAX(m.id) FROM parked_messages m \
               WHERE m.order_id = wanted.id AND m.state = 'parked')"
        );
        at_most(PORT, ids.len(), ORDERS_MAX)?;
        let ids = json_ids(ids.iter().map(|id| id.get()));
        let rows = self.read(PORT, || statement(SQL).bind(&ids)).await?;
        let orders = all(PORT, &rows, stored_or_parked)?;
        Ok(orders.into_iter().flatten().collect())
    }

    async fn being_released(
        &self,
        voucher: VoucherId,
        ids: &[OrderId],
    ) -> Result<Vec<OrderId>, Fault> {
        const PORT: &str = "reconciliations.being_released";
        const SQL: &str = concat!(
            "SELECT DISTINCT wanted.id FROM ",
            wanted_ids!(),
            "JOIN (SELECT CAST(released.subject AS UNSIGNED) AS id \
               FROM gate_updates u, JSON_TABLE(u.payload, '$.changes[*]' COLUMNS ( \
                 subject VARCHAR(20) CHARACTER SET ascii PATH '$.release.order')) released \
               WHERE u.voucher_id = ? AND (? OR LOCATE(?, u.payload) > 0) \
                 AND released.subject IS NOT NULL) gone \
               ON gone.id = wanted.id"
        );
        at_most(PORT, ids.len(), ORDERS_MAX)?;
        // To look for a piece of text is far cheaper than to read all of it as JSON.
        let text = match ids {
            [id] => Some(wire::text_of_order(*id)),
            _ => None,
        };
        let ids = json_ids(ids.iter().map(|id| id.get()));
        let read = || {
            statement(SQL)
                .bind(&ids)
                .bind(voucher.get())
                .bind(text.is_none())
                .bind(&text)
        };
        let rows = self.read(PORT, read).await?;
        all(PORT, &rows, |row| get(row, "id").map(OrderId::new))
    }

    async fn repair(
        &self,
        kind: DifferenceKind,
        claim: &Claim,
        seen: Option<OrderStatus>,
    ) -> Result<bool, Fault> {
        repair::repair(self, kind, claim, seen).await
    }

    async fn told_before(&self, voucher: VoucherId) -> Result<Vec<Told>, Fault> {
        reports::told_before(self, voucher).await
    }

    async fn note_load(&self, voucher: VoucherId) -> Result<bool, Fault> {
        loads::note(self, voucher).await
    }

    async fn reloads(&self, vouchers: &[VoucherId]) -> Result<Vec<(VoucherId, u32)>, Fault> {
        loads::untold(self, vouchers).await
    }

    async fn store(&self, report: &Report) -> Result<u64, Fault> {
        reports::store(self, report).await
    }

    async fn last_runs(&self) -> Result<LastRuns, Fault> {
        reports::last_runs(self).await
    }

    async fn forget(&self, before: Timestamp, max: usize) -> Result<usize, Fault> {
        reports::forget(self, before, max).await
    }

    async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault> {
        const PORT: &str = "reconciliations.reports";
        at_most(PORT, limit, REPORTS_MAX)?;
        reports::list(self, PORT, before, limit).await
    }
}

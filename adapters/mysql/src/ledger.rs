//! Reads of the ledger.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    EntryId, Ledger, LedgerTally, Page, ParkedOrder, SaleSnapshot, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    BuyerId, GateVersion, IdempotencyKey, Order, OrderId, OrderStatus, Voucher, VoucherId,
};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::json_rows::{json_ids, wanted_ids};
use crate::page::{all, highest, one, page};
use crate::row::{self, get, order_columns, select_voucher};
use crate::session::statement;
use crate::store::Store;
use crate::unit_of_work::MySqlUnit;
use crate::wire;

/// Most vouchers and orders of one page, and most stages of one call.
const VOUCHERS_MAX: usize = 1_000;
const ORDERS_MAX: usize = 100;
const STAGES_MAX: usize = 1_000;

macro_rules! page_of_vouchers {
    ($filter:literal) => {
        concat!(
            select_voucher!(),
            "WHERE v.id <= ? AND ",
            $filter,
            " ORDER BY v.id DESC LIMIT ?"
        )
    };
}

fn vouchers_sql(filter: VoucherFilter) -> &'static str {
    match filter {
        VoucherFilter::All => page_of_vouchers!("TRUE"),
        VoucherFilter::Public => page_of_vouchers!("v.status <> 'draft'"),
        VoucherFilter::OnSale => page_of_vouchers!("v.status IN ('published', 'paused')"),
        VoucherFilter::Overdue => page_of_vouchers!(
            "v.status IN ('published', 'paused') AND v.closes_at <= UTC_TIMESTAMP(3)"
        ),
        VoucherFilter::Closing => {
            page_of_vouchers!("v.status = 'closed' AND v.retired_at IS NULL")
        }
    }
}

#[async_trait]
impl Ledger for Store {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let session = self.begin_unit("ledger.begin").await?;
        Ok(Box::new(MySqlUnit::new(session)))
    }

    async fn voucher(&self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        const PORT: &str = "ledger.voucher";
        const SQL: &str = concat!(select_voucher!(), "WHERE v.id = ?");
        let row = self
            .read_row(PORT, || statement(SQL).bind(id.get()))
            .await?;
        one(PORT, row.as_ref(), row::voucher)
    }

    async fn vouchers(
        &self,
        filter: VoucherFilter,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<Voucher>, Fault> {
        const PORT: &str = "ledger.vouchers";
        at_most(PORT, limit, VOUCHERS_MAX)?;
        let highest = highest(before.map(VoucherId::get));
        let read = || {
            statement(vouchers_sql(filter))
                .bind(highest)
                .bind(limit as u64 + 1)
        };
        let rows = self.read(PORT, read).await?;
        page(PORT, &rows, limit, row::voucher, |voucher| voucher.id.get())
    }

    async fn order(&self, id: OrderId) -> Result<Option<Order>, Fault> {
        const PORT: &str = "ledger.order";
        const SQL: &str = concat!("SELECT ", order_columns!(), " FROM orders o WHERE o.id = ?");
        let row = self
            .read_row(PORT, || statement(SQL).bind(id.get()))
            .await?;
        one(PORT, row.as_ref(), row::order)
    }

    async fn parked_order(&self, id: OrderId) -> Result<Option<ParkedOrder>, Fault> {
        const PORT: &str = "ledger.parked_order";
        const SQL: &str = "SELECT payload, entry_ms, entry_no FROM parked_messages \
             WHERE order_id = ? AND state = 'parked' ORDER BY id DESC LIMIT 1";
        let row = self
            .read_row(PORT, || statement(SQL).bind(id.get()))
            .await?;
        Ok(one(PORT, row.as_ref(), parked_order)?.flatten())
    }

    async fn stages(&self, ids: &[OrderId]) -> Result<Vec<(OrderId, OrderStatus)>, Fault> {
        const PORT: &str = "ledger.stages";
        const SQL: &str = concat!(
            "SELECT wanted.id, o.status, EXISTS (SELECT 1 FROM parked_messages p \
               WHERE p.order_id = wanted.id AND p.state = 'parked') AS parked \
             FROM ",
            wanted_ids!(),
            "LEFT JOIN orders o ON o.id = wanted.id"
        );
        at_most(PORT, ids.len(), STAGES_MAX)?;
        let ids = json_ids(ids.iter().map(|id| id.get()));
        let rows = self.read(PORT, || statement(SQL).bind(&ids)).await?;
        let stages = all(PORT, &rows, stage_of)?;
        Ok(stages.into_iter().flatten().collect())
    }

    async fn orders_of(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<Order>, Fault> {
        const PORT: &str = "ledger.orders_of";
        const SQL: &str = concat!(
            "SELECT ",
            order_columns!(),
            " FROM orders o WHERE o.user_id = ? AND o.id <= ? ORDER BY o.id DESC LIMIT ?"
        );
        at_most(PORT, limit, ORDERS_MAX)?;
        let highest = highest(before.map(OrderId::get));
        let read = || {
            statement(SQL)
                .bind(buyer.get())
                .bind(highest)
                .bind(limit as u64 + 1)
        };
        let rows = self.read(PORT, read).await?;
        page(PORT, &rows, limit, row::order, |order| order.id.get())
    }

    async fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Order>, Fault> {
        const PORT: &str = "ledger.orders_on";
        const SQL: &str = concat!(
            "SELECT ",
            order_columns!(),
            " FROM orders o WHERE o.voucher_id = ? AND o.user_id = ? \
               AND (o.status IN ('waiting', 'pending_payment', 'paid') OR o.idempotency_key = ?) \
             ORDER BY o.created_at, o.id"
        );
        let key = key.map(IdempotencyKey::as_str);
        let read = || {
            statement(SQL)
                .bind(voucher.get())
                .bind(buyer.get())
                .bind(key)
        };
        let rows = self.read(PORT, read).await?;
        all(PORT, &rows, row::order)
    }

    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
        crate::snapshot::sale(self, voucher).await
    }

    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault> {
        crate::snapshot::tally(self, voucher, gate_version).await
    }

    async fn waiting_position(&self, order: OrderId) -> Result<Option<u32>, Fault> {
        const PORT: &str = "ledger.waiting_position";
        const SQL: &str = "SELECT (SELECT COUNT(*) FROM orders ahead \
               WHERE ahead.voucher_id = o.voucher_id AND ahead.status = 'waiting' \
                 AND ahead.ticket <= o.ticket) AS place \
             FROM orders o WHERE o.id = ? AND o.status = 'waiting'";
        let read = || statement(SQL).bind(order.get());
        let row = self.read_row(PORT, read).await?;
        let place = one(PORT, row.as_ref(), |row| get::<i64>(row, "place"))?;
        Ok(place.map(|place| u32::try_from(place).unwrap_or(u32::MAX)))
    }

    async fn is_unsettled(&self, voucher: VoucherId) -> Result<bool, Fault> {
        const PORT: &str = "ledger.is_unsettled";
        const SQL: &str = "SELECT \
               EXISTS (SELECT 1 FROM orders \
                  WHERE voucher_id = ? AND status IN ('waiting', 'pending_payment')) \
               OR EXISTS (SELECT 1 FROM parked_messages WHERE voucher_id = ? AND state = 'parked') \
               OR EXISTS (SELECT 1 FROM gate_updates WHERE voucher_id = ?) AS unsettled";
        let id = voucher.get();
        let read = || statement(SQL).bind(id).bind(id).bind(id);
        let row = self.read_row(PORT, read).await?;
        let unsettled = one(PORT, row.as_ref(), |row| get::<i64>(row, "unsettled"))?;
        Ok(unsettled.is_some_and(|unsettled| unsettled != 0))
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.read("ledger.ping", || statement("SELECT 1"))
            .await
            .map(drop)
    }
}

/// What a parked message claims.
fn parked_order(row: &MySqlRow) -> Result<Option<ParkedOrder>, Trouble> {
    let entry = EntryId {
        millis: get(row, "entry_ms")?,
        counter: get(row, "entry_no")?,
    };
    let claim = wire::read_claim(get(row, "payload")?)?;
    Ok(claim.map(|claim| ParkedOrder {
        claim,
        decided_at: entry.written_at(),
    }))
}

/// An order's stage, where the ledger has the order or a parked decision about it.
fn stage_of(row: &MySqlRow) -> Result<Option<(OrderId, OrderStatus)>, Trouble> {
    let id = OrderId::new(get(row, "id")?);
    let status: Option<&str> = get(row, "status")?;
    let status = status.map(row::read_status).transpose()?;
    let parked = get::<i64>(row, "parked")? != 0;
    Ok(match status {
        None | Some(OrderStatus::Waiting) if parked => Some((id, OrderStatus::Queued)),
        status => status.map(|status| (id, status)),
    })
}

//! A look into the ledger: what MySQL has, and its locks.

use std::collections::{BTreeMap, BTreeSet};

use seckill_domain::{BuyerId, OrderId, VoucherId};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{MySql, MySqlPool, Transaction};

use super::answer::status_of;
use super::facts::{HeldFacts, OrderFacts, Untold};
use super::gate::Gate;
use super::records::{MoneyFacts, RowFacts};

/// The database of one deployment.
#[derive(Debug, Clone)]
pub struct Ledger {
    pool: MySqlPool,
    /// The address and the namespace of the gate that it belongs to.
    gate: Option<(String, String)>,
}

/// While this lives no order writer can commit anything. Everything else goes on. Dropped, the
/// writers go on where they were.
#[derive(Debug)]
#[must_use = "the writers go on when this is dropped"]
pub struct HeldWriters {
    lock: Transaction<'static, MySql>,
}

impl HeldWriters {
    /// Lets the writers go on.
    pub async fn release(self) {
        self.lock.rollback().await.expect("a lock is given back");
    }
}

/// While this lives nobody else can change the stock of a voucher. Dropped, the others go on.
#[derive(Debug)]
#[must_use = "the others go on when this is dropped"]
pub struct HeldVoucher {
    lock: Transaction<'static, MySql>,
}

impl HeldVoucher {
    /// A writer that waits for this with a batch half written is made the victim of a deadlock: a
    /// database gives up the transaction that has changed less.
    pub async fn provoke_deadlock(&mut self) {
        sqlx::query("SELECT partition_id FROM partitions FOR UPDATE")
            .fetch_all(&mut *self.lock)
            .await
            .expect("the other one is the victim");
    }

    /// Lets the others go on.
    pub async fn release(self) {
        self.lock.rollback().await.expect("a lock is given back");
    }
}

const ORDERS: &str = "SELECT id, user_id, quantity, CAST(status AS CHAR) AS status, \
     NULLIF(CAST(reason AS CHAR), '') AS reason, NULLIF(ticket, 0) AS ticket, \
     NULLIF(settled_seq, 0) AS settled_seq, CAST(idempotency_key AS CHAR) AS used_key, \
     CAST(payment_id AS CHAR) AS payment, \
     CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) DIV 1000 AS SIGNED) AS due_ms, \
     CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', updated_at) DIV 1000 AS SIGNED) AS moved_ms \
     FROM orders WHERE voucher_id = ?";

#[derive(sqlx::FromRow)]
struct OrderRow {
    id: u64,
    user_id: u64,
    quantity: u32,
    status: String,
    reason: Option<String>,
    ticket: Option<u64>,
    settled_seq: Option<u64>,
    used_key: Option<String>,
    payment: Option<String>,
    due_ms: Option<i64>,
    moved_ms: i64,
}

impl OrderRow {
    fn facts(self, voucher: VoucherId) -> (OrderId, OrderFacts) {
        let row = RowFacts {
            key: self.used_key,
            payment: self.payment,
            due_ms: self.due_ms,
            moved_ms: self.moved_ms,
        };
        let order = OrderFacts {
            voucher,
            buyer: BuyerId::new(self.user_id),
            quantity: self.quantity,
            status: status_of(&self.status),
            reason: self.reason,
            shown: false,
            ticket: self.ticket,
            served_at: self.settled_seq,
            row: Some(row),
        };
        (OrderId::new(self.id), order)
    }
}

impl Ledger {
    /// Looks into a database.
    pub async fn connect(url: &str) -> Self {
        let pool = MySqlPoolOptions::new()
            .max_connections(2)
            .connect(url)
            .await
            .expect("the ledger's database answers");
        Self { pool, gate: None }
    }

    /// Holds the lock on every partition's position, which each batch of a writer moves first.
    pub async fn hold_writers(&self) -> HeldWriters {
        let mut lock = self.pool.begin().await.expect("a transaction");
        let held = sqlx::query("SELECT partition_id FROM partitions FOR UPDATE")
            .fetch_all(&mut *lock)
            .await
            .expect("the positions can be locked");
        assert!(!held.is_empty(), "no partition has been used yet");
        HeldWriters { lock }
    }

    /// Holds the row that every batch with orders of a voucher changes last, in a transaction that
    /// has changed ten thousand rows.
    pub async fn hold_voucher(&self, voucher: VoucherId) -> HeldVoucher {
        sqlx::raw_sql("CREATE TABLE IF NOT EXISTS ballast (i INT) ENGINE = InnoDB")
            .execute(&self.pool)
            .await
            .expect("a table");
        let mut lock = self.pool.begin().await.expect("a transaction");
        sqlx::raw_sql(
            "INSERT INTO ballast WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL \
             SELECT i + 1 FROM n WHERE i < 100) SELECT a.i FROM n AS a, n AS b",
        )
        .execute(&mut *lock)
        .await
        .expect("rows");
        sqlx::query("SELECT voucher_id FROM voucher_stock WHERE voucher_id = ? FOR UPDATE")
            .bind(voucher.get())
            .fetch_one(&mut *lock)
            .await
            .expect("the stock can be locked");
        HeldVoucher { lock }
    }

    /// How many transactions wait for a lock just now.
    pub async fn lock_waits(&self) -> i64 {
        self.number(
            "SELECT COUNT(*) FROM information_schema.INNODB_TRX \
             WHERE trx_state = 'LOCK WAIT' AND ? = 0",
            0,
        )
        .await
    }

    /// Whoever judges by this ledger judges by this gate as well.
    #[must_use]
    pub fn beside(mut self, gate_url: &str, namespace: &str) -> Self {
        self.gate = Some((gate_url.to_owned(), namespace.to_owned()));
        self
    }

    /// The gate that it belongs to, if that was said.
    pub async fn gate(&self) -> Option<Gate> {
        let (url, namespace) = self.gate.as_ref()?;
        Some(Gate::connect(url, namespace).await)
    }

    /// Every order of a voucher.
    pub async fn orders(&self, voucher: VoucherId) -> BTreeMap<OrderId, OrderFacts> {
        let rows: Vec<OrderRow> = sqlx::query_as(ORDERS)
            .bind(voucher.get())
            .fetch_all(&self.pool)
            .await
            .expect("orders can be read");
        rows.into_iter().map(|row| row.facts(voucher)).collect()
    }

    /// Money that came and money that goes back, of all vouchers.
    pub async fn money(&self) -> MoneyFacts {
        // Refunds last: whatever is written with a payment is seen.
        let payments =
            "SELECT CAST(payment_id AS CHAR), order_id, CAST(outcome AS CHAR) FROM payments";
        let refunds =
            "SELECT CAST(payment_id AS CHAR), order_id, CAST(reason AS CHAR) FROM refunds";
        MoneyFacts {
            payments: self.movements(payments).await,
            refunds: self.movements(refunds).await,
        }
    }

    async fn movements(&self, query: &'static str) -> BTreeMap<String, (OrderId, String)> {
        let rows: Vec<(String, u64, String)> = sqlx::query_as(query)
            .fetch_all(&self.pool)
            .await
            .expect("money can be read");
        rows.into_iter()
            .map(|(payment, order, what)| (payment, (OrderId::new(order), what)))
            .collect()
    }

    /// What waits in the outboxes for those who are to be told.
    pub async fn untold(&self, voucher: VoucherId) -> Untold {
        let count = async |query| self.number(query, voucher.get()).await;
        Untold {
            updates: count("SELECT COUNT(*) FROM gate_updates WHERE voucher_id = ?").await,
            events: count(
                "SELECT COUNT(*) FROM event_outbox e LEFT JOIN event_batches b \
                   ON e.id BETWEEN b.first_id AND b.last_id AND b.written_by = e.written_by \
                 WHERE (e.published = 0 OR b.first_id IS NOT NULL) AND e.voucher_id = ?",
            )
            .await,
            refunds: count(
                "SELECT COUNT(*) FROM refunds r JOIN orders o ON o.id = r.order_id \
                 WHERE r.sent = 0 AND o.voucher_id = ?",
            )
            .await,
        }
    }

    async fn parked_orders(&self, voucher: VoucherId) -> BTreeSet<OrderId> {
        let orders: Vec<u64> = sqlx::query_scalar(
            "SELECT order_id FROM parked_messages \
             WHERE state = 'parked' AND order_id IS NOT NULL AND voucher_id = ?",
        )
        .bind(voucher.get())
        .fetch_all(&self.pool)
        .await
        .expect("parked messages can be read");
        orders.into_iter().map(OrderId::new).collect()
    }

    /// The ledger's own counters of a voucher.
    pub async fn held(&self, voucher: VoucherId) -> HeldFacts {
        let (total, stock): (i64, i64) = sqlx::query_as(
            "SELECT CAST(total_units AS SIGNED), CAST(stock_units AS SIGNED) FROM voucher_stock \
             WHERE voucher_id = ?",
        )
        .bind(voucher.get())
        .fetch_one(&self.pool)
        .await
        .expect("the stock can be read");
        let rows: Vec<(u64, i64)> = sqlx::query_as(
            "SELECT user_id, CAST(units AS SIGNED) FROM holdings WHERE voucher_id = ?",
        )
        .bind(voucher.get())
        .fetch_all(&self.pool)
        .await
        .expect("holdings can be read");
        let parked = self
            .number(
                "SELECT CAST(COALESCE(SUM(units), 0) AS SIGNED) FROM parked_messages \
                 WHERE state = 'parked' AND voucher_id = ?",
                voucher.get(),
            )
            .await;
        let retired = "SELECT COUNT(*) FROM vouchers WHERE retired_at IS NOT NULL AND id = ?";
        HeldFacts {
            total,
            stock,
            parked,
            parked_orders: self.parked_orders(voucher).await,
            untold: self.untold(voucher).await,
            retired: self.number(retired, voucher.get()).await > 0,
            units: rows
                .into_iter()
                .map(|(user, units)| (BuyerId::new(user), units))
                .collect(),
        }
    }

    /// How many messages are parked.
    pub async fn parked(&self) -> i64 {
        self.number(
            "SELECT COUNT(*) FROM parked_messages WHERE state = 'parked' AND id >= ?",
            0,
        )
        .await
    }

    /// How many fences were drawn, for all partitions.
    pub async fn fences(&self) -> i64 {
        let drawn = "SELECT CAST(SUM(fence) AS SIGNED) FROM partitions WHERE partition_id >= ?";
        self.number(drawn, 0).await
    }

    /// How many updates the gate has not followed.
    pub async fn waiting_updates(&self) -> i64 {
        self.number("SELECT COUNT(*) FROM gate_updates WHERE version >= ?", 0)
            .await
    }

    /// Changes rows by hand. Returns how many.
    pub async fn change(&self, statement: &'static str, about: u64) -> u64 {
        let changed = sqlx::query(statement).bind(about).execute(&self.pool).await;
        let changed = changed.unwrap_or_else(|error| panic!("{statement}: {error}"));
        changed.rows_affected()
    }

    async fn number(&self, query: &'static str, argument: u64) -> i64 {
        sqlx::query_scalar(query)
            .bind(argument)
            .fetch_one(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }
}

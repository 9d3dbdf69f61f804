//! A look into the ledger: what MySQL has, and its locks.

use std::collections::BTreeMap;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{MySql, MySqlPool, Transaction};

use super::answer::status_of;
use super::facts::{HeldFacts, OrderFacts};

/// The database of one deployment.
#[derive(Debug, Clone)]
pub struct Ledger {
    pool: MySqlPool,
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

impl Ledger {
    /// Looks into a database.
    pub async fn connect(url: &str) -> Self {
        let pool = MySqlPoolOptions::new()
            .max_connections(2)
            .connect(url)
            .await
            .expect("the ledger's database answers");
        Self { pool }
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

    /// Every order of a voucher.
    pub async fn orders(&self, voucher: VoucherId) -> BTreeMap<OrderId, OrderFacts> {
        type Row = (
            u64,
            u64,
            u32,
            String,
            Option<String>,
            Option<u64>,
            Option<u64>,
        );
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT id, user_id, quantity, CAST(status AS CHAR), \
             NULLIF(CAST(reason AS CHAR), ''), NULLIF(ticket, 0), NULLIF(settled_seq, 0) \
             FROM orders WHERE voucher_id = ?",
        )
        .bind(voucher.get())
        .fetch_all(&self.pool)
        .await
        .expect("orders can be read");
        let facts = |(id, user, quantity, status, reason, ticket, served_at): Row| {
            let order = OrderFacts {
                voucher,
                buyer: BuyerId::new(user),
                quantity,
                status: status_of(&status),
                reason,
                shown: false,
                ticket,
                served_at,
            };
            (OrderId::new(id), order)
        };
        rows.into_iter().map(facts).collect()
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
        HeldFacts {
            total,
            stock,
            parked,
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

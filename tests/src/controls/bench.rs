//! The stores of one run.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use seckill_application::ports::{Clock, HotPath, LedgerPorts};
use seckill_domain::invariants::Tally;
use seckill_domain::{Partitions, Voucher, VoucherId};
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger};
use seckill_mysql::{LedgerConfig, MySqlLedger};
use seckill_redis::{OrderIdScheme, RedisConfig, RedisHotPath};
use sqlx::MySqlPool;
use sqlx::mysql::MySqlPoolOptions;

use super::machine_clock::MachineClock;
use super::{Branch, Switch};
use crate::harness::{Gate, Ledger};
use crate::stack::{self, FreshDatabase};

/// One partition, so that everything in a scenario passes through one stream.
pub const PARTITIONS: Partitions = Partitions::new(NonZeroU16::MIN);

/// The ports of one process.
#[derive(Clone)]
pub struct Stores {
    /// Over the hot store.
    pub hot: HotPath,
    /// Over the database.
    pub ledger: LedgerPorts,
    /// The process's clock.
    pub clock: Arc<dyn Clock>,
}

/// A namespace in Redis and a database in MySQL, with guards switched off, and ways around the
/// ports into both.
pub struct Bench {
    switches: Vec<Switch>,
    redis_url: String,
    namespace: String,
    behind_gate: MultiplexedConnection,
    behind_ledger: MySqlPool,
    // Last, so that it goes when nobody uses it any more.
    database: FreshDatabase,
}

impl Bench {
    /// Empty stores on the shared servers, with every guard on. `None` if only memory was asked for.
    pub async fn intact() -> Option<Self> {
        Self::set_up(Vec::new()).await
    }

    /// Empty stores on the shared servers. `None` if only memory was asked for.
    pub(super) async fn set_up(off: Vec<Switch>) -> Option<Self> {
        let stack = stack::shared().await?;
        let database = stack.fresh_database().await;
        let redis = redis::Client::open(stack.redis_url()).expect("a Redis URL");
        let behind_gate = redis.get_multiplexed_async_connection().await;
        let pool = MySqlPoolOptions::new().max_connections(1);
        let behind_ledger = pool.connect(database.url()).await;
        let bench = Self {
            switches: off,
            redis_url: stack.redis_url().to_owned(),
            namespace: stack.fresh_namespace(),
            behind_gate: behind_gate.expect("Redis answers"),
            behind_ledger: behind_ledger.expect("MySQL answers"),
            database,
        };
        bench.migrate().await;
        Some(bench)
    }

    async fn migrate(&self) {
        let ledger = self.ledger(&[]).await;
        ledger.migrate().await.expect("an empty database");
        let admissions = ledger.ports().admissions;
        let settled = admissions.settle_partitions(PARTITIONS.count()).await;
        assert_eq!(settled.expect("MySQL answers"), PARTITIONS.count());
        for switch in &self.switches {
            if let Switch::Schema(change) = switch {
                let changed = sqlx::raw_sql(*change).execute(&self.behind_ledger).await;
                changed.unwrap_or_else(|error| panic!("{change}: {error}"));
            }
        }
        ledger.close().await;
    }

    /// The use cases of one more process over these stores.
    pub async fn branch(&self) -> Branch {
        Branch::over(self.stores().await)
    }

    /// The ports of one more process.
    pub async fn stores(&self) -> Stores {
        self.stores_with(&[]).await
    }

    /// The ports of one more process, in which more is switched off.
    pub async fn stores_with(&self, off: &[&[Switch]]) -> Stores {
        let off: Vec<Switch> = off.iter().copied().flatten().cloned().collect();
        let clock = Arc::new(MachineClock::new());
        Stores {
            hot: self.hot(&off, clock.clone()).await,
            ledger: self.ledger(&off).await.ports(),
            clock,
        }
    }

    async fn hot(&self, more: &[Switch], clock: Arc<dyn Clock>) -> HotPath {
        let edits = self.switches.iter().chain(more);
        let config = RedisConfig {
            namespace: self.namespace.clone(),
            order_ids: OrderIdScheme::DailyCounter,
            script_edits: edits.filter_map(Switch::as_script).collect(),
            // The machine may be busy with other tests.
            response_timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(20),
            ..RedisConfig::new(&self.redis_url, PARTITIONS)
        };
        let connected = RedisHotPath::connect(&config, clock).await;
        let hot = connected.unwrap_or_else(|fault| panic!("{}", fault.chain()));
        hot.ports()
    }

    async fn ledger(&self, more: &[Switch]) -> MySqlLedger {
        let edits = self.switches.iter().chain(more);
        let config = LedgerConfig {
            max_connections: 4,
            writer_connections: 2,
            acquire_timeout: Duration::from_secs(20),
            statement_timeout: Duration::from_secs(20),
            statement_edits: edits.filter_map(Switch::as_statement).collect(),
            ..LedgerConfig::new(self.database.url())
        };
        let connected = MySqlLedger::connect(config).await;
        connected.unwrap_or_else(|fault| panic!("{}", fault.chain()))
    }

    /// The name of one of a voucher's keys in Redis.
    fn key(&self, voucher: VoucherId, piece: &str) -> String {
        let partition = PARTITIONS.of(voucher);
        format!("{{{}:p{partition}}}:v{voucher}:{piece}", self.namespace)
    }

    /// A look behind the gate.
    pub async fn gate(&self) -> Gate {
        Gate::connect(&self.redis_url, &self.namespace).await
    }

    /// A look into the ledger.
    pub async fn rows(&self) -> Ledger {
        Ledger::connect(self.database.url()).await
    }

    /// Deletes one of a voucher's keys, which must be there: as eviction, a hand on `redis-cli`, or
    /// for the mark of a loader its expiry does.
    pub async fn delete(&self, voucher: &Voucher, piece: &str) {
        let mut command = redis::cmd("DEL");
        command.arg(self.key(voucher.id, piece));
        assert_eq!(self.around_gate(&command).await, 1, "{piece} was there");
    }

    /// Makes the gate believe that more units are free.
    pub async fn plant_units(&self, voucher: &Voucher, units: u32) {
        let mut command = redis::cmd("HINCRBY");
        let key = self.key(voucher.id, "sale");
        command.arg(key).arg("free").arg(units);
        let free = self.around_gate(&command).await;
        assert!(free >= i64::from(units), "the sale was at the gate");
    }

    async fn around_gate(&self, command: &redis::Cmd) -> i64 {
        let mut connection = self.behind_gate.clone();
        let answer = command.query_async(&mut connection).await;
        answer.expect("Redis answers a number")
    }

    /// A number that the database has about something. The statement selects it as a signed one.
    pub async fn number(&self, sql: &'static str, about: u64) -> i64 {
        let read = sqlx::query_scalar(sql)
            .bind(about)
            .fetch_one(&self.behind_ledger);
        read.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Numbers that the database has about something, in order.
    pub async fn numbers(&self, sql: &'static str, about: u64) -> Vec<i64> {
        let read = sqlx::query_scalar(sql)
            .bind(about)
            .fetch_all(&self.behind_ledger);
        read.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Where the units of a voucher are by the bare rows, once nothing is in flight: for a ledger so
    /// wrong that the adapter refuses to read it. `free` is what the gate has.
    pub async fn tally_by_rows(&self, voucher: &Voucher, free: u32) -> Tally {
        const TOTAL: &str = "SELECT CAST(total_units AS SIGNED) FROM voucher_stock \
             WHERE voucher_id = ?";
        const AWAITING: &str = "SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM orders \
             WHERE voucher_id = ? AND status = 'pending_payment'";
        const PAID: &str = "SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM orders \
             WHERE voucher_id = ? AND status = 'paid'";
        let id = voucher.id.get();
        Tally {
            total: self.number(TOTAL, id).await,
            free: i64::from(free),
            awaiting_payment: self.number(AWAITING, id).await,
            paid: self.number(PAID, id).await,
            ..Tally::default()
        }
    }

    /// Buyers in the order in which they were given units of a voucher: by the numbers of the
    /// decisions.
    pub async fn served(&self, voucher: &Voucher) -> Vec<i64> {
        const SQL: &str = "SELECT CAST(user_id AS SIGNED) FROM orders \
             WHERE voucher_id = ? AND expires_at IS NOT NULL ORDER BY settled_seq";
        self.numbers(SQL, voucher.id.get()).await
    }
}

/// Empty stores in memory.
pub fn memory() -> Stores {
    stack::memory();
    let clock = Arc::new(MachineClock::new());
    let hot = MemoryHotPath::new(HotPathOptions::new(PARTITIONS), clock.clone());
    let ledger = MemoryLedger::new(clock.clone(), PARTITIONS);
    Stores {
        hot: hot.ports(),
        ledger: ledger.ports(),
        clock,
    }
}

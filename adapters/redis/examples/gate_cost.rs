//! What the gate costs Redis: CPU per order at several batch sizes, and bytes per order in flight
//! and per waiting buyer.
//!
//! `gate_cost redis://127.0.0.1:6390` fills an empty Redis under the namespace `gate_cost`.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a measurement reads the real clock and ends at the first surprise"
)]

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redis::FromRedisValue;
use seckill_application::ports::{Admitted, Clock, HotPath, LoadToken, OpenSale};
use seckill_domain::{
    Attempt, BuyerId, Epoch, GateVersion, OrderId, Partitions, SaleStatus, SaleTerms, Sequence,
    Timestamp, VoucherId,
};
use seckill_redis::{RedisConfig, RedisHotPath};

const ORDERS: u64 = 64_000;
/// As long as ids are: 19 digits for an order, 10 for a buyer.
const FIRST_ORDER: u64 = 609_848_294_759_202_817;
const FIRST_BUYER: u64 = 1_200_000_000;

struct RealClock(Instant);

#[async_trait]
impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

struct Bench {
    hot: HotPath,
    raw: redis::aio::MultiplexedConnection,
}

impl Bench {
    async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::Cmd::new();
        command.arg(words);
        let asked = command.query_async(&mut self.raw.clone()).await;
        asked.expect("redis answers")
    }

    /// CPU seconds of Redis's main thread and its kernel side so far.
    async fn cpu(&self) -> f64 {
        let info: String = self.ask(&["INFO", "cpu"]).await;
        let seconds = |name: &str| -> f64 {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|it| it.trim().parse().ok())
                .expect("a number")
        };
        seconds("used_cpu_user:") + seconds("used_cpu_sys:")
    }

    async fn memory(&self) -> i64 {
        let info: String = self.ask(&["INFO", "memory"]).await;
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("used_memory_dataset:"));
        line.and_then(|it| it.trim().parse().ok())
            .expect("a number")
    }

    async fn begin(&self, units: u32, capacity: u32) {
        self.ask::<String>(&["FLUSHALL"]).await;
        let (epoch, start, voucher) = (Epoch::new(1), Sequence::new(0), VoucherId::new(1));
        let partition = Partitions::new(NonZeroU16::MIN).of(voucher);
        let loader = &self.hot.loader;
        loader
            .begin_epoch(partition, epoch, start)
            .await
            .expect("an epoch");
        let token = LoadToken("bench".to_owned());
        let ttl = Duration::from_secs(10);
        loader
            .begin_load(voucher, &token, ttl)
            .await
            .expect("a load");
        let sale = OpenSale {
            terms: SaleTerms {
                status: SaleStatus::Published,
                opens_at: Timestamp::from_millis(0),
                closes_at: Timestamp::from_millis(i64::MAX),
                per_buyer_limit: 1,
                waitlist_capacity: capacity,
                total_units: units,
            },
            free: units,
            version: GateVersion::new(1),
            applied: start,
        };
        loader.open(voucher, &token, &sale, 0).await.expect("open");
    }

    /// Buys `ORDERS` times, `batch` at a time, `parallel` calls at once.
    async fn buy(&self, batch: u64, parallel: u64) {
        let work = (0..parallel).map(|lane| async move {
            for first in
                (lane * batch..ORDERS).step_by(usize::try_from(parallel * batch).expect("small"))
            {
                let attempts: Vec<Attempt> = (first..first + batch)
                    .map(|n| Attempt {
                        order: OrderId::new(FIRST_ORDER + n * 4_099),
                        buyer: BuyerId::new(FIRST_BUYER + n),
                        quantity: 1,
                        key: None,
                    })
                    .collect();
                let reply = self.hot.gate.admit(VoucherId::new(1), &attempts).await;
                let decided = matches!(reply, Ok(Admitted::Decided { .. }));
                assert!(decided, "{reply:?}");
            }
        });
        futures::future::join_all(work).await;
    }

    async fn usage(&self, what: &str) {
        for key in [
            "stream:1",
            "decided",
            "v1:holders",
            "v1:waiters",
            "v1:seats",
        ] {
            let key = format!("{{gate_cost:p0}}:{key}");
            let bytes: Option<i64> = self.ask(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).await;
            if let Some(bytes) = bytes {
                println!(
                    "  {what} {key}: {} bytes each",
                    bytes / ORDERS.cast_signed()
                );
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().nth(1).expect("the URL of an empty Redis");
    let config = RedisConfig {
        namespace: "gate_cost".to_owned(),
        backlog_limit: u64::MAX,
        ..RedisConfig::new(&url, Partitions::new(NonZeroU16::MIN))
    };
    let redis = RedisHotPath::connect(&config, Arc::new(RealClock(Instant::now()))).await;
    let hot = redis
        .unwrap_or_else(|fault| panic!("{}", fault.chain()))
        .ports();
    let client = redis::Client::open(url).expect("a URL");
    let raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let bench = Bench { hot, raw };
    let units = u32::try_from(ORDERS).expect("small");
    let per_order = 1e6 / f64::from(units);
    for _ in 0..3 {
        for (batch, parallel) in [(1, 1), (1, 64), (8, 8), (32, 2), (64, 2)] {
            bench.begin(units, 0).await;
            let (cpu, began) = (bench.cpu().await, Instant::now());
            bench.buy(batch, parallel).await;
            let (took, cpu) = (began.elapsed().as_secs_f64(), bench.cpu().await - cpu);
            println!(
                "batch {batch:2} x {parallel:2}: {:6.2} redis cpu us/order, {:7.0} orders/s",
                cpu * per_order,
                f64::from(units) / took
            );
        }
    }
    for (units, capacity, what) in [(units, 0, "order"), (0, units, "waiter")] {
        for batch in [1, 32] {
            bench.begin(units, capacity).await;
            let (before, cpu) = (bench.memory().await, bench.cpu().await);
            bench.buy(batch, 1).await;
            let cpu = (bench.cpu().await - cpu) * per_order;
            let bytes = (bench.memory().await - before) / ORDERS.cast_signed();
            println!("{bytes} bytes and {cpu:.2} redis cpu us per {what} in all, batch {batch}");
            bench.usage(what).await;
        }
    }
}

//! The raw reference: `redis-benchmark` with the product's own script, without an application.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use seckill_application::ports::{
    Clock, GateLoader, LoadBegun, LoadChunk, LoadToken, OpenSale, Opened,
};
use seckill_domain::{
    Attempt, BuyerId, Epoch, GateVersion, OrderId, PartitionId, Partitions, SaleStatus, SaleTerms,
    Sequence, Timestamp, VoucherId,
};
use seckill_redis::{OrderIdScheme, RedisConfig, RedisHotPath};

use crate::machine::{children_cpu, process_cpu};
use crate::servers::{Programs, Servers};

/// The admission script as the product sends it: the shared steps, then the script itself.
const PARTS: [&str; 7] = [
    include_str!("../../../lua/lib/partition.lua"),
    include_str!("../../../lua/lib/sale.lua"),
    include_str!("../../../lua/lib/holders.lua"),
    include_str!("../../../lua/lib/seats.lua"),
    include_str!("../../../lua/lib/waitlist.lua"),
    include_str!("../../../lua/lib/repeats.lua"),
    include_str!("../../../lua/gate_admit.lua"),
];
const NAMESPACE: &str = "raw";
const VOUCHER: u64 = 1;
const UNITS: u32 = 1_000_000_000;
/// Of each, `redis-benchmark` draws one of this many.
const NUMBERS: &str = "2000000000";

/// How the script is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Connections, each with one call under way.
    pub connections: u32,
    /// Attempts of one call.
    pub attempts: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// Orders per second.
    pub orders_per_s: f64,
    /// Microseconds of Redis's CPU per order.
    pub redis_us: f64,
    /// The share of a core that `redis-benchmark` took.
    pub generator_cores: f64,
}

/// Runs one shape for about this long, on a sale of its own, and checks that every unit is where it
/// should be.
pub async fn measure(
    programs: &Programs,
    servers: &Servers,
    shape: Shape,
    lasts: Duration,
) -> anyhow::Result<Raw> {
    let mut redis = servers.connect_redis().await?;
    let few = shape.connections * 20;
    let probe = on_a_sale(programs, servers, &mut redis, shape, few).await?;
    let calls = probe.orders_per_s / f64::from(shape.attempts) * lasts.as_secs_f64();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "calls that fit into seconds"
    )]
    let calls = (calls as u32).max(few);
    on_a_sale(programs, servers, &mut redis, shape, calls).await
}

/// So many calls on a sale of their own, checked. Two runs of `redis-benchmark` may well draw the
/// same numbers.
async fn on_a_sale(
    programs: &Programs,
    servers: &Servers,
    redis: &mut MultiplexedConnection,
    shape: Shape,
    calls: u32,
) -> anyhow::Result<Raw> {
    let hash = open_sale(servers, redis).await?;
    let call = call_words(&hash, shape.attempts);
    let raw = run(programs, servers, shape, &call, calls).await?;
    check(redis, u64::from(calls) * u64::from(shape.attempts)).await?;
    Ok(raw)
}

struct WallClock(Instant);

#[async_trait]
impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

/// Opens a sale by the product's own loading protocol, admits one buyer by its own adapter, and
/// returns the hash of its script: that Redis knows it afterwards shows that the text is the same.
async fn open_sale(servers: &Servers, redis: &mut MultiplexedConnection) -> anyhow::Result<String> {
    let mut unlink = redis::cmd("UNLINK");
    unlink
        .arg(keys().as_slice())
        .query_async::<()>(redis)
        .await?;
    let partitions = Partitions::new(NonZeroU16::MIN);
    let mut config = RedisConfig::new(servers.redis_url(), partitions);
    NAMESPACE.clone_into(&mut config.namespace);
    config.order_ids = OrderIdScheme::DailyCounter;
    let hot = RedisHotPath::connect(&config, Arc::new(WallClock(Instant::now())))
        .await?
        .ports();

    let (partition, voucher) = (PartitionId::new(0), VoucherId::new(VOUCHER));
    let token = LoadToken("bench".to_owned());
    let loader: &dyn GateLoader = &*hot.loader;
    loader
        .begin_epoch(partition, Epoch::new(1), Sequence::new(0))
        .await?;
    let begun = loader
        .begin_load(voucher, &token, Duration::from_secs(10))
        .await?;
    ensure!(
        matches!(begun, LoadBegun::Begun { .. }),
        "the sale was not begun: {begun:?}"
    );
    loader
        .load(voucher, &token, &LoadChunk::default(), 0)
        .await?;
    let sale = OpenSale {
        terms: SaleTerms {
            status: SaleStatus::Published,
            opens_at: Timestamp::from_millis(0),
            closes_at: Timestamp::from_millis(4_000_000_000_000),
            per_buyer_limit: 1,
            waitlist_capacity: 0,
            total_units: UNITS,
        },
        free: UNITS,
        version: GateVersion::new(1),
        applied: Sequence::new(0),
    };
    let opened = loader.open(voucher, &token, &sale, 1).await?;
    ensure!(
        opened == Opened::Opened,
        "the sale was not opened: {opened:?}"
    );
    let attempt = Attempt {
        order: OrderId::new(5_000_000_000),
        buyer: BuyerId::new(5_000_000_000),
        quantity: 1,
        key: None,
    };
    hot.gate.admit(voucher, &[attempt]).await?;

    let hash = redis::Script::new(&PARTS.join("\n")).get_hash().to_owned();
    let mut exists = redis::cmd("SCRIPT");
    let known: Vec<bool> = exists.arg("EXISTS").arg(&hash).query_async(redis).await?;
    ensure!(
        known == [true],
        "the product sends another script than is measured here"
    );
    Ok(hash)
}

fn keys() -> Vec<String> {
    let names = [
        "meta",
        "decided",
        "stream:1",
        "v1:sale",
        "v1:holders",
        "v1:waiters",
        "v1:seats",
        "v1:uses",
        "v1:loading",
    ];
    names
        .map(|name| format!("{{{NAMESPACE}:p0}}:{name}"))
        .to_vec()
}

/// The words of one call: an order and a buyer drawn by `redis-benchmark` for each attempt.
fn call_words(hash: &str, attempts: u32) -> Vec<String> {
    let mut words = vec!["EVALSHA".to_owned(), hash.to_owned()];
    let keys = keys();
    words.push(keys.len().to_string());
    words.extend(keys);
    words.extend(["1", "1", "1000000000"].map(ToOwned::to_owned));
    // With a digit in front, because it fills numbers up with zeros, and a gate that finds such a
    // number among its holders takes them for damaged.
    for _ in 0..attempts {
        words.extend(["1__rand_int__", "1__rand_int__", "1", "-"].map(ToOwned::to_owned));
    }
    words
}

async fn run(
    programs: &Programs,
    servers: &Servers,
    shape: Shape,
    call: &[String],
    calls: u32,
) -> anyhow::Result<Raw> {
    let redis = servers.redis.pid();
    let (cpu, own, begun) = (process_cpu(redis), children_cpu(), Instant::now());
    let output = tokio::process::Command::new(&programs.redis_benchmark)
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &servers.redis_address.port().to_string(),
        ])
        .args([
            "-c",
            &shape.connections.to_string(),
            "-n",
            &calls.to_string(),
        ])
        .args(["-r", NUMBERS, "--csv"])
        .args(call)
        .kill_on_drop(true)
        .output()
        .await?;
    let (took, own) = (begun.elapsed(), children_cpu().saturating_sub(own));
    let cpu = process_cpu(redis).saturating_sub(cpu);
    // Refusals are counted like answers, and told there alone.
    let refused = String::from_utf8_lossy(&output.stderr);
    if let Some(first) = refused.lines().find(|line| line.contains("Error")) {
        bail!("redis-benchmark was refused: {first}");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let calls_per_s = calls_per_s(&said).with_context(|| format!("redis-benchmark said {said}"))?;
    let orders = f64::from(calls) * f64::from(shape.attempts);
    Ok(Raw {
        orders_per_s: calls_per_s * f64::from(shape.attempts),
        redis_us: cpu.as_secs_f64() * 1e6 / orders,
        generator_cores: own.as_secs_f64() / took.as_secs_f64(),
    })
}

/// The second of the eight values of the last line; the first, the call, may contain anything.
fn calls_per_s(said: &str) -> Option<f64> {
    let line = said.lines().rfind(|line| line.starts_with('"'))?;
    let value = line.rsplit(',').nth(6)?;
    value.trim_matches('"').parse().ok()
}

/// Every unit is free or held, and every decision is in the stream and the index.
async fn check(redis: &mut MultiplexedConnection, orders: u64) -> anyhow::Result<()> {
    let keys = keys();
    let (free, holders, decided, entries, seq): (u64, u64, u64, u64, u64) = redis::pipe()
        .cmd("HGET")
        .arg(&keys[3])
        .arg("free")
        .cmd("HLEN")
        .arg(&keys[4])
        .cmd("HLEN")
        .arg(&keys[1])
        .cmd("XLEN")
        .arg(&keys[2])
        .cmd("HGET")
        .arg(&keys[0])
        .arg("seq")
        .query_async(redis)
        .await?;
    let mut unlink = redis::cmd("UNLINK");
    unlink.arg(keys.as_slice()).query_async::<()>(redis).await?;
    let taken = u64::from(UNITS) - free;
    if taken != holders || taken != decided || taken != seq || entries > taken {
        bail!("not conserved: {taken} taken, {holders} hold, {decided} decided, {seq} numbered");
    }
    // Numbers that are drawn twice are not granted twice; there are few.
    ensure!(
        taken <= orders + 1 && taken as f64 > orders as f64 * 0.99,
        "{taken} of {orders} orders were granted"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise every row that compares with it is void.
    #[test]
    fn the_script_is_joined_as_the_product_joins_it() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect(path);
        let table = read("adapters/redis/src/scripts.rs");
        let (_, row) = table.split_once("\"gate_admit\", [").expect("its row");
        let (shared, _) = row.split_once(']').expect("its end");
        let shared = shared.split(", ").map(|name| format!("lua/lib/{name}.lua"));
        let files = shared.chain(["lua/gate_admit.lua".to_owned()]);
        let texts: Vec<String> = files.map(|file| read(&file)).collect();
        assert_eq!(PARTS.join("\n"), texts.join("\n"));
    }

    #[test]
    fn the_rate_is_found_behind_any_call() {
        let said = "\"test\",\"rps\",\"avg_latency_ms\"\n\
            \"EVALSHA a, \"\"b\"\" -\",\"4545.45\",\"1.0\",\"0.1\",\"0.9\",\"2.0\",\"3.0\",\"4.0\"\n";
        assert_eq!(calls_per_s(said), Some(4_545.45));
        assert_eq!(calls_per_s("nothing"), None);
    }
}

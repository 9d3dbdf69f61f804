//! Order ids: never twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::{Clock, OrderIds};
use seckill_domain::Timestamp;
use seckill_redis::{OrderIdScheme, RedisConfig, RedisHotPath};

use crate::stage::{Server, config, pause};

/// A clock that a test moves; sleeping moves it, too.
#[derive(Default)]
struct TestClock(AtomicU64);

impl TestClock {
    fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).expect("short") + 1;
        pause(millis).await;
        self.advance(millis);
    }
}

async fn process(config: &RedisConfig) -> (Arc<dyn OrderIds>, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let redis = RedisHotPath::connect(config, clock.clone()).await;
    let redis = redis.unwrap_or_else(|fault| panic!("{}", fault.chain()));
    (redis.ports().order_ids, clock)
}

async fn take(ids: &Arc<dyn OrderIds>, count: usize, seen: &mut HashSet<u64>) {
    for _ in 0..count {
        let id = ids
            .next()
            .await
            .unwrap_or_else(|fault| panic!("{}", fault.chain()));
        assert!(seen.insert(id.get()), "{id} twice");
    }
}

async fn flush(server: &Server) {
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut connection = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    redis::cmd("FLUSHALL")
        .query_async::<()>(&mut connection)
        .await
        .expect("flushed");
}

/// The number of the worker in a Snowflake id.
fn number(id: u64) -> u64 {
    (id >> 12) & 1_023
}

#[tokio::test]
async fn two_processes_have_different_numbers() {
    let server = Server::start(&[]).await;
    let (a, _) = process(&config(&server)).await;
    let (b, _) = process(&config(&server)).await;
    let mut seen = HashSet::new();
    take(&a, 500, &mut seen).await;
    take(&b, 500, &mut seen).await;
    let numbers: HashSet<u64> = seen.into_iter().map(number).collect();
    assert_eq!(numbers.len(), 2);
}

/// Stands for: a process that is paused beyond its lease, while another takes its number.
#[tokio::test]
async fn a_paused_process_has_nothing_left_to_issue_under_its_old_number() {
    let server = Server::start(&[]).await;
    let config = config(&server);
    let (a, clock) = process(&config).await;
    let mut seen = HashSet::new();
    take(&a, 10, &mut seen).await;
    let old = number(*seen.iter().next().expect("an id"));
    // Somebody takes A's number.
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let time: (u64, u64) = redis::cmd("TIME").query_async(&mut raw).await.unwrap();
    redis::cmd("HSET")
        .arg("seckill:order_ids:workers")
        .arg(old)
        .arg(format!("somebody {}", (time.0 + 10) * 1_000))
        .query_async::<()>(&mut raw)
        .await
        .unwrap();
    clock.advance(1_000);
    let id = a.next().await.unwrap().get();
    assert_ne!(number(id), old, "the number is somebody else's");
    assert!(seen.insert(id));
}

#[tokio::test]
async fn the_next_holder_of_a_number_starts_behind_the_last_one() {
    let server = Server::start(&[]).await;
    let config = config(&server);
    let mut seen = HashSet::new();
    let (a, _) = process(&config).await;
    take(&a, 5_000, &mut seen).await;
    drop(a);
    pause(1_000).await;
    for _ in 0..20 {
        let (b, _) = process(&config).await;
        take(&b, 200, &mut seen).await;
    }
}

#[tokio::test]
async fn losing_the_registry_repeats_no_id() {
    let server = Server::start(&[]).await;
    let mut seen = HashSet::new();
    let mut processes = Vec::new();
    for _ in 0..5 {
        flush(&server).await;
        processes.push(process(&config(&server)).await);
        for (ids, clock) in &processes {
            take(ids, 300, &mut seen).await;
            clock.advance(100);
            take(ids, 300, &mut seen).await;
        }
    }
}

const WORKER: &str = include_str!("../../../../lua/ids_worker.lua");

/// What somebody would be told who asks Redis for a number himself.
async fn ask_for(server: &Server, token: &str, number: u64, held_ms: i64) -> Vec<String> {
    ask_by(WORKER, server, token, number, held_ms).await
}

async fn ask_by(
    script: &str,
    server: &Server,
    token: &str,
    number: u64,
    held_ms: i64,
) -> Vec<String> {
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    redis::cmd("EVAL")
        .arg(script)
        .arg(&["1", "seckill:order_ids:workers", token])
        .arg(&[number.to_string(), held_ms.to_string()])
        .arg(&["0", "300", "1024"])
        .query_async(&mut raw)
        .await
        .expect("an answer")
}

async fn redis_now(server: &Server) -> i64 {
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let time: (i64, i64) = redis::cmd("TIME").query_async(&mut raw).await.unwrap();
    time.0 * 1_000 + time.1 / 1_000
}

/// Fault: FLUSHALL in the middle of a sale.
#[tokio::test]
async fn whoever_holds_a_number_goes_on_after_a_wipe_and_nobody_takes_it() {
    let server = Server::start(&[]).await;
    let clock = Arc::new(TestClock::default());
    let redis = RedisHotPath::connect(&config(&server), clock.clone()).await;
    let redis = redis.unwrap_or_else(|fault| panic!("{}", fault.chain()));
    let ids = redis.ports().order_ids;
    let mut seen = HashSet::new();
    take(&ids, 10, &mut seen).await;
    let mine = number(*seen.iter().next().expect("an id"));
    redis.keep().await.unwrap();
    let slept = clock.monotonic();

    flush(&server).await;
    let newcomer = ask_for(&server, "newcomer", mine, 0).await;
    assert_eq!(newcomer[0], "WAIT", "before the holder is back");
    redis.keep().await.unwrap();
    let newcomer = ask_for(&server, "newcomer", mine, 0).await;
    assert_eq!(newcomer[0], "WAIT", "the wait is not over");
    take(&ids, 1_000, &mut seen).await;
    assert_eq!(clock.monotonic(), slept, "he waited for nothing");
    assert!(seen.iter().all(|id| number(*id) == mine));

    pause(newcomer[1].parse().expect("milliseconds")).await;
    let newcomer = ask_for(&server, "newcomer", mine, 0).await;
    assert_eq!(newcomer[0], "LEASED");
    assert_eq!(newcomer[1], ((mine + 1) % 1_024).to_string());
}

/// With the guard off, the newcomer issues ids under the number that the holder still issues under.
#[tokio::test]
async fn the_floor_is_what_keeps_newcomers_off() {
    let guard = "elseif now <= floor then";
    assert_eq!(WORKER.matches(guard).count(), 1);
    let server = Server::start(&[]).await;
    let held = redis_now(&server).await + 300;
    let unguarded = WORKER.replacen(guard, "elseif false then", 1);
    let newcomer = ask_by(&unguarded, &server, "newcomer", 7, 0).await;
    assert_eq!(newcomer[..2], ["LEASED", "7"]);
    let start: i64 = newcomer[2].parse().unwrap();
    assert!(start < held, "the ranges meet");
    let holder = ask_for(&server, "holder", 7, held).await;
    assert_eq!(holder[0], "WAIT", "and the holder has lost it");
}

#[tokio::test]
async fn a_claim_holds_as_long_as_its_limit_and_not_against_another_holder() {
    let server = Server::start(&[]).await;
    let now = redis_now(&server).await;
    let late = ask_for(&server, "late", 7, now - 1).await;
    assert_eq!(late[0], "WAIT", "his limit has passed");
    let mine = ask_for(&server, "mine", 7, now + 200).await;
    assert_eq!(mine[..3], ["LEASED", "7", "0"]);
    let other = ask_for(&server, "other", 7, now + 10_000).await;
    assert_eq!(other[0], "WAIT", "it is on record again");
    pause(310).await;
    // Nobody has said a word about 8 since the loss: whoever held it has no claim any more.
    let newcomer = ask_for(&server, "newcomer", 8, 0).await;
    assert_eq!(newcomer[..2], ["LEASED", "8"]);
    let late = ask_for(&server, "late", 8, now + 100).await;
    assert_eq!(late[..2], ["LEASED", "9"]);
}

/// A process that was away all the while finds its number taken, and takes another.
#[tokio::test]
async fn whoever_comes_too_late_after_a_wipe_is_a_newcomer() {
    let server = Server::start(&[]).await;
    let (ids, clock) = process(&config(&server)).await;
    let mut seen = HashSet::new();
    take(&ids, 10, &mut seen).await;
    let mine = number(*seen.iter().next().expect("an id"));
    flush(&server).await;
    ask_for(&server, "newcomer", mine, 0).await;
    pause(310).await;
    let newcomer = ask_for(&server, "newcomer", mine, 0).await;
    assert_eq!(newcomer[..2], ["LEASED".to_owned(), mine.to_string()]);
    clock.advance(320);
    take(&ids, 10, &mut seen).await;
    let numbers: HashSet<u64> = seen.into_iter().map(number).collect();
    assert_eq!(numbers.len(), 2);
}

/// Fault: Redis comes back from a file in which an earlier holder of a number still stands.
#[tokio::test]
async fn a_record_that_came_back_is_no_claim() {
    let server = Server::start(&[]).await;
    let now = redis_now(&server).await;
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    redis::cmd("HSET")
        .arg("seckill:order_ids:workers")
        .arg(&["life", "another", "floor", "0", "7"])
        .arg(format!("early {}", now - 5_000))
        .query_async::<()>(&mut raw)
        .await
        .unwrap();
    let early = ask_for(&server, "early", 7, 0).await;
    assert_eq!(early[0], "WAIT", "somebody may have taken it since");
    let since = ask_for(&server, "since", 7, now + 100).await;
    assert_eq!(since[..3], ["LEASED", "7", "0"], "as this one did");
    pause(310).await;
    let early = ask_for(&server, "early", 7, 0).await;
    assert_eq!(early[..2], ["LEASED", "8"]);
}

#[tokio::test]
async fn a_new_registry_gives_nothing_out_for_one_lease() {
    let server = Server::start(&[]).await;
    let (ids, clock) = process(&config(&server)).await;
    ids.next().await.unwrap();
    assert!(
        clock.monotonic() >= Duration::from_millis(290),
        "it waited for {:?}",
        clock.monotonic()
    );
    let (ids, clock) = process(&config(&server)).await;
    ids.next().await.unwrap();
    assert!(
        clock.monotonic() < Duration::from_millis(200),
        "the registry is known"
    );
}

#[tokio::test]
async fn when_redis_is_away_ids_go_on_for_a_lease_and_then_are_refused() {
    let mut server = Server::start(&[]).await;
    let (ids, clock) = process(&config(&server)).await;
    let mut seen = HashSet::new();
    take(&ids, 1, &mut seen).await;
    server.kill();
    take(&ids, 10, &mut seen).await;
    clock.advance(400);
    let fault = ids.next().await.expect_err("the lease is over");
    assert!(fault.is_retryable());
    server.restart(&[]).await;
    take(&ids, 10, &mut seen).await;
}

fn daily(server: &Server) -> RedisConfig {
    RedisConfig {
        order_ids: OrderIdScheme::DailyCounter,
        ..config(server)
    }
}

#[tokio::test]
async fn blocks_of_the_daily_counter_never_meet() {
    let server = Server::start(&[]).await;
    let (a, clock) = process(&daily(&server)).await;
    let (b, _) = process(&daily(&server)).await;
    let mut seen = HashSet::new();
    take(&a, 1_500, &mut seen).await;
    take(&b, 1_500, &mut seen).await;
    clock.advance(120_000);
    take(&a, 10, &mut seen).await;
    let id = a.next().await.unwrap().get();
    let seconds = id >> 32;
    assert!(
        (150_000_000..400_000_000).contains(&seconds),
        "seconds since 2022: {seconds}"
    );
    assert!(
        (id & 0xffff_ffff) > 4_000,
        "a block that is too old is left: {}",
        id & 0xffff_ffff
    );
}

#[tokio::test]
async fn losing_the_daily_counter_repeats_no_id() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    let mut seen = HashSet::new();
    let mut processes = vec![process(&daily(&server)).await];
    for round in 0..4 {
        for (ids, _) in &processes {
            take(ids, 600, &mut seen).await;
        }
        if round % 2 == 0 {
            flush(&server).await;
        } else {
            server.kill();
            server.restart(&["--appendonly", "yes"]).await;
        }
        processes.push(process(&daily(&server)).await);
    }
    for (ids, _) in &processes {
        take(ids, 1_100, &mut seen).await;
    }
}

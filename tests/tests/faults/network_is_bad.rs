//! Clients that go away, that are slow, or that are too many; and servers that are far (F22, F30,
//! F32).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rand::RngExt as _;
use seckill_domain::VoucherId;
use seckill_tests::harness::{Call, Offer, Shop, Weather, buyer, token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::row::Row;
use crate::scene::{Scene, sells};

/// A client that sends a purchase and hangs up before, while or after it is answered. Returns
/// whether it was gone before an answer came.
async fn hang_up(address: &str, voucher: VoucherId) -> bool {
    let mut line = TcpStream::connect(address).await.expect("it listens");
    let request = format!(
        "POST /v1/vouchers/{voucher}/purchases HTTP/1.1\r\nhost: x\r\n\
         authorization: Bearer {}\r\ncontent-length: 0\r\n\r\n",
        token(buyer())
    );
    line.write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let patience = Duration::from_micros(rand::rng().random_range(0..60_000));
    let answered = tokio::time::timeout(patience, line.read_u8()).await;
    // Dropped: the connection is closed, whatever the process is doing for it.
    answered.is_err()
}

/// Clients go away at any moment of their calls. What was begun is finished or undone, no
/// connection to the database is left in the middle of something, and others notice nothing.
#[tokio::test]
async fn f22_clients_hang_up_at_any_moment() {
    const CALLS: usize = 1_500;
    let mut row = Row::begin();
    let Some(scene) = Scene::set().await else {
        return row.skipped("only memory was asked for");
    };
    let process = scene.start().await;
    let voucher = process.shop().sell(&Offer::of(20_000)).await;
    let load = scene.load(&[&process], voucher, 4);
    sells(&load, 20).await;
    let address = process.address();
    let gone = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CALLS {
        let (address, gone) = (address.clone(), Arc::clone(&gone));
        clients.spawn(async move {
            if hang_up(&address, voucher).await {
                gone.fetch_add(1, Relaxed);
            }
        });
        if clients.len() >= 32 {
            clients.join_next().await;
        }
    }
    while clients.join_next().await.is_some() {}
    row.struck("clients hang up while they are served", gone.load(Relaxed));
    sells(&load, 50).await;
    load.stop().await;
    let shop = scene.shop(&process);
    shop.buy_settled(voucher, buyer()).await;
    let verdict = scene.judged(&process, &[voucher]).await;
    // Orders that nobody was told of are there as well, and count.
    assert!(verdict.live_orders(voucher) > verdict.granted.len());
    row.held(&verdict);
}

/// Connections whose requests never end.
async fn slow_clients(address: &str, count: usize) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for _ in 0..count {
        let mut line = TcpStream::connect(address).await.expect("it listens");
        let head = b"POST /v1/vouchers/1/purchases HTTP/1.1\r\nhost: x\r\nx-slow: ";
        line.write_all(head).await.expect("it is sent");
        slow.push(line);
    }
    slow
}

/// One buyer who presses as fast as he can. Returns how often he was answered what.
async fn one_who_never_stops(shop: Shop, voucher: VoucherId, calls: usize) -> (usize, usize) {
    let who = buyer();
    let (mut limited, mut others) = (0, 0);
    for _ in 0..calls {
        let press = || shop.send(Call::post(format!("/v1/vouchers/{voucher}/purchases")).by(who));
        for answer in futures::future::join_all((0..16).map(|_| press())).await {
            match answer {
                Ok(reply) if reply.status == 429 => limited += 1,
                _ => others += 1,
            }
        }
    }
    (limited, others)
}

/// More calls than are taken at once, clients that never end their requests, and a buyer with more
/// calls than he may have. Everybody else is served or told to come back, and what he is told is
/// true. How much is served, and how fast, is measured by the benchmark.
#[tokio::test]
async fn f30_overload_slow_clients_and_one_who_never_stops() {
    const SLOW: usize = 40;
    const PRESSES: usize = 20;
    let mut row = Row::begin();
    let Some(scene) = Scene::set().await else {
        return row.skipped("only memory was asked for");
    };
    let scene = scene
        .with("SECKILL_REQUESTS_MAX", "24")
        // A debug build on a busy machine must be able to exceed it.
        .with("SECKILL_RATE_PURCHASES", "5")
        .with("SECKILL_RATE_PURCHASES_BURST", "10")
        .with("SECKILL_HEADER_TIMEOUT_MS", "1500");
    let process = scene.start().await;
    let voucher = process.shop().sell(&Offer::of(20_000)).await;
    let load = scene.load(&[&process], voucher, 32);
    sells(&load, 20).await;
    let mut slow = slow_clients(&process.address(), SLOW).await;
    let pressing = one_who_never_stops(process.shop(), voucher, PRESSES);
    let (limited, others) = pressing.await;
    row.struck(
        "slow clients, and one who never stops",
        scene.in_flight().await.max(1),
    );
    assert!(limited > 0, "{others} calls of one buyer were taken");
    sells(&load, 100).await;
    // Whoever does not end his request is cut off.
    for line in &mut slow {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), line.read_to_end(&mut rest));
        assert!(ended.await.is_ok(), "a slow client is still connected");
    }
    load.stop().await;
    let verdict = scene.judged(&process, &[voucher]).await;
    row.held(&verdict);
}

/// Calls of Redis that are scripts, so far.
async fn script_calls(scene: &Scene) -> u64 {
    let gate = scene.gate().await;
    let info: String = gate.run(redis::cmd("INFO").arg("commandstats")).await;
    let line = info
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    let calls = line.and_then(|line| line.split("calls=").nth(1)?.split(',').next());
    calls
        .expect("scripts were called")
        .parse()
        .expect("a number")
}

/// Both servers are far away, and packets get lost on the way to Redis. Buyers who come meanwhile
/// share a call: there are fewer calls than orders.
#[tokio::test]
async fn f32_far_servers_and_lost_packets() {
    let mut row = Row::begin();
    let Some(scene) = Scene::set().await else {
        return row.skipped("only memory was asked for");
    };
    let process = scene.start().await;
    let voucher = process.shop().sell(&Offer::of(20_000)).await;
    let load = scene.load(&[&process], voucher, 64);
    sells(&load, 100).await;
    let way = Duration::from_millis(25);
    let retransmission = Duration::from_millis(200);
    let bad = Weather::far(way)
        .unsteady(way / 5)
        .lossy(0.01, retransmission);
    scene.redis.weather(bad);
    scene.mysql.weather(Weather::far(Duration::from_millis(20)));
    let (calls, sold) = (script_calls(&scene).await, load.granted());
    sells(&load, 400).await;
    row.struck(
        "50 ms and lost packets to Redis, 40 ms to MySQL",
        scene.in_flight().await,
    );
    let (calls, sold) = (script_calls(&scene).await - calls, load.granted() - sold);
    assert!(calls < sold as u64, "{calls} calls for {sold} orders");
    load.stop().await;
    scene.redis.weather(Weather::default());
    scene.mysql.weather(Weather::default());
    let verdict = scene.judged(&process, &[voucher]).await;
    row.held(&verdict);
}

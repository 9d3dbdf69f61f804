//! Clients that go away, that are slow, or that are too many; and servers that are far (F22, F30,
//! F32).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rand::RngExt as _;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Asked, Demand, History, Pace, Shop, Told, Weather, buyer, buyers, crowd, payment_id, token,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::scene::{Scene, held, until};

/// What somebody asks who will not wait for the answer.
#[derive(Debug, Clone, Copy)]
enum Haste {
    Buy,
    Pay,
    Cancel,
    Look,
    Follow,
}

impl Haste {
    const ALL: [Self; 5] = [Self::Buy, Self::Pay, Self::Cancel, Self::Look, Self::Follow];

    fn request(self, voucher: VoucherId, (who, order): (BuyerId, OrderId)) -> String {
        let order_path = format!("/v1/orders/{order}");
        let (method, path, body) = match self {
            Self::Buy => (
                "POST",
                format!("/v1/vouchers/{voucher}/purchases"),
                String::new(),
            ),
            Self::Pay => {
                let payment = payment_id(order, "hasty");
                let body = format!("{{\"payment_id\":\"{payment}\"}}");
                ("POST", format!("{order_path}/payments"), body)
            }
            Self::Cancel => ("POST", format!("{order_path}/cancellation"), String::new()),
            Self::Look => ("GET", order_path, String::new()),
            Self::Follow => ("GET", format!("{order_path}/events"), String::new()),
        };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            token(who),
            body.len()
        )
    }

    /// What others may have done by it.
    fn asked(self, order: OrderId) -> Option<Asked> {
        match self {
            Self::Pay => Some(Asked::Pay {
                order,
                payment: "hasty".to_owned(),
            }),
            Self::Cancel => Some(Asked::Cancel { order }),
            Self::Buy | Self::Look | Self::Follow => None,
        }
    }
}

/// Clients that hang up before, while or after they are answered.
struct Impatient {
    /// How long one waits at most, in microseconds: as long as it takes for some of them to be answered,
    /// however slow the machine is.
    patience: AtomicU64,
    /// How many were gone before an answer came.
    gone: AtomicUsize,
}

impl Impatient {
    /// Before any of them has learned how slow it is.
    const AT_FIRST: u64 = 150_000;

    async fn hang_up(&self, address: &str, request: &str) {
        let mut line = TcpStream::connect(address).await.expect("it listens");
        line.write_all(request.as_bytes())
            .await
            .expect("it is sent");
        let most = self.patience.load(Relaxed);
        let patience = Duration::from_micros(rand::rng().random_range(0..most));
        let answered = tokio::time::timeout(patience, line.read_u8()).await;
        // About ten go for one who stays.
        let most = match answered {
            Err(_) => most + most / 200,
            Ok(_) => Self::AT_FIRST.max(most - most / 20),
        };
        self.patience.store(most, Relaxed);
        self.gone.fetch_add(usize::from(answered.is_err()), Relaxed);
        // Dropped: the connection is closed, whatever the process is doing for it.
    }
}

/// Clients go away at any moment of their calls, of every kind. What was begun is finished or
/// undone, no connection to the database is left in the middle of something, and others notice
/// nothing.
#[tokio::test]
async fn f22_clients_hang_up_at_any_moment() {
    const CALLS: usize = 1_500;
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.selling(20_000, 4).await;
    let (shop, voucher) = (scene.shop(&sale.process), sale.voucher);
    let people = crowd(buyers(CALLS / Haste::ALL.len()), 16, async |who| {
        (who, shop.buy(voucher, who).await.expect_granted())
    })
    .await;
    let address = sale.process.address();
    let impatient = Arc::new(Impatient {
        patience: AtomicU64::new(Impatient::AT_FIRST),
        gone: AtomicUsize::new(0),
    });
    let mut clients = JoinSet::new();
    for turn in 0..CALLS {
        // Somebody else each time, or a buyer with his order, of whom all kinds are asked in turn.
        let haste = Haste::ALL[turn % Haste::ALL.len()];
        let (holder, order) = people[rand::rng().random_range(0..people.len())];
        let who = if matches!(haste, Haste::Buy) {
            buyer()
        } else {
            holder
        };
        if let Some(asked) = haste.asked(order) {
            let now = scene.history.now();
            scene.history.record(now, who, asked, Told::Nothing);
        }
        let request = haste.request(voucher, (who, order));
        let (address, impatient) = (address.clone(), Arc::clone(&impatient));
        clients.spawn(async move { impatient.hang_up(&address, &request).await });
        if clients.len() >= 32 {
            clients.join_next().await;
        }
    }
    while clients.join_next().await.is_some() {}
    let gone = impatient.gone.load(Relaxed);
    row.struck("clients hang up while they are served", gone);
    sale.sells(50).await;
    sale.load.stop().await;
    // Whoever stays is served, by the same connections to the database.
    let who = buyer();
    let order = shop.buy_settled(voucher, who).await;
    shop.pay(order, who, "p-1").await.assert_status(200);
    let verdict = scene.judged(&sale.process, &[voucher]).await;
    let orders = &verdict.facts.orders;
    // Orders that nobody was told of are there as well, and count.
    assert!(orders.len() > verdict.granted.len());
    for status in [OrderStatus::Paid, OrderStatus::Cancelled] {
        let ended = people.iter().filter(|(_, order)| {
            let found = orders.get(order);
            found.is_some_and(|found| found.status == status)
        });
        assert!(ended.count() > 1, "no hasty client has {status:?} anything");
    }
    held(&scene, row, &verdict, sale.demand);
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

/// One buyer who presses as fast as he can, sixteen times at once. Returns how often he was told to be
/// slower, and how often something else; what, is in the history and judged like any other answer.
async fn one_who_never_stops(shop: Shop, voucher: VoucherId, calls: usize) -> (usize, usize) {
    let who = buyer();
    let (mut limited, mut others) = (0, 0);
    for _ in 0..calls {
        let press = || shop.try_buy(voucher, who, 1, None);
        for answer in futures::future::join_all((0..16).map(|_| press())).await {
            match answer {
                Ok(answer) if answer.code() == "rate_limited" => limited += 1,
                _ => others += 1,
            }
        }
    }
    (limited, others)
}

/// Calls that were turned away because there were too many, and orders that were granted, by now.
fn turned_away_and_served(history: &History) -> (usize, usize) {
    let (mut turned_away, mut served) = (0, 0);
    for event in history.events() {
        if let Told::Purchase(answer) = &event.told {
            turned_away += usize::from(answer.code() == "overloaded");
            served += usize::from(answer.granted().is_some());
        }
    }
    (turned_away, served)
}

/// More calls than are taken at once, clients that never end their requests, and a buyer with more
/// calls than he may have. Everybody else is served or told to come back, and what he is told is
/// true; and while many are turned away, others go on being served. How fast, is measured by the
/// benchmark.
#[tokio::test]
async fn f30_overload_slow_clients_and_one_who_never_stops() {
    const SLOW: usize = 40;
    const PRESSES: usize = 20;
    const AT_ONCE: usize = 12;
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let scene = scene
        .with("SECKILL_REQUESTS_MAX", &AT_ONCE.to_string())
        // A debug build on a busy machine must be able to exceed it.
        .with("SECKILL_RATE_PURCHASES", "5")
        .with("SECKILL_RATE_PURCHASES_BURST", "10")
        .with("SECKILL_HEADER_TIMEOUT_MS", "1500");
    let sale = scene.selling(20_000, AT_ONCE).await;
    let mut slow = slow_clients(&sale.process.address(), SLOW).await;
    let press = || one_who_never_stops(scene.shop(&sale.process), sale.voucher, PRESSES);
    let (limited, others) = press().await;
    assert!(limited > 0, "{others} calls of one buyer were taken");
    // He goes on while the others come.
    let pressing = tokio::spawn(press());
    let since = scene.history.now();
    let crush = scene.load(&[&sale.process], sale.voucher, 8 * AT_ONCE);
    let (turned_away, served) = turned_away_and_served(&scene.history);
    let in_flight = until("many are turned away, and many are served", async || {
        let (now_away, now_served) = turned_away_and_served(&scene.history);
        let (away, served) = (now_away - turned_away, now_served - served);
        let in_flight = scene.in_flight().await;
        let overload = away >= 100 && served >= 100 && in_flight > 0;
        overload
            .then_some(in_flight)
            .ok_or(format!("{away} turned away, {served} served"))
    })
    .await;
    row.struck(
        "more calls than are taken, slow clients, and one who never stops",
        in_flight,
    );
    row.tell(pace(&scene, since));
    // Whoever does not end his request is cut off.
    for line in &mut slow {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), line.read_to_end(&mut rest));
        assert!(ended.await.is_ok(), "a slow client is still connected");
    }
    crush.stop().await;
    pressing.await.expect("he gives up");
    sale.ends(&scene, row).await;
}

/// How fast buyers were served since then, for the report.
fn pace(scene: &Scene, since: Duration) -> Pace {
    Pace::between(&scene.history.events(), since, scene.history.now())
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
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let lively = |demand: Demand| demand.of_all_kinds().with_leavers();
    let sale = scene.contested(64, lively).await;
    let way = Duration::from_millis(25);
    let retransmission = Duration::from_millis(200);
    let near = pace(&scene, Duration::ZERO);
    let bad = Weather::far(way)
        .unsteady(way / 5)
        .lossy(0.01, retransmission);
    scene.redis.weather(bad);
    scene.mysql.weather(Weather::far(Duration::from_millis(20)));
    // Everybody does what he does, and then all only buy, so that their calls can be counted.
    sale.sells(200).await;
    sale.load.calm(true);
    sale.sells(100).await;
    let since = scene.history.now();
    let (calls, sold) = (script_calls(&scene).await, sale.load.granted());
    sale.sells(300).await;
    let far = pace(&scene, since);
    row.tell(format!(
        "{near} near and of all kinds, {far} far and only buying"
    ));
    until("a packet is lost", async || {
        let lost = scene.redis.lost();
        (lost > 0).then_some(()).ok_or(String::new())
    })
    .await;
    row.struck(
        "50 ms and lost packets to Redis, 40 ms to MySQL",
        scene.in_flight().await,
    );
    let (calls, sold) = (
        script_calls(&scene).await - calls,
        sale.load.granted() - sold,
    );
    assert!(calls < sold as u64, "{calls} calls for {sold} orders");
    sale.load.calm(false);
    sale.sells(50).await;
    scene.redis.weather(Weather::default());
    scene.mysql.weather(Weather::default());
    sale.ends(&scene, row).await;
}

//! Notices: connections that are lost, away, or silent.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use seckill_application::ports::{Clock, Following, HotPath};
use seckill_domain::{
    BuyerId, Event, EventId, EventKind, NewEvent, OrderId, OrderStatus, Timestamp, VoucherId,
};
use seckill_redis::{RedisConfig, RedisHotPath};

use crate::stage::{Server, Stage, config, pause};

fn paid(order: u64) -> Event {
    Event {
        id: EventId::new(1),
        what: NewEvent {
            kind: EventKind::Order(OrderStatus::Paid),
            voucher: VoucherId::new(7),
            order: Some((OrderId::new(order), BuyerId::new(1))),
        },
        at: Timestamp::from_millis(0),
    }
}

async fn follow(hot: &HotPath, order: u64) -> Box<dyn Following> {
    let following = hot.feed.follow(OrderId::new(order)).await;
    following.unwrap_or_else(|fault| panic!("{}", fault.chain()))
}

async fn woken_within(following: &mut dyn Following, millis: u64) -> bool {
    let patience = Duration::from_millis(millis);
    tokio::time::timeout(patience, following.changed())
        .await
        .is_ok()
}

async fn woken(following: &mut dyn Following) -> bool {
    woken_within(following, 10_000).await
}

/// Whether he sleeps on, once he has heard what there was to hear.
async fn sleeps(following: &mut dyn Following) -> bool {
    for _ in 0..5 {
        if !woken_within(following, 300).await {
            return true;
        }
    }
    false
}

async fn listeners(stage: &Stage) -> usize {
    let clients: String = stage.raw("CLIENT LIST TYPE pubsub").await;
    clients.lines().filter(|line| !line.is_empty()).count()
}

#[tokio::test]
async fn a_process_hears_on_one_connection_whatever_is_followed() {
    let stage = Stage::bare().await;
    assert_eq!(listeners(&stage).await, 0, "nobody listens yet");
    let mut all = Vec::new();
    for order in 1..=300 {
        all.push(follow(&stage.hot, order).await);
    }
    let wait = stage.hot.delays.wait(Duration::from_millis(100));
    let events = [paid(7), paid(300)];
    let told = stage.hot.notifier.notify(&events);
    let (waited, told) = futures::join!(wait, told);
    waited.unwrap();
    told.unwrap();
    assert_eq!(listeners(&stage).await, 1);
    assert!(woken(&mut *all[6]).await);
    assert!(woken(&mut *all[299]).await);
    assert!(sleeps(&mut *all[0]).await);
}

/// Fault: the connection is lost. Who followed may have missed something, and is told to look.
#[tokio::test]
async fn whoever_may_have_missed_something_is_woken() {
    let stage = Stage::bare().await;
    let mut following = follow(&stage.hot, 1).await;
    assert!(sleeps(&mut *following).await);
    assert_eq!(stage.raw::<i64>("CLIENT KILL TYPE pubsub").await, 1);
    assert!(woken(&mut *following).await);
    assert!(sleeps(&mut *following).await, "it hears again by itself");
    assert_eq!(listeners(&stage).await, 1);
    stage.hot.notifier.notify(&[paid(1)]).await.unwrap();
    assert!(woken(&mut *following).await);
}

#[tokio::test]
async fn one_can_follow_while_redis_is_away_and_is_woken_when_it_is_back() {
    let mut stage = Stage::bare().await;
    stage.server.kill();
    let mut following = follow(&stage.hot, 1).await;
    assert!(!woken_within(&mut *following, 500).await);
    stage.server.restart(&[]).await;
    assert!(woken(&mut *following).await, "something may have happened");
    assert!(sleeps(&mut *following).await);
    stage.hot.notifier.notify(&[paid(1)]).await.unwrap();
    assert!(woken(&mut *following).await);
}

#[tokio::test]
async fn whoever_keeps_the_connection_may_go() {
    let stage = Stage::bare().await;
    let mut goes = follow(&stage.hot, 1).await;
    let mut stays = follow(&stage.hot, 2).await;
    let both = async {
        let first = tokio::time::timeout(Duration::from_millis(200), goes.changed());
        futures::join!(first, woken(&mut *stays))
    };
    let loses = async {
        pause(400).await;
        stage.raw::<i64>("CLIENT KILL TYPE pubsub").await;
    };
    let ((first, second), ()) = futures::join!(both, loses);
    assert!(first.is_err(), "he goes before anything happens");
    assert!(second, "and another keeps the connection");
    assert!(sleeps(&mut *stays).await);
    stage.hot.notifier.notify(&[paid(2)]).await.unwrap();
    assert!(woken(&mut *stays).await);
}

#[tokio::test]
async fn what_somebody_else_publishes_does_no_harm() {
    let stage = Stage::bare().await;
    let mut following = follow(&stage.hot, 1).await;
    for message in [
        "",
        "x",
        "-1 2",
        "99999999999999999999 1",
        "2 1",
        "\u{feff}1",
    ] {
        stage
            .command::<i64>(&["PUBLISH", "seckill:notices", message])
            .await;
    }
    stage.raw::<i64>("PUBLISH elsewhere 1").await;
    assert!(sleeps(&mut *following).await);
    stage.raw::<i64>("PUBLISH seckill:notices 1").await;
    assert!(woken(&mut *following).await);
}

/// A clock on which time goes by twenty times as fast.
struct Fast(Instant);

#[async_trait]
impl Clock for Fast {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed() * 20
    }

    async fn sleep(&self, time: Duration) {
        pause(u64::try_from(time.as_millis() / 20).expect("short") + 1).await;
    }
}

/// Fault: the other end is gone without a word, as behind a broken network.
#[tokio::test]
async fn a_connection_on_which_nobody_answers_is_noticed() {
    let server = Server::start(&[]).await;
    let config = RedisConfig {
        response_timeout: Duration::from_millis(300),
        ..config(&server)
    };
    #[expect(clippy::disallowed_methods, reason = "the server's time is real")]
    let clock = Arc::new(Fast(Instant::now()));
    let redis = RedisHotPath::connect(&config, clock).await;
    let redis = redis.unwrap_or_else(|fault| panic!("{}", fault.chain()));
    let hot = redis.ports();
    let mut following = follow(&hot, 1).await;
    assert!(!woken_within(&mut *following, 1_200).await, "it is alive");
    signal(&server, "-STOP");
    let noticed = woken_within(&mut *following, 5_000).await;
    signal(&server, "-CONT");
    assert!(noticed);
    assert!(woken(&mut *following).await, "it is made again");
    assert!(sleeps(&mut *following).await);
    hot.notifier.notify(&[paid(1)]).await.unwrap();
    assert!(woken(&mut *following).await);
}

fn signal(server: &Server, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &server.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

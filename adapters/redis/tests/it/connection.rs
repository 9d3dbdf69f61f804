//! Redis goes away, comes back, answers late, or is the wrong one.

use std::num::NonZeroU16;
use std::time::Duration;

use seckill_application::Effect;
use seckill_application::ports::Admitted;
use seckill_domain::{Admission, Partitions};
use seckill_redis::{AppendFsync, RedisConfig, RedisHotPath};

use crate::stage::{RealClock, Server, Stage, VOUCHER, attempt, config, granted, pause, terms};

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test]
async fn when_redis_is_away_nothing_has_changed_and_it_comes_back_by_itself() {
    let mut stage = Stage::with(&DURABLE, |_| {}).await;
    stage.open(terms(5), 5).await;
    stage.buy(1, 1, 1).await;
    stage.server.kill();
    pause(50).await;
    for _ in 0..3 {
        let fault = stage.hot.gate.admit(VOUCHER, &[attempt(2, 2, 1)]).await;
        let fault = fault.expect_err("away");
        assert_eq!(fault.effect(), Effect::None, "{}", fault.chain());
        assert!(fault.is_retryable());
    }
    stage.server.restart(&DURABLE).await;
    assert_eq!(stage.buy(2, 2, 1).await, granted(2));
    let held = stage.buy(9, 1, 1).await;
    assert!(
        matches!(held, Admission::AlreadyHeld { .. }),
        "nothing is lost: {held:?}"
    );
}

/// Stands for: the reply is lost, the client tries again, and pays for two units (F2).
#[tokio::test]
async fn a_lost_answer_has_an_unknown_effect_and_repeating_settles_it() {
    let stage = Stage::with(&[], |config| {
        config.response_timeout = Duration::from_millis(150);
    })
    .await;
    stage.open(terms(5), 5).await;
    stage.buy(1, 1, 1).await;
    let sleeps = stage.raw::<String>("DEBUG SLEEP 0.5");
    let buys = async {
        pause(50).await;
        stage.hot.gate.admit(VOUCHER, &[attempt(2, 2, 1)]).await
    };
    let (_, lost) = futures::join!(sleeps, buys);
    let fault = lost.expect_err("late");
    assert_eq!(
        (fault.effect(), fault.is_retryable()),
        (Effect::Unknown, true)
    );
    assert_eq!(stage.buy(2, 2, 1).await, granted(2));
    assert_eq!(stage.decisions().await.len(), 2, "decided once");
}

#[tokio::test]
async fn many_callers_at_once_share_one_connection() {
    let stage = Stage::selling(500, |_| {}).await;
    let buys = (1..=1_000).map(|n| stage.buy(n, n, 1));
    let admissions = futures::future::join_all(buys).await;
    let won = admissions
        .iter()
        .filter(|it| matches!(it, Admission::Granted { .. }))
        .count();
    assert_eq!(won, 500);
    let clients: String = stage.raw("INFO clients").await;
    let connected = clients
        .lines()
        .find_map(|line| line.strip_prefix("connected_clients:"))
        .expect("a count");
    assert!(
        connected.trim().parse::<usize>().expect("a number") <= 4,
        "{connected}"
    );
}

/// Stands for: eviction removes queue and lock keys.
#[tokio::test]
async fn a_redis_that_throws_keys_away_is_refused() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]).await;
    let refused = RedisHotPath::connect(&config(&server), RealClock::new()).await;
    let fault = refused.err().expect("refused");
    assert!(
        fault.chain().contains("maxmemory-policy is allkeys-lru"),
        "{}",
        fault.chain()
    );
    assert!(!fault.is_retryable());
}

#[tokio::test]
async fn how_safe_its_data_is_can_be_told() {
    let stage = Stage::bare().await;
    assert_eq!(stage.redis.server().append_only, None);
    assert!(
        stage
            .redis
            .server()
            .to_string()
            .ends_with(", appendonly no")
    );
    let stage = Stage::with(&DURABLE, |_| {}).await;
    assert_eq!(stage.redis.server().append_only, Some(AppendFsync::Always));
    stage.raw::<String>("CONFIG SET appendfsync everysec").await;
    let now = stage.redis.examine().await.unwrap();
    assert_eq!(now.append_only, Some(AppendFsync::EverySecond));
    assert!(
        now.to_string()
            .ends_with("appendonly yes, appendfsync everysec")
    );
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_without_telling_the_password() {
    let server = Server::start(&["--requirepass", "sesame"]).await;
    let password = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port);
    let connect = |url: String, namespace: &str| {
        let config = RedisConfig {
            url,
            namespace: namespace.to_owned(),
            ..config(&server)
        };
        assert!(!format!("{config:?}").contains("sesame"));
        async move { RedisHotPath::connect(&config, RealClock::new()).await.err() }
    };
    assert!(connect(password("sesame"), "shop").await.is_none());
    for (url, namespace) in [
        (password("wrong"), "shop"),
        (server.url(), "shop"),
        ("http://:sesame@example".to_owned(), "shop"),
        (format!("{}/abc", password("sesame")), "shop"),
        (format!("{}/-1", password("sesame")), "shop"),
        (format!("{}/9999", password("sesame")), "shop"),
        (password("sesame").replace("redis:", "rediss:"), "shop"),
        (password("sesame"), "sh{p"),
        (password("sesame"), ""),
    ] {
        let fault = connect(url, namespace).await.expect("refused");
        assert!(!fault.is_retryable(), "{}", fault.chain());
        assert!(!fault.chain().contains("sesame"), "{}", fault.chain());
    }
}

#[test]
fn a_url_that_is_none_is_refused_before_anything_is_connected_to() {
    let partitions = Partitions::new(NonZeroU16::MIN);
    let check = |url: &str| RedisConfig::new(url, partitions).check();
    for good in [
        "redis://127.0.0.1",
        "redis://u:p@[::1]:6380/15",
        "redis://host/",
    ] {
        check(good).unwrap_or_else(|fault| panic!("{good}: {}", fault.chain()));
    }
    for bad in [
        "redis://127.0.0.1/abc",
        "redis://127.0.0.1/-1",
        "redis://127.0.0.1:port",
        "redis://127.0.0.1:70000",
        "rediss://127.0.0.1",
        "memory://",
        "127.0.0.1:6379",
        "",
    ] {
        let fault = check(bad).expect_err(bad);
        assert!(!fault.is_retryable(), "{bad}");
    }
    let fault = check("rediss://127.0.0.1").expect_err("TLS");
    assert!(fault.chain().contains("TLS"), "{}", fault.chain());
}

/// What a log says when there is no connection.
#[tokio::test]
async fn whoever_cannot_connect_is_told_why() {
    let connect = async |url: &str| {
        let partitions = Partitions::new(NonZeroU16::MIN);
        let config = RedisConfig {
            connect_timeout: Duration::from_millis(300),
            ..RedisConfig::new(url, partitions)
        };
        let fault = RedisHotPath::connect(&config, RealClock::new()).await;
        let fault = fault.err().expect("refused");
        assert_eq!(fault.effect(), Effect::None);
        (fault.chain(), fault.is_retryable())
    };
    let secured = Server::start(&["--requirepass", "sesame"]).await;
    let url = |rest: String| format!("redis://{rest}127.0.0.1:{}", secured.port);
    let (said, retryable) = connect(&url(String::new())).await;
    assert!(said.contains("asks for a password"), "{said}");
    assert!(!retryable);
    let (said, retryable) = connect(&url(":wrong@".to_owned())).await;
    assert!(said.contains("refuses the name or the password"), "{said}");
    assert!(!retryable);
    let (said, retryable) = connect(&format!("{}/9999", url(":sesame@".to_owned()))).await;
    assert!(said.contains("no database of this number"), "{said}");
    assert!(!retryable);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (said, retryable) = connect(&format!("redis://{address}")).await;
    assert!(said.contains("nobody answered in time"), "{said}");
    assert!(retryable);
    let hangs_up = std::thread::spawn(move || {
        // The one who was not answered, and the next.
        for _ in 0..2 {
            drop(listener.accept());
        }
    });
    let (said, retryable) = connect(&format!("redis://{address}")).await;
    assert!(said.contains("hung up"), "{said}");
    assert!(said.contains("TLS"), "{said}");
    assert!(retryable);
    hangs_up.join().expect("it ends");
    let (said, retryable) = connect(&format!("redis://{address}")).await;
    assert!(said.contains("nobody listens there"), "{said}");
    assert!(retryable);
}

#[tokio::test]
async fn two_deployments_on_one_redis_do_not_meet() {
    let stage = Stage::selling(1, |_| {}).await;
    let config = RedisConfig {
        namespace: "other".to_owned(),
        ..config(&stage.server)
    };
    let other = RedisHotPath::connect(&config, RealClock::new())
        .await
        .unwrap_or_else(|fault| panic!("{}", fault.chain()));
    let admitted = other
        .ports()
        .gate
        .admit(VOUCHER, &[attempt(1, 1, 1)])
        .await
        .unwrap();
    assert!(matches!(admitted, Admitted::NotLoaded(_)));
    assert_eq!(stage.buy(1, 1, 1).await, granted(1));
}

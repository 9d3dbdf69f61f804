//! The delay queue: what Redis adds to the contract.

use std::time::{Duration, Instant};

use seckill_domain::{OrderId, Timestamp};
use seckill_redis::ScriptEdit;

use crate::stage::{Stage, pause};

const HOLD: Duration = Duration::from_mins(1);
const LONG: Duration = Duration::from_secs(30);

async fn redis_now(stage: &Stage) -> i64 {
    let (seconds, micros): (i64, i64) = stage.raw("TIME").await;
    seconds * 1_000 + micros / 1_000
}

/// How long a wait takes while something else is done.
async fn waits(stage: &Stage, meanwhile: impl Future<Output = ()>) -> Duration {
    let began = now();
    let wait = async {
        stage.hot.delays.wait(LONG).await.unwrap();
        began.elapsed()
    };
    futures::join!(wait, meanwhile).0
}

#[expect(clippy::disallowed_methods, reason = "the server's time is real")]
fn now() -> Instant {
    Instant::now()
}

/// Fault: the connection that hears is lost, and so is what was published meanwhile.
#[tokio::test]
async fn what_was_not_heard_is_found_once_one_hears_again() {
    let stage = Stage::bare().await;
    let at = redis_now(&stage).await + 600;
    let passed = waits(&stage, async {
        pause(200).await;
        assert_eq!(stage.raw::<i64>("CLIENT KILL TYPE pubsub").await, 1);
        // Nobody is told of this one.
        let schedule = format!("ZADD seckill:delays {at} 7");
        stage.raw::<i64>(&schedule).await;
    })
    .await;
    assert!(passed < Duration::from_secs(5), "{passed:?}");
    let due = stage.hot.delays.claim_due(10, HOLD).await.unwrap();
    // It wakes when it finds that there is something earlier, or when that is due.
    assert!(due.is_empty() || due == [OrderId::new(7)], "{due:?}");
}

#[tokio::test]
async fn only_what_is_due_first_is_published() {
    let stage = Stage::bare().await;
    let now = redis_now(&stage).await;
    let at = |in_ms| Timestamp::from_millis(now + in_ms);
    let published = async |order: u64, in_ms: i64| {
        let before = calls_of(&stage, "publish").await;
        let due = [(OrderId::new(order), at(in_ms))];
        stage.hot.delays.schedule(&due).await.unwrap();
        calls_of(&stage, "publish").await - before
    };
    assert_eq!(published(1, 60_000).await, 1);
    assert_eq!(published(2, 70_000).await, 0);
    assert_eq!(published(3, 60_000).await, 0);
    assert_eq!(published(4, 50_000).await, 1);
    assert_eq!(published(4, 80_000).await, 0, "it is due later than before");
}

async fn calls_of(stage: &Stage, command: &str) -> u64 {
    let stats: String = stage.raw("INFO commandstats").await;
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| {
        let (calls, _) = line.split_once(',').expect("more than a count");
        calls.parse().expect("a count")
    })
}

/// With the guard off, every worker gets every order.
#[tokio::test]
async fn a_claim_is_what_keeps_others_off() {
    for (guarded, others) in [(true, 0), (false, 1)] {
        let stage = Stage::with(&[], |config| {
            if !guarded {
                config.script_edits.push(ScriptEdit {
                    file: "delay_claim",
                    find: "redis.call('ZADD', KEYS[1], unpack(moved))",
                    replace: "",
                });
            }
        })
        .await;
        let delays = &stage.hot.delays;
        let due = [(OrderId::new(7), Timestamp::from_millis(1))];
        delays.schedule(&due).await.unwrap();
        assert_eq!(delays.claim_due(10, HOLD).await.unwrap().len(), 1);
        assert_eq!(delays.claim_due(10, HOLD).await.unwrap().len(), others);
    }
}

#[tokio::test]
async fn what_is_no_order_is_thrown_out_and_orders_are_claimed() {
    let stage = Stage::bare().await;
    stage.raw::<i64>("ZADD seckill:delays 1 x 2 7 3 -1").await;
    let due = stage.hot.delays.claim_due(10, HOLD).await.unwrap();
    assert_eq!(due, [OrderId::new(7)]);
    assert_eq!(stage.hot.delays.scheduled().await.unwrap(), 1);
}

#[tokio::test]
async fn a_key_of_the_wrong_type_is_an_empty_queue_that_heals() {
    let stage = Stage::bare().await;
    let delays = &stage.hot.delays;
    stage.raw::<String>("SET seckill:delays nonsense").await;
    assert_eq!(delays.claim_due(10, HOLD).await.unwrap(), []);
    delays.wait(Duration::from_millis(50)).await.unwrap();
    let due = [(OrderId::new(7), Timestamp::from_millis(1))];
    delays.schedule(&due).await.unwrap();
    assert_eq!(delays.claim_due(10, HOLD).await.unwrap(), [OrderId::new(7)]);
}

/// A sale's orders are due together.
#[tokio::test]
async fn a_hundred_thousand_orders_due_together_are_a_few_hundred_calls() {
    let stage = Stage::bare().await;
    let delays = &stage.hot.delays;
    let at = Timestamp::from_millis(redis_now(&stage).await - 10);
    for first in (1..100_000).step_by(1_000) {
        let due: Vec<_> = (first..first + 1_000)
            .map(|n| (OrderId::new(n), at))
            .collect();
        delays.schedule(&due).await.unwrap();
    }
    let began = now();
    let mut handled = 0;
    loop {
        let due = delays.claim_due(1_000, HOLD).await.unwrap();
        if due.is_empty() {
            break;
        }
        handled += due.len();
        delays.complete(&due).await.unwrap();
    }
    assert_eq!(handled, 100_000);
    assert_eq!(delays.scheduled().await.unwrap(), 0);
    let took = began.elapsed();
    println!("100,000 orders claimed and completed in {took:?}");
    assert!(took < LONG, "{took:?}");
}

#[tokio::test]
async fn a_wait_fails_when_redis_is_away_and_works_when_it_is_back() {
    let mut stage = Stage::bare().await;
    stage
        .hot
        .delays
        .wait(Duration::from_millis(20))
        .await
        .unwrap();
    stage.server.kill();
    let fault = stage.hot.delays.wait(LONG).await.expect_err("away");
    assert!(fault.is_retryable(), "{}", fault.chain());
    stage.server.restart(&[]).await;
    let wait = stage.hot.delays.wait(Duration::from_millis(20)).await;
    wait.unwrap_or_else(|fault| panic!("{}", fault.chain()));
}

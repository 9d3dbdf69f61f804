//! `DelayQueue`: orders by the end of their payment window.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use futures::join;
use seckill_application::ports::HotPath;
use seckill_domain::{OrderId, Timestamp};

use super::passing::answer_within;
use super::stall::new_order;
use super::{HotHarness, promises};

promises! { delay_queue over dyn HotHarness:
    an_order_is_due_when_its_time_has_come_and_not_before,
    what_is_overdue_is_due,
    orders_come_oldest_first_and_not_too_many,
    orders_of_one_moment_all_come,
    an_order_has_one_time_the_latest_that_was_set,
    scheduling_may_be_repeated,
    a_claimed_order_is_nobody_elses_while_the_hold_lasts,
    an_order_that_is_not_completed_is_due_again,
    a_completed_order_never_comes,
    completing_may_be_repeated,
    of_many_workers_one_gets_an_order,
    an_order_scheduled_while_it_is_claimed_goes_by_its_new_time,
    claimed_orders_are_scheduled_until_they_are_completed,
    a_thousand_orders_fit_a_call,
    nothing_is_no_trouble,
    waiting_ends_at_once_when_an_order_is_due,
    waiting_ends_when_the_next_order_is_due,
    waiting_ends_when_something_earlier_is_scheduled,
    waiting_ends_when_something_is_scheduled_at_all,
    waiting_ends_after_its_time,
    claimed_orders_end_no_wait,
    a_wiped_queue_is_empty_and_goes_on,
}

const HOLD: Duration = Duration::from_mins(2);
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(30);

/// A moment so many milliseconds from now.
async fn moment(harness: &dyn HotHarness, in_ms: i64) -> Timestamp {
    Timestamp::from_millis(harness.gate_time().await.as_millis() + in_ms)
}

/// A new order that is due so many milliseconds from now.
async fn scheduled(harness: &dyn HotHarness, in_ms: i64) -> OrderId {
    let order = new_order();
    set(harness.hot(), order, moment(harness, in_ms).await).await;
    order
}

async fn set(hot: &HotPath, order: OrderId, at: Timestamp) {
    hot.delays.schedule(&[(order, at)]).await.unwrap();
}

async fn claim(hot: &HotPath, max: usize) -> Vec<OrderId> {
    hot.delays.claim_due(max, HOLD).await.unwrap()
}

async fn complete(hot: &HotPath, orders: &[OrderId]) {
    hot.delays.complete(orders).await.unwrap();
}

async fn count(hot: &HotPath) -> u64 {
    hot.delays.scheduled().await.unwrap()
}

async fn an_order_is_due_when_its_time_has_come_and_not_before(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let order = scheduled(harness, 600).await;
    assert_eq!(claim(hot, 10).await, []);
    harness.elapse(Duration::from_millis(700)).await;
    assert_eq!(claim(hot, 10).await, [order]);
}

async fn what_is_overdue_is_due(harness: &dyn HotHarness) {
    let order = scheduled(harness, -3_600_000).await;
    assert_eq!(claim(harness.hot(), 10).await, [order]);
}

async fn orders_come_oldest_first_and_not_too_many(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let now = moment(harness, 0).await.as_millis();
    let mut orders = Vec::new();
    for in_ms in [-10, -50, -30, -40, -20] {
        orders.push(new_order());
        let at = Timestamp::from_millis(now + in_ms);
        set(hot, *orders.last().expect("one"), at).await;
    }
    let [first, fifth, third, fourth, second] = orders[..] else {
        panic!("five orders");
    };
    assert_eq!(claim(hot, 2).await, [fifth, fourth]);
    assert_eq!(claim(hot, 2).await, [third, second]);
    assert_eq!(claim(hot, 2).await, [first]);
    assert_eq!(claim(hot, 2).await, []);
}

async fn orders_of_one_moment_all_come(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let at = moment(harness, -5).await;
    let due: Vec<_> = (0..20).map(|_| (new_order(), at)).collect();
    hot.delays.schedule(&due).await.unwrap();
    let claimed: HashSet<OrderId> = claim(hot, 100).await.into_iter().collect();
    assert_eq!(claimed, due.iter().map(|(order, _)| *order).collect());
}

async fn an_order_has_one_time_the_latest_that_was_set(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let [later, earlier] = [
        scheduled(harness, -10).await,
        scheduled(harness, 60_000).await,
    ];
    set(hot, later, moment(harness, 60_000).await).await;
    set(hot, earlier, moment(harness, -10).await).await;
    assert_eq!(claim(hot, 10).await, [earlier]);
    assert_eq!(count(hot).await, 2);
}

async fn scheduling_may_be_repeated(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let at = moment(harness, -10).await;
    let order = new_order();
    for _ in 0..3 {
        set(hot, order, at).await;
    }
    assert_eq!(count(hot).await, 1);
    assert_eq!(claim(hot, 10).await, [order]);
    assert_eq!(claim(hot, 10).await, []);
}

async fn a_claimed_order_is_nobody_elses_while_the_hold_lasts(harness: &dyn HotHarness) {
    let other = harness.another_process().await;
    let order = scheduled(harness, -10).await;
    assert_eq!(claim(harness.hot(), 10).await, [order]);
    assert_eq!(claim(&other, 10).await, []);
    harness.elapse(SHORT).await;
    assert_eq!(claim(&other, 10).await, []);
}

/// Fault: a worker dies with what it has claimed.
async fn an_order_that_is_not_completed_is_due_again(harness: &dyn HotHarness) {
    let other = harness.another_process().await;
    let order = scheduled(harness, -10).await;
    let delays = &harness.hot().delays;
    assert_eq!(delays.claim_due(10, SHORT).await.unwrap(), [order]);
    harness.elapse(2 * SHORT).await;
    assert_eq!(claim(&other, 10).await, [order]);
}

async fn a_completed_order_never_comes(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let [claimed, waiting, kept] = [
        scheduled(harness, -10).await,
        scheduled(harness, 200).await,
        scheduled(harness, 250).await,
    ];
    let delays = &hot.delays;
    assert_eq!(delays.claim_due(10, SHORT).await.unwrap(), [claimed]);
    complete(hot, &[claimed, waiting]).await;
    harness.elapse(2 * SHORT).await;
    assert_eq!(claim(hot, 10).await, [kept]);
}

async fn completing_may_be_repeated(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let [order, kept] = [scheduled(harness, -10).await, scheduled(harness, -5).await];
    complete(hot, &[order, new_order()]).await;
    complete(hot, &[order, order]).await;
    assert_eq!(claim(hot, 10).await, [kept]);
}

async fn of_many_workers_one_gets_an_order(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let at = moment(harness, -10).await;
    let due: Vec<_> = (0..100).map(|_| (new_order(), at)).collect();
    hot.delays.schedule(&due).await.unwrap();
    let other = harness.another_process().await;
    let workers = (0..16).map(|n| claim(if n % 2 == 0 { hot } else { &other }, 10));
    let claimed: Vec<OrderId> = join_all(workers).await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 100);
    let distinct: HashSet<OrderId> = claimed.into_iter().collect();
    assert_eq!(distinct.len(), 100, "one of them twice");
}

/// The ledger's clock said that it was not due yet.
async fn an_order_scheduled_while_it_is_claimed_goes_by_its_new_time(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let order = scheduled(harness, -10).await;
    assert_eq!(claim(hot, 10).await, [order]);
    set(hot, order, moment(harness, 300).await).await;
    assert_eq!(claim(hot, 10).await, []);
    harness.elapse(Duration::from_millis(400)).await;
    assert_eq!(claim(hot, 10).await, [order], "before its hold has ended");
}

async fn claimed_orders_are_scheduled_until_they_are_completed(harness: &dyn HotHarness) {
    let hot = harness.hot();
    assert_eq!(count(hot).await, 0);
    let orders = [
        scheduled(harness, -10).await,
        scheduled(harness, 60_000).await,
    ];
    assert_eq!(count(hot).await, 2);
    assert_eq!(claim(hot, 10).await, orders[..1]);
    assert_eq!(count(hot).await, 2);
    complete(hot, &orders[..1]).await;
    assert_eq!(count(hot).await, 1);
}

async fn a_thousand_orders_fit_a_call(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let at = moment(harness, -10_000).await.as_millis();
    let due = (0..1_000).map(|n| (new_order(), Timestamp::from_millis(at + n)));
    let due: Vec<_> = due.collect();
    hot.delays.schedule(&due).await.unwrap();
    let claimed = claim(hot, 1_000).await;
    let orders: Vec<OrderId> = due.iter().map(|(order, _)| *order).collect();
    assert_eq!(claimed, orders);
    complete(hot, &claimed).await;
    assert_eq!(count(hot).await, 0);
}

async fn nothing_is_no_trouble(harness: &dyn HotHarness) {
    let hot = harness.hot();
    hot.delays.schedule(&[]).await.unwrap();
    complete(hot, &[]).await;
    assert_eq!(claim(hot, 1).await, []);
}

/// How long a wait of at most `max` takes.
async fn waited(harness: &dyn HotHarness, max: Duration) -> Duration {
    let wait = harness.hot().delays.wait(max);
    let answer = answer_within(harness, LONG, wait).await;
    let (reply, passed) = answer.expect("the wait ends");
    reply.unwrap();
    passed
}

async fn waiting_ends_at_once_when_an_order_is_due(harness: &dyn HotHarness) {
    scheduled(harness, -10).await;
    let passed = waited(harness, LONG).await;
    assert!(passed < SHORT, "{passed:?}");
}

async fn waiting_ends_when_the_next_order_is_due(harness: &dyn HotHarness) {
    scheduled(harness, 60_000).await;
    let next = scheduled(harness, 500).await;
    let passed = waited(harness, LONG).await;
    assert!(passed < Duration::from_secs(5), "{passed:?}");
    // Whoever wakes a little early finds nothing and waits on.
    while claim(harness.hot(), 10).await != [next] {
        let again = waited(harness, LONG).await;
        assert!(again < Duration::from_secs(5), "{again:?}");
    }
}

/// What another process schedules while this one waits, after a moment.
async fn wakes(harness: &dyn HotHarness, in_ms: i64) -> Duration {
    let other = harness.another_process().await;
    let schedule = async {
        for _ in 0..10 {
            harness.elapse(Duration::from_millis(30)).await;
            tokio::task::yield_now().await;
        }
        set(&other, new_order(), moment(harness, in_ms).await).await;
    };
    let wait = waited(harness, LONG);
    let (passed, ()) = join!(wait, schedule);
    passed
}

async fn waiting_ends_when_something_earlier_is_scheduled(harness: &dyn HotHarness) {
    scheduled(harness, 60_000).await;
    let passed = wakes(harness, 40_000).await;
    assert!(passed < Duration::from_secs(10), "{passed:?}");
}

async fn waiting_ends_when_something_is_scheduled_at_all(harness: &dyn HotHarness) {
    let passed = wakes(harness, 60_000).await;
    assert!(passed < Duration::from_secs(10), "{passed:?}");
}

async fn waiting_ends_after_its_time(harness: &dyn HotHarness) {
    scheduled(harness, 60_000).await;
    let passed = waited(harness, SHORT).await;
    assert!(passed < Duration::from_secs(5), "{passed:?}");
    assert!(passed >= SHORT / 2, "{passed:?}: not at once");
}

/// Or every other worker spins while one of them works.
async fn claimed_orders_end_no_wait(harness: &dyn HotHarness) {
    scheduled(harness, -10).await;
    assert_eq!(claim(harness.hot(), 10).await.len(), 1);
    let passed = waited(harness, SHORT).await;
    assert!(passed >= SHORT / 2, "{passed:?}: not at once");
}

async fn a_wiped_queue_is_empty_and_goes_on(harness: &dyn HotHarness) {
    let hot = harness.hot();
    scheduled(harness, -10).await;
    harness.harm(super::Harm::Wipe).await;
    assert_eq!(claim(hot, 10).await, []);
    let order = scheduled(harness, -10).await;
    assert_eq!(claim(hot, 10).await, [order]);
}

//! `Notifier` and `NoticeFeed`: whoever follows an order is woken.

use std::time::Duration;

use seckill_application::ports::{Following, HotPath};
use seckill_domain::{
    BuyerId, Event, EventId, EventKind, NewEvent, OrderId, OrderStatus, VoucherId,
};

use super::passing::answer_within;
use super::stall::new_order;
use super::{HotHarness, promises};

promises! { notices over dyn HotHarness:
    whoever_follows_an_order_is_woken,
    a_process_hears_itself,
    all_who_follow_an_order_are_woken,
    nobody_is_woken_for_another_order,
    what_happens_between_two_waits_is_not_missed,
    one_who_was_woken_waits_for_what_comes_next,
    one_who_stops_takes_nothing_from_the_others,
    what_nobody_follows_is_told_to_nobody,
    five_hundred_notices_fit_a_call,
    a_notice_may_be_repeated,
}

const SOON: Duration = Duration::from_secs(10);
const A_WHILE: Duration = Duration::from_millis(400);

fn event(order: OrderId, number: u64) -> Event {
    let what = NewEvent {
        kind: EventKind::Order(OrderStatus::Paid),
        voucher: VoucherId::new(9_007_199_254_740_993),
        order: Some((order, BuyerId::new(18_446_744_073_709_551_615))),
    };
    Event {
        id: EventId::new(number),
        what,
        at: seckill_domain::Timestamp::from_millis(1_796_000_000_000),
    }
}

async fn tell(hot: &HotPath, order: OrderId) {
    hot.notifier
        .notify(&[event(order, 9_007_199_254_740_993)])
        .await
        .unwrap();
}

async fn follow(hot: &HotPath, order: OrderId) -> Box<dyn Following> {
    hot.feed.follow(order).await.unwrap()
}

async fn is_woken(harness: &dyn HotHarness, follower: &mut dyn Following) -> bool {
    answer_within(harness, SOON, follower.changed())
        .await
        .is_some()
}

async fn sleeps(harness: &dyn HotHarness, follower: &mut dyn Following) -> bool {
    answer_within(harness, A_WHILE, follower.changed())
        .await
        .is_none()
}

async fn whoever_follows_an_order_is_woken(harness: &dyn HotHarness) {
    let other = harness.another_process().await;
    let order = new_order();
    let mut follower = follow(&other, order).await;
    assert!(sleeps(harness, &mut *follower).await);
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *follower).await);
}

async fn a_process_hears_itself(harness: &dyn HotHarness) {
    let order = new_order();
    let mut follower = follow(harness.hot(), order).await;
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *follower).await);
}

async fn all_who_follow_an_order_are_woken(harness: &dyn HotHarness) {
    let other = harness.another_process().await;
    let order = new_order();
    let mut followers = [
        follow(harness.hot(), order).await,
        follow(harness.hot(), order).await,
        follow(&other, order).await,
    ];
    tell(harness.hot(), order).await;
    for follower in &mut followers {
        assert!(is_woken(harness, &mut **follower).await);
    }
}

async fn nobody_is_woken_for_another_order(harness: &dyn HotHarness) {
    let mut follower = follow(harness.hot(), new_order()).await;
    tell(harness.hot(), new_order()).await;
    assert!(sleeps(harness, &mut *follower).await);
}

/// Follow, read, wait: what happens after the read wakes, however long the read took.
async fn what_happens_between_two_waits_is_not_missed(harness: &dyn HotHarness) {
    let order = new_order();
    let mut follower = follow(harness.hot(), order).await;
    for _ in 0..3 {
        tell(harness.hot(), order).await;
        harness.elapse(Duration::from_millis(50)).await;
        assert!(is_woken(harness, &mut *follower).await);
    }
}

async fn one_who_was_woken_waits_for_what_comes_next(harness: &dyn HotHarness) {
    let order = new_order();
    let mut follower = follow(harness.hot(), order).await;
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *follower).await);
    assert!(sleeps(harness, &mut *follower).await);
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *follower).await);
}

async fn one_who_stops_takes_nothing_from_the_others(harness: &dyn HotHarness) {
    let order = new_order();
    let stops = follow(harness.hot(), order).await;
    let mut stays = follow(harness.hot(), order).await;
    drop(stops);
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *stays).await);
    drop(stays);
    let mut comes_back = follow(harness.hot(), order).await;
    tell(harness.hot(), order).await;
    assert!(is_woken(harness, &mut *comes_back).await);
}

async fn what_nobody_follows_is_told_to_nobody(harness: &dyn HotHarness) {
    let of_voucher = Event {
        what: NewEvent::of_voucher(VoucherId::new(1), EventKind::VoucherPaused),
        ..event(new_order(), 1)
    };
    let events = [of_voucher, event(new_order(), 2)];
    harness.hot().notifier.notify(&events).await.unwrap();
    harness.hot().notifier.notify(&[]).await.unwrap();
}

async fn five_hundred_notices_fit_a_call(harness: &dyn HotHarness) {
    let events: Vec<Event> = (1..=500).map(|number| event(new_order(), number)).collect();
    let mut followers = Vec::new();
    for of in [0, 250, 499] {
        let (order, _) = events[of].what.order.expect("an order");
        followers.push(follow(harness.hot(), order).await);
    }
    harness.hot().notifier.notify(&events).await.unwrap();
    for follower in &mut followers {
        assert!(is_woken(harness, &mut **follower).await);
    }
}

async fn a_notice_may_be_repeated(harness: &dyn HotHarness) {
    let order = new_order();
    let mut follower = follow(harness.hot(), order).await;
    let again = [event(order, 7); 2];
    harness.hot().notifier.notify(&again).await.unwrap();
    harness.hot().notifier.notify(&again).await.unwrap();
    assert!(is_woken(harness, &mut *follower).await);
}

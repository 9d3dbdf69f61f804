//! Events leave the outbox, and whoever follows an order hears of each exactly once.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use async_trait::async_trait;
use futures::FutureExt;
use seckill_application::ports::{Clock as _, LeaseOwner, Notifier};
use seckill_application::{Fault, PublishEvents, SteerCommand};
use seckill_domain::{Event, EventId, EventKind, OrderId, OrderStatus};
use seckill_tests::matrix::Row;

use crate::world::{MINUTE, MS, Offer, SECOND, World, buyer, payment};

fn events(world: &World, order: OrderId, after: EventId) -> Vec<Event> {
    world.alone(world.follow.events(order, after)).unwrap()
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.what.kind).collect()
}

fn unpublished(world: &World) -> u64 {
    world.alone(world.ledger.events.unpublished()).unwrap()
}

fn published(world: &World, owner: &str) -> usize {
    world.alone(world.publisher(owner).run()).unwrap()
}

#[test]
fn a_promoted_buyer_is_told() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let waits = world.waiting(voucher, 2, 1);
    while published(&world, "relay") > 0 {}
    let (view, mut following) = world
        .alone(world.follow.follow(waits, buyer(2)))
        .unwrap()
        .expect("his order");
    assert_eq!(view.position, Some(1));
    assert!(following.changed().now_or_never().is_none());
    world.run(world.cancel.run(first, buyer(1))).unwrap();
    world.settle();
    assert!(published(&world, "relay") > 0);
    assert!(following.changed().now_or_never().is_some());
    let expected = [EventKind::Order(OrderStatus::Waiting), EventKind::Promoted];
    assert_eq!(kinds(&events(&world, waits, EventId::default())), expected);
    let stranger = world.alone(world.follow.follow(waits, buyer(1))).unwrap();
    assert!(stranger.is_none());
}

#[test]
fn whoever_reconnects_hears_what_he_missed_exactly_once() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let waits = world.waiting(voucher, 2, 1);
    let seen = events(&world, waits, EventId::default());
    let last = seen.last().unwrap().id;
    // Disconnected.
    world.run(world.cancel.run(first, buyer(1))).unwrap();
    world.settle();
    world
        .run(world.pay.run(waits, buyer(2), &payment("pay-1")))
        .unwrap();
    while published(&world, "relay") > 0 {}
    let missed = events(&world, waits, last);
    let expected = [EventKind::Promoted, EventKind::Order(OrderStatus::Paid)];
    assert_eq!(kinds(&missed), expected);
    let last = missed.last().unwrap().id;
    assert_eq!(events(&world, waits, last), []);
    assert_eq!(unpublished(&world), 0);
    assert_eq!(events(&world, waits, EventId::default()).len(), 3);
}

/// A notice that is lost only delays: whoever follows also looks from time to time.
#[test]
fn a_lost_notice_loses_no_event() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1));
    let order = world.bought(voucher, 1, 1);
    let (_, mut following) = world
        .alone(world.follow.follow(order, buyer(1)))
        .unwrap()
        .expect("his order");
    world.store.mute_notices(true);
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    while published(&world, "relay") > 0 {}
    assert!(following.changed().now_or_never().is_none());
    assert_eq!(events(&world, order, EventId::default()).len(), 2);
}

#[test]
fn a_relay_that_dies_in_the_middle_is_taken_over_and_nothing_is_skipped() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let all = unpublished(&world);
    assert!(all >= 2, "the voucher's and the order's");
    // Claimed and not told; told and not written down.
    world.store.chaos().fail_before("notifier.notify", 1);
    world.alone(world.publisher("a").run()).unwrap_err();
    assert_eq!(published(&world, "b"), 0, "held");
    world.clock.advance(11 * SECOND);
    world.book.chaos().fail_before("event_outbox.published", 1);
    world.alone(world.publisher("b").run()).unwrap_err();
    let (_, mut following) = world
        .alone(world.follow.follow(order, buyer(1)))
        .unwrap()
        .expect("his order");
    world.clock.advance(11 * SECOND);
    assert_eq!(published(&world, "c") as u64, all);
    assert!(following.changed().now_or_never().is_some(), "told again");
    assert_eq!(unpublished(&world), 0);
}

/// Takes its time, so that the other relay works meanwhile, and remembers what it has told.
#[derive(Default)]
struct Slow(Mutex<Vec<EventId>>);

#[async_trait]
impl Notifier for Slow {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        let mut waits = 3;
        poll_fn(|context| {
            waits -= 1;
            context.waker().wake_by_ref();
            if waits > 0 {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
        self.0.lock().unwrap().extend(events.iter().map(|it| it.id));
        Ok(())
    }
}

/// Each holds events that it has not told when the other one looks for some.
#[test]
fn two_relays_at_once_tell_each_event_once() {
    let world = World::new();
    let voucher = world.sale(Offer::of(3_000));
    for number in 1..=1_400 {
        world.granted(voucher, number, 1);
    }
    world.settle();
    let all = unpublished(&world);
    let mut row = Row::begin();
    row.struck("two relays at once", all);
    let told = Arc::new(Slow::default());
    let relay = |owner: &str| {
        let owner = LeaseOwner(owner.to_owned());
        PublishEvents::new(&world.ledger, vec![told.clone()], owner)
    };
    let (a, b) = (relay("a"), relay("b"));
    let rounds = async {
        while world.ledger.events.unpublished().await.unwrap() > 0 {
            let (one, two) = futures::join!(a.run(), b.run());
            assert!(one.unwrap() > 0);
            two.unwrap();
        }
    };
    world.alone(rounds);
    let told = told.0.lock().unwrap();
    let once: BTreeSet<EventId> = told.iter().copied().collect();
    assert_eq!((told.len(), once.len() as u64), (once.len(), all));
    row.ended(&format!("{all} events, each told once"));
}

#[test]
fn events_are_kept_for_a_day() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    while published(&world, "relay") > 0 {}
    world.skip(23 * 60 * MINUTE);
    let prune = |world: &World| world.alone(world.publisher("relay").prune()).unwrap();
    assert_eq!(prune(&world), 0);
    world.skip(61 * MINUTE);
    assert!(prune(&world) > 0);
    assert_eq!(events(&world, order, EventId::default()), []);
}

#[test]
fn every_step_of_an_order_and_of_a_voucher_leaves_an_event() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let [cancelled, expired, refunded] = [1, 2, 3].map(|it| world.bought(voucher, it, 1));
    world.run(world.cancel.run(cancelled, buyer(1))).unwrap();
    world
        .run(world.pay.run(refunded, buyer(3), &payment("pay-1")))
        .unwrap();
    world.run(world.refund.run(refunded)).unwrap();
    world.pass(15 * MINUTE);
    world.run(world.expire.sweep()).unwrap();
    let of = |order| kinds(&events(&world, order, EventId::default()));
    let [pending, gone, over, paid, back] = [
        OrderStatus::PendingPayment,
        OrderStatus::Cancelled,
        OrderStatus::Expired,
        OrderStatus::Paid,
        OrderStatus::Refunded,
    ]
    .map(EventKind::Order);
    assert_eq!(of(cancelled), [pending, gone]);
    assert_eq!(of(expired), [pending, over]);
    let recorded = EventKind::RefundRecorded;
    assert_eq!(of(refunded), [pending, paid, back, recorded]);
    for command in [
        SteerCommand::Pause,
        SteerCommand::Resume,
        SteerCommand::Close,
    ] {
        world.steered(voucher, command);
    }
    let owner = LeaseOwner("relay".to_owned());
    let claim = world.ledger.events.claim(&owner, 500, MS);
    let all = world.alone(claim).unwrap();
    let of_voucher = all.iter().filter(|event| event.what.order.is_none());
    let of_voucher: Vec<EventKind> = of_voucher.map(|event| event.what.kind).collect();
    let expected = [
        EventKind::VoucherPublished,
        EventKind::VoucherPaused,
        EventKind::VoucherResumed,
        EventKind::VoucherClosed,
    ];
    assert_eq!(of_voucher, expected);
    assert!(all.iter().all(|event| event.at <= world.clock.now()));
}

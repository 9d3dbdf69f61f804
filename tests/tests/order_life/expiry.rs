//! Payment windows end: by the delay queue, by the sweep, and once.

use std::sync::Barrier;
use std::time::Duration;

use seckill_application::{ExpireOrders, PayReply};
use seckill_domain::{Forbidden, OrderId, OrderStatus, VoucherId};
use seckill_tests::matrix::Row;

use crate::world::{MINUTE, MS, Offer, SECOND, World, buyer, payment};

const WINDOW: Duration = Duration::from_mins(15);

/// The delay queue's worker, for a while. Returns how many orders it handled.
fn on_time(world: &World, time: Duration) -> usize {
    let end = world.clock_ms() + i64::try_from(time.as_millis()).unwrap();
    world.run(async {
        let mut handled = 0;
        while world.clock_ms() < end {
            world.hot.delays.wait(SECOND).await.unwrap();
            handled += world.expire.on_time().await.unwrap();
        }
        handled
    })
}

/// The sweep, once a second, for a while.
fn sweeping(world: &World, time: Duration) -> usize {
    let end = world.clock_ms() + i64::try_from(time.as_millis()).unwrap();
    world.run(async {
        use seckill_application::ports::Clock;
        let mut expired = 0;
        while world.clock_ms() < end {
            loop {
                let batch = world.expire.sweep().await.unwrap();
                expired += batch;
                if batch < ExpireOrders::BATCH_MAX {
                    break;
                }
            }
            world.clock.sleep(SECOND).await;
        }
        expired
    })
}

fn three_bought(world: &World) -> (VoucherId, [OrderId; 3]) {
    let voucher = world.sale(Offer::of(10));
    let orders = [1, 2, 3].map(|number| world.bought(voucher, number, 1));
    (voucher, orders)
}

#[test]
fn the_delay_queue_alone_expires_orders_on_time() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    world
        .run(world.pay.run(orders[1], buyer(2), &payment("pay-1")))
        .unwrap();
    on_time(&world, WINDOW.saturating_sub(SECOND));
    let due = world.order(orders[0]).expires_at.unwrap().as_millis();
    assert!(world.clock_ms() < due + 2_000);
    on_time(&world, 2 * SECOND);
    let expected = [
        OrderStatus::Expired,
        OrderStatus::Paid,
        OrderStatus::Expired,
    ];
    assert_eq!(world.statuses(&orders), expected);
    let scheduled = world.alone(world.hot.delays.scheduled()).unwrap();
    assert_eq!(scheduled, 0, "also of the paid one");
    assert_eq!(world.free(voucher), 9);
    world.assert_sound(voucher);
}

/// A loss of everything takes the queue with it; whoever loads the sale again fills it.
#[test]
fn the_delay_queue_alone_expires_what_was_sold_before_everything_was_lost() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    world
        .run(world.pay.run(orders[1], buyer(2), &payment("pay-1")))
        .unwrap();
    world.store.wipe();
    let scheduled = || world.alone(world.hot.delays.scheduled()).unwrap();
    assert_eq!(scheduled(), 0);
    world.wanted.request(voucher);
    world.settle();
    assert_eq!(scheduled(), 2, "not of the paid one");
    // Loaded once more, and scheduled twice.
    world.alone(world.hot.loader.unload(voucher)).unwrap();
    world.wanted.request(voucher);
    world.settle();
    assert_eq!(scheduled(), 2);
    on_time(&world, WINDOW + SECOND);
    let expired = OrderStatus::Expired;
    let expected = [expired, OrderStatus::Paid, expired];
    assert_eq!(world.statuses(&orders), expected);
    assert_eq!(world.free(voucher), 9);
    world.assert_sound(voucher);
}

/// Stands for: the timer is set outside the transaction, loses what it has, or gives it out before
/// it is handled (hole 11, B27, 2.19, 2.24).
#[test]
fn the_sweep_alone_expires_orders_in_time() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    assert!(world.store.lose_delays());
    world.pass(WINDOW.saturating_sub(5 * SECOND));
    assert_eq!(sweeping(&world, 3 * SECOND), 0);
    assert_eq!(sweeping(&world, 5 * SECOND), 3);
    assert_eq!(world.statuses(&orders), [OrderStatus::Expired; 3]);
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

#[test]
fn an_order_expires_within_two_seconds_of_its_time() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).payment_window(30 * SECOND));
    let order = world.bought(voucher, 1, 1);
    let due = world.order(order).expires_at.unwrap().as_millis();
    let expired_at = world.run(async {
        loop {
            world.hot.delays.wait(SECOND).await.unwrap();
            world.expire.on_time().await.unwrap();
            let stages = world.ledger.ledger.stages(&[order]).await.unwrap();
            if stages[0].1 == OrderStatus::Expired {
                return world.clock_ms();
            }
        }
    });
    assert!((due..due + 2_000).contains(&expired_at));
}

#[test]
fn both_at_once_expire_an_order_once() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    world.pass(WINDOW);
    let both = async {
        let queue = world.expire.on_time();
        let sweep = world.expire.sweep();
        futures::join!(queue, sweep)
    };
    let (queue, sweep) = world.run(both);
    assert_eq!((queue.unwrap(), sweep.unwrap()), (3, 0));
    assert_eq!(world.statuses(&orders), [OrderStatus::Expired; 3]);
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

#[test]
fn what_the_queue_believes_due_too_early_comes_again_at_its_time() {
    let world = World::new();
    let (_, orders) = three_bought(&world);
    let early = orders.map(|order| (order, crate::world::START));
    world.alone(world.hot.delays.schedule(&early)).unwrap();
    assert_eq!(world.run(world.expire.on_time()).unwrap(), 3);
    assert_eq!(world.statuses(&orders), [OrderStatus::PendingPayment; 3]);
    assert_eq!(world.run(world.expire.on_time()).unwrap(), 0);
    on_time(&world, WINDOW + SECOND);
    assert_eq!(world.statuses(&orders), [OrderStatus::Expired; 3]);
}

#[test]
fn a_worker_that_dies_with_its_claims_loses_none() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    world.pass(WINDOW);
    // Claimed, and then the ledger does not answer.
    world.book.chaos().fail_before("ledger.begin", 1);
    world.run(world.expire.on_time()).unwrap_err();
    assert_eq!(world.run(world.expire.on_time()).unwrap(), 0, "held");
    world.pass(11 * SECOND);
    assert_eq!(world.run(world.expire.on_time()).unwrap(), 3);
    assert_eq!(world.statuses(&orders), [OrderStatus::Expired; 3]);
    world.assert_sound(voucher);
}

#[test]
fn an_expiry_whose_answer_is_lost_gives_units_back_once() {
    let world = World::new();
    let (voucher, orders) = three_bought(&world);
    world.pass(WINDOW);
    world.book.chaos().fail_after("unit_of_work.commit", 1);
    world.run(world.expire.sweep()).unwrap_err();
    assert_eq!(world.run(world.expire.sweep()).unwrap(), 0);
    world.pass(11 * SECOND);
    world.run(world.expire.on_time()).unwrap();
    assert_eq!(world.statuses(&orders), [OrderStatus::Expired; 3]);
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

#[test]
fn orders_that_are_due_together_expire_in_batches() {
    let world = World::new();
    let count = 3_000_u64;
    let voucher = world.sale(Offer::of(4_000));
    world.run(async {
        for number in 1..=count {
            let request = crate::world::request(voucher, number, 1);
            world.purchase.run(request).await.unwrap();
        }
    });
    world.settle();
    world.pass(WINDOW + MINUTE);
    let mut calls = 0;
    let mut expired = 0;
    loop {
        let batch = world.run(world.expire.sweep()).unwrap();
        calls += 1;
        expired += batch;
        if batch < ExpireOrders::BATCH_MAX {
            break;
        }
    }
    assert_eq!(expired as u64, count);
    assert!(calls <= 7, "{calls} transactions");
    assert_eq!(world.free(voucher), 4_000);
    world.assert_sound(voucher);
}

/// Pay and expire at the very moment, on threads of their own: each order is exactly one of the
/// two, the buyer is told the truth, and stock returns exactly for the expired.
#[test]
fn a_payment_and_an_expiry_at_one_moment_are_one_of_the_two() {
    const PAIRS: u64 = 10_000;
    let mut row = Row::begin();
    let world = World::new();
    let voucher = world.sale(Offer::of(12_000));
    let mut orders = Vec::new();
    for number in 1..=PAIRS {
        orders.push(world.granted(voucher, number, 1));
        // Written one by one, so that no two are due together.
        world.pass(5 * MS);
    }
    world.settle();
    let due: Vec<i64> = orders
        .iter()
        .map(|order| world.order(*order).expires_at.unwrap().as_millis())
        .collect();
    assert!(due.is_sorted_by(|a, b| a < b), "each has its own moment");
    // Each time these two, and nothing else.
    row.struck("a payment and a sweep at one moment", 2);
    let barrier = Barrier::new(3);
    let mut paid = 0;
    std::thread::scope(|scope| {
        let payer = scope.spawn(|| {
            let mut told = Vec::new();
            for (number, order) in (1..).zip(&orders) {
                let id = payment(&format!("pay-{number}"));
                barrier.wait();
                told.push(block_on(world.pay.run(*order, buyer(number), &id)).unwrap());
                barrier.wait();
            }
            told
        });
        scope.spawn(|| {
            for _ in &orders {
                barrier.wait();
                while block_on(world.expire.sweep()).unwrap() > 0 {}
                barrier.wait();
            }
        });
        for moment in &due {
            let before = moment - 1 - world.clock_ms();
            world.clock.advance(MS * u32::try_from(before).unwrap());
            barrier.wait();
            world.clock.advance(MS);
            barrier.wait();
        }
        for (reply, order) in payer.join().unwrap().into_iter().zip(&orders) {
            match (reply, world.status(*order)) {
                (PayReply::Paid(_), OrderStatus::Paid) => paid += 1,
                (PayReply::Refused(Forbidden::Expired), status) => {
                    // Refused in the last moment before the sweep had looked.
                    assert!(matches!(
                        status,
                        OrderStatus::Expired | OrderStatus::PendingPayment
                    ));
                }
                other => panic!("{order}: {other:?}"),
            }
        }
    });
    while world.run(world.expire.sweep()).unwrap() > 0 {}
    let expired = orders
        .iter()
        .filter(|it| world.status(**it) == OrderStatus::Expired);
    assert_eq!(expired.count() as u64, PAIRS - paid);
    assert!((1..PAIRS).contains(&paid), "{paid} paid: no race was run");
    world.settle();
    assert_eq!(u64::from(world.free(voucher)), 12_000 - paid);
    world.assert_sound(voucher);
    row.ended(&format!("{paid} of {PAIRS} paid, the others expired"));
}

/// Drives some work on this thread; nothing in it waits for the clock.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}

//! A Redis that has lost decisions, and whose clock is behind that of the one before it.

use std::time::Duration;

use seckill_application::Purchase;
use seckill_application::ports::{Entry, StreamReply};
use seckill_domain::{Claim, Decision, OrderId, OrderStatus, Sequence, VoucherId};

use crate::world::{MINUTE, Offer, PARTITION, SECOND, World, buyer};

const STEP_BACK_MS: i64 = 3_000;

/// A sale whose ledger has an order, and a Redis that has lost it since and whose clock is behind.
fn fallen_behind() -> (World, VoucherId, OrderId) {
    let world = World::that_remembers(20);
    let voucher = world.sale(Offer::of(10));
    // The sale is open, also for a clock that is behind.
    world.pass(MINUTE);
    let applied = world.bought(voucher, 1, 1);
    let mut writes = 0;
    while world.free(voucher) < 10 {
        assert_eq!(world.store.lose_last(1), 1);
        writes += 1;
        assert!(writes < 20, "the grant is not among the latest writes");
    }
    world.clock.step_wall(-STEP_BACK_MS);
    (world, voucher, applied)
}

fn assert_nothing_is_lost(world: &World, voucher: VoucherId, orders: [OrderId; 2]) {
    world.settle();
    for order in orders {
        assert_eq!(world.status(order), OrderStatus::PendingPayment);
    }
    assert_eq!(world.free(voucher), 8);
    world.assert_sound(voucher);
}

/// What it decides then stands before the ledger's position in the stream, and under a number that the
/// ledger has applied: it looks as if it were known.
#[test]
fn what_is_decided_before_the_ledgers_position_is_not_lost() {
    let (world, voucher, applied) = fallen_behind();
    let order = world.granted(voucher, 2, 1);
    assert_nothing_is_lost(&world, voucher, [applied, order]);
}

/// Nor if whoever was given it has gone, and another takes over: the writer at
/// work, or a new one.
#[test]
fn what_is_taken_over_before_the_ledgers_position_is_not_lost() {
    for replaced in [false, true] {
        let (world, voucher, applied) = fallen_behind();
        let request = crate::world::request(voucher, 2, 1);
        let asked = world.alone(world.purchase.run(request)).unwrap();
        let Purchase::Granted { order, .. } = asked else {
            panic!("{asked:?}");
        };
        let stream = &world.hot.stream;
        let given =
            world.alone(stream.read_new(PARTITION, world.epoch(), "dead", 10, Duration::ZERO));
        let StreamReply::Entries(given) = given.unwrap() else {
            panic!("no stream");
        };
        assert_eq!(given.len(), 1);
        if replaced {
            world.replace_writer("another");
        }
        assert_nothing_is_lost(&world, voucher, [applied, order]);
    }
}

/// Nor does an entry that somebody has numbered beyond everything, and whose acknowledgement is lost.
#[test]
fn what_was_parked_as_foreign_begins_no_new_life() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let epoch = world.epoch();
    let forged = Entry {
        epoch,
        first: Sequence::new(4_711),
        decisions: vec![Decision::Lost(Claim {
            order,
            voucher,
            buyer: buyer(1),
            quantity: 1,
            key: None,
        })],
    };
    assert!(world.store.plant_forgery(PARTITION, forged).is_some());
    let chaos = world.store.chaos();
    chaos.fail_before("admission_stream.ack", 1_000);
    world.pass(SECOND);
    assert!(chaos.struck() > 0);
    chaos.heal();
    world.replace_writer("another");
    world.settle();
    let parked = world.alone(world.parked.list(true, None, 10)).unwrap();
    assert_eq!(parked.items.len(), 1);
    assert_eq!(world.epoch(), epoch);
    world.bought(voucher, 2, 1);
    world.assert_sound(voucher);
}

/// And what really is known is acknowledged without ado: no new life begins for it.
#[test]
fn what_is_delivered_again_begins_no_new_life() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let epoch = world.epoch();
    world.store.chaos().fail_before("admission_stream.ack", 1);
    let later = world.bought(voucher, 2, 1);
    world.settle();
    assert_eq!(world.epoch(), epoch);
    for bought in [order, later] {
        assert_eq!(world.status(bought), OrderStatus::PendingPayment);
    }
    world.assert_sound(voucher);
}

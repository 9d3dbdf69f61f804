//! A Redis that has lost decisions, and whose clock is behind that of the one before it.

use seckill_domain::OrderStatus;

use crate::world::{MINUTE, Offer, World};

const STEP_BACK_MS: i64 = 3_000;

/// What it decides then stands before the ledger's position in the stream, and under a number that the
/// ledger has applied: it looks as if it were known.
#[test]
fn what_is_decided_before_the_ledgers_position_is_not_lost() {
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
    let order = world.granted(voucher, 2, 1);
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    assert_eq!(world.status(applied), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 8);
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

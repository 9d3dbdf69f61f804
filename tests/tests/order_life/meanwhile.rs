//! What happens between two looks of somebody who has seen the first: between the reading of an order
//! and the leaving of its place, between what a reconciliation reads of gate and ledger.

use std::sync::Arc;

use seckill_application::ports::{HotPath, LeaseOwner};
use seckill_application::{CancelOrder, CancelReply, Reconcile, SteerCommand};
use seckill_domain::{Forbidden, OrderId, OrderStatus, VoucherId};
use seckill_tests::controls::{Meanwhile, TamperedGate};

use crate::reconcile::{EVERY_MINUTE, FULL, finding, held, kinds};
use crate::world::{MS, Offer, World, buyer};

/// A sale of one unit that somebody has, and another who waits for it.
fn waits_for_one() -> (Arc<World>, VoucherId, [OrderId; 2]) {
    let world = Arc::new(World::new());
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let orders = [world.bought(voucher, 1, 1), world.waiting(voucher, 2, 1)];
    (world, voucher, orders)
}

/// The hot store with a gate that lets others in.
fn with_gate(world: &World, change: impl FnOnce(&mut TamperedGate)) -> HotPath {
    let mut gate = TamperedGate::before(world.hot.gate.clone());
    change(&mut gate);
    HotPath {
        gate: Arc::new(gate),
        ..world.hot.clone()
    }
}

/// A reconciliation that looks through this gate.
fn reconcile_at(world: &World, hot: &HotPath) -> Reconcile {
    Reconcile::new(
        hot,
        &world.ledger,
        world.balance.clone(),
        world.relay.clone(),
        world.wanted.clone(),
        world.clock.clone(),
        world.partitions(),
        LeaseOwner("process-1".to_owned()),
    )
}

/// Whoever gives the waiting order up, while the other one gives up the unit that it waits for.
fn who_is_promoted_meanwhile(world: &Arc<World>, first: OrderId) -> CancelOrder {
    let other = world.clone();
    let hot = with_gate(world, |gate| {
        gate.before_leave = Meanwhile::of(async move {
            other.cancel.run(first, buyer(1)).await.unwrap();
        });
    });
    let (orders, relay) = (world.orders.clone(), world.relay.clone());
    CancelOrder::new(&hot, &world.ledger, orders, relay, world.clock.clone())
}

/// He has a unit, which only the gate knows: he is not told that he has none.
#[test]
fn one_who_is_promoted_while_he_gives_up_is_not_told_that_he_left() {
    let (world, voucher, [first, waits]) = waits_for_one();
    let cancel = who_is_promoted_meanwhile(&world, first);
    let reply = world.alone(cancel.run(waits, buyer(2))).unwrap();
    assert_eq!(reply, CancelReply::Refused(Forbidden::Queued));
    world.settle();
    assert_eq!(world.status(waits), OrderStatus::PendingPayment);
    assert_eq!(held(&world, voucher, 2), [waits]);
    world.assert_sound(voucher);
}

/// Once the ledger knows it, he gives up the unit that he has, and it comes back.
#[test]
fn one_who_is_promoted_while_he_gives_up_gives_his_unit_back() {
    let (world, voucher, [first, waits]) = waits_for_one();
    let cancel = who_is_promoted_meanwhile(&world, first);
    let reply = world.run(cancel.run(waits, buyer(2))).unwrap();
    let CancelReply::Cancelled(order) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(order.status(), OrderStatus::Cancelled);
    assert_eq!(order, world.order(waits));
    world.settle();
    assert_eq!(world.free(voucher), 1);
    world.assert_sound(voucher);
}

/// The gate hears of a release just after it was asked who holds units, and the update is forgotten
/// before the ledger is asked what it has released: only a third look sees that nothing is wrong.
#[test]
fn a_release_between_the_looks_at_gate_and_ledger_is_no_difference() {
    let world = Arc::new(World::new());
    let voucher = world.sale(Offer::of(2));
    let order = world.bought(voucher, 1, 1);
    world.store.chaos().fail_before("purchase_gate.follow", 1);
    world.alone(world.cancel.run(order, buyer(1))).unwrap();
    assert_eq!(held(&world, voucher, 1), [order], "it has not heard of it");
    let other = world.clone();
    let hot = with_gate(&world, |gate| {
        gate.after_claimants = Meanwhile::of(async move {
            other.relay.sweep().await.unwrap();
        });
    });
    let reconcile = reconcile_at(&world, &hot);
    let report = world.alone(reconcile.run(EVERY_MINUTE)).unwrap().unwrap();
    assert_eq!(held(&world, voucher, 1), [], "it has heard of it since");
    assert_eq!(kinds(&report.vouchers[0]), []);
    assert_eq!(report.repairs(), 0);
    world.pass(10 * MS);
    assert_eq!(kinds(&finding(&world)), []);
    assert_eq!(world.free(voucher), 2);
    world.assert_sound(voucher);
}

/// A round that began before a sale was retired does not find that the gate has lost it.
#[test]
fn a_sale_that_is_retired_between_the_looks_is_no_difference() {
    let world = Arc::new(World::new());
    let voucher = world.sale(Offer::of(2));
    world.steered(voucher, SteerCommand::Close);
    world.settle();
    assert_eq!(world.alone(world.retire.run()).unwrap(), 0);
    let other = world.clone();
    let hot = with_gate(&world, |gate| {
        gate.after_waiters = Meanwhile::of(async move {
            assert_eq!(other.retire.run().await.unwrap(), 1);
        });
    });
    let round = reconcile_at(&world, &hot);
    let report = world.alone(round.run(FULL)).unwrap().unwrap();
    assert_eq!(report.vouchers, []);
    let found = world.alone(world.ledger.ledger.voucher(voucher)).unwrap();
    assert!(found.unwrap().retired);
}

//! What is done about a refusal: the ledger's of a decision or of a writer, the gate's of an update.

use seckill_application::{Purchase, Relayed, Step};
use seckill_domain::{GateVersion, OrderId, OrderStatus, VoucherId};

use crate::reconcile::{EVERY_MINUTE, held, round};
use crate::world::{Offer, World, buyer, request};

/// A sale whose gate has forgotten a holder, and has granted him a second unit.
fn granted_too_much(world: &World) -> (VoucherId, [OrderId; 2]) {
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    assert!(world.store.drop_holder(voucher, order));
    (voucher, [order, granted_unseen(world, voucher, 1)])
}

/// What nobody has written yet.
fn granted_unseen(world: &World, voucher: VoucherId, number: u64) -> OrderId {
    let asked = world.purchase.run(request(voucher, number, 1));
    match world.alone(asked).unwrap() {
        Purchase::Granted { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

fn assert_loaded_again(world: &World, voucher: VoucherId, [order, refused]: [OrderId; 2]) {
    world.settle();
    assert_eq!(world.status(refused), OrderStatus::Rejected);
    assert_eq!(held(world, voucher, 1), [order], "it knows him again");
    assert_eq!(world.free(voucher), 9, "the unit that it took is back");
    let found = round(world, EVERY_MINUTE).vouchers.remove(0);
    assert_eq!((found.reloads, found.differences), (1, vec![]));
    world.assert_sound(voucher);
}

/// A gate that granted too much knows too little: who holds what, or how much there is.
#[test]
fn a_grant_that_the_ledger_refuses_has_the_sale_loaded_again() {
    let world = World::new();
    let (voucher, orders) = granted_too_much(&world);
    assert_loaded_again(&world, voucher, orders);
}

/// The decision is settled by then, and does not come again.
#[test]
fn a_load_after_a_refusal_that_does_not_get_through_is_tried_again() {
    let world = World::new();
    let (voucher, orders) = granted_too_much(&world);
    let chaos = world.store.chaos();
    chaos.fail_before("gate_loader.unload", 3);
    assert_loaded_again(&world, voucher, orders);
    assert_eq!(chaos.struck(), 3);
}

/// Whether the ledger has an order.
fn is_written(world: &World, order: OrderId) -> bool {
    let stages = world.alone(world.ledger.ledger.stages(&[order]));
    !stages.unwrap().is_empty()
}

/// Another has drawn a higher fence while it had a batch in hand.
#[test]
fn a_writer_that_is_fenced_with_a_batch_in_hand_writes_nothing_more() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let mut fenced = world.slow_writer("fenced");
    let orders = [1, 2].map(|number| granted_unseen(&world, voucher, number));
    assert_eq!(world.alone(fenced.step()).unwrap(), Step::Applied(1));
    world.replace_writer("successor");
    assert_eq!(world.alone(fenced.step()).unwrap(), Step::Fenced);
    let written = orders.map(|order| is_written(&world, order));
    assert_eq!(written, [true, false]);
    world.settle();
    assert!(is_written(&world, orders[1]), "by its successor");
    world.assert_sound(voucher);
}

/// And while it had nothing to do, or began again after a fault.
#[test]
fn a_writer_that_is_fenced_stops_whatever_it_was_doing() {
    for fails in [false, true] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10));
        let mut fenced = world.slow_writer("fenced");
        assert_eq!(world.alone(fenced.step()).unwrap(), Step::Idle);
        if fails {
            granted_unseen(&world, voucher, 1);
            world.book.chaos().fail_before("admission_ledger.apply", 1);
            world.alone(fenced.step()).unwrap_err();
        }
        world.replace_writer("successor");
        let order = fails.then(|| granted_unseen(&world, voucher, 2));
        assert_eq!(world.alone(fenced.step()).unwrap(), Step::Fenced);
        assert!(!order.is_some_and(|order| is_written(&world, order)));
        world.assert_sound(voucher);
    }
}

/// The first of two updates is gone. The relay does not go on with the other one, which would leave
/// out for ever what the first one said.
#[test]
fn a_relay_passes_over_no_update_that_is_missing() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let orders = [1, 2].map(|number| world.bought(voucher, number, 1));
    world.store.chaos().fail_before("purchase_gate.follow", 2);
    for (order, number) in orders.into_iter().zip(1..) {
        world.alone(world.cancel.run(order, buyer(number))).unwrap();
    }
    let updates = &world.ledger.updates;
    let waiting = || world.alone(updates.after(voucher, GateVersion::default(), 10));
    let [first, second] = &waiting().unwrap()[..] else {
        panic!("an update for each");
    };
    world.alone(updates.forget(voucher, first.version)).unwrap();
    let relayed = world.alone(world.relay.run(voucher)).unwrap();
    assert_eq!(relayed, Relayed::NotLoaded);
    assert_eq!(waiting().unwrap(), std::slice::from_ref(second));
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

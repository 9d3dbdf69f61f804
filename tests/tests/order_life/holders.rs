//! Holders that are not what the ledger has: each is found and put right by loading the sale again.

use seckill_application::ports::{DifferenceKind, VoucherFinding};
use seckill_domain::{Held, OrderId, VoucherId};

use crate::reconcile::{DRY, assert_one, finding, held, kinds, mended, round};
use crate::world::{Offer, World, buyer};

fn plant(world: &World, voucher: VoucherId, number: u64, order: OrderId, quantity: u32) {
    let held = Held {
        order,
        quantity,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, buyer(number), held));
}

/// So many units are free, and this buyer holds nothing and buys.
fn assert_served(world: &World, voucher: VoucherId, number: u64, free: u32) {
    assert_eq!(world.free(voucher), free);
    assert_eq!(held(world, voucher, number), []);
    world.bought(voucher, number, 1);
    world.assert_sound(voucher);
}

/// Whether or not the gate took a unit for it.
#[test]
fn a_stranger_does_not_hold_anothers_order() {
    for taken in [0, 1] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10));
        let order = world.bought(voucher, 1, 1);
        plant(&world, voucher, 9, order, 1);
        assert!(world.store.shift_free(voucher, -taken));
        let dry = round(&world, DRY).vouchers.remove(0);
        assert_one(&dry, DifferenceKind::NotReleased, order, false);
        let found = mended(&world, voucher);
        assert_one(&found, DifferenceKind::NotReleased, order, true);
        assert_eq!(found.differences[0].claim.buyer, buyer(9));
        assert_eq!(held(&world, voucher, 1), [order], "it is his");
        assert_served(&world, voucher, 9, 9);
    }
}

#[test]
fn a_stranger_does_not_hold_an_order_that_is_over() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    plant(&world, voucher, 9, order, 1);
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::NotReleased, order, true);
    assert_served(&world, voucher, 9, 10);
}

#[test]
fn an_order_of_another_sale_holds_nothing_here() {
    let world = World::new();
    let [voucher, other] = [world.sale(Offer::of(10)), world.sale(Offer::of(10))];
    let order = world.bought(other, 9, 1);
    plant(&world, voucher, 9, order, 1);
    let report = round(&world, crate::reconcile::EVERY_MINUTE);
    let of = |it: &&VoucherFinding| it.voucher == voucher;
    let found = report.vouchers.iter().find(of).unwrap();
    assert_one(found, DifferenceKind::NotReleased, order, true);
    assert_eq!(report.differences(), 1);
    world.settle();
    assert_eq!(round(&world, crate::reconcile::EVERY_MINUTE).findings(), 0);
    assert_eq!(held(&world, other, 9), [order]);
    assert_served(&world, voucher, 9, 10);
}

#[test]
fn a_holding_that_was_moved_goes_back() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    assert!(world.store.drop_holder(voucher, order));
    plant(&world, voucher, 9, order, 1);
    let mut found = kinds(&mended(&world, voucher));
    found.sort_by_key(|kind| format!("{kind:?}"));
    let expected = [DifferenceKind::HolderGone, DifferenceKind::NotReleased];
    assert_eq!(found, expected);
    assert_eq!(held(&world, voucher, 1), [order]);
    assert_served(&world, voucher, 9, 9);
}

#[test]
fn a_holding_of_another_quantity_is_put_right() {
    for (quantity, taken) in [(1, 0), (3, 0), (3, 1)] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10).limit(3));
        let order = world.bought(voucher, 1, 2);
        assert!(world.store.drop_holder(voucher, order));
        plant(&world, voucher, 1, order, quantity);
        assert!(world.store.shift_free(voucher, -taken));
        let found = mended(&world, voucher);
        assert_one(&found, DifferenceKind::HolderGone, order, true);
        world.run(world.cancel.run(order, buyer(1))).unwrap();
        world.settle();
        assert_served(&world, voucher, 1, 10);
    }
}

/// A load that did not help is not tried again in each round.
#[test]
fn a_sale_is_loaded_once_for_what_comes_again() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    for round in 0..3 {
        plant(&world, voucher, 9, order, 1);
        assert!(
            world
                .store
                .shift_free(voucher, if round < 2 { -1 } else { 0 })
        );
        let found = finding(&world);
        assert_one(&found, DifferenceKind::NotReleased, order, round == 0);
        world.settle();
        assert_eq!(held(&world, voucher, 9).is_empty(), round == 0);
    }
}

/// One after the other, each is put right, and neither is taken for the other coming again.
#[test]
fn another_stranger_by_the_same_order_is_another_difference() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    for number in [8, 9] {
        plant(&world, voucher, number, order, 1);
        let found = finding(&world);
        assert_one(&found, DifferenceKind::NotReleased, order, true);
        assert_eq!(found.differences[0].claim.buyer, buyer(number));
        world.settle();
        assert_eq!(held(&world, voucher, number), []);
    }
    assert_eq!(held(&world, voucher, 1), [order]);
    assert_served(&world, voucher, 9, 9);
}

//! Repairs that are cut off, and what a repair must not lose.

use seckill_application::ports::DifferenceKind;
use seckill_domain::{Claim, Held};

use crate::reconcile::{assert_one, finding, kinds, mended};
use crate::world::{Offer, World, buyer};

/// Found, repaired, and cut off before the gate has followed: the next round does not repair again.
#[test]
fn a_round_that_is_cut_off_after_its_repair_is_taken_up() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    let back = Held {
        order,
        quantity: 1,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, buyer(1), back));
    assert!(world.store.shift_free(voucher, -1));
    world.store.chaos().fail_before("purchase_gate.follow", 1);
    let found = finding(&world);
    assert_one(&found, DifferenceKind::NotReleased, order, true);
    assert_eq!(kinds(&finding(&world)), [], "its release is on the way");
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

/// Claims as reconciliation sees them carry no key; repairs must not need one.
#[test]
fn a_buyer_with_a_key_keeps_it_through_a_repair() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(2));
    let key: seckill_domain::IdempotencyKey = "the-key".parse().unwrap();
    let ask = || {
        let request = seckill_application::PurchaseRequest {
            key: Some(key.clone()),
            ..crate::world::request(voucher, 1, 1)
        };
        world.run(world.purchase.run(request)).unwrap()
    };
    let seckill_application::Purchase::Granted { order, .. } = ask() else {
        panic!("not granted");
    };
    world.settle();
    assert!(world.store.drop_holder(voucher, order));
    let found = mended(&world, voucher);
    let claim = Claim {
        key: None,
        ..found.differences[0].claim.clone()
    };
    assert_eq!((claim.order, claim.quantity), (order, 1));
    let again = ask();
    assert!(
        matches!(again, seckill_application::Purchase::Granted { order: same, .. } if same == order),
        "{again:?}"
    );
}

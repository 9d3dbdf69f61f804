//! What reconciliation tells of and cannot mend, or cannot claim to have mended.

use seckill_application::ports::DifferenceKind;
use seckill_domain::{Held, OrderStatus};

use crate::reconcile::{assert_one, finding, held, kinds};
use crate::world::{Offer, World, buyer};

/// Nobody can say whether the stock is right or the orders are: the gate is left as it is.
#[test]
fn a_ledger_that_contradicts_itself_is_told_of_and_left() {
    for shift in [2, -2] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10));
        world.bought(voucher, 1, 1);
        world.bought(voucher, 2, 1);
        assert!(world.book.shift_stock(voucher, shift));
        for _ in 0..3 {
            let found = finding(&world);
            assert_eq!((found.stock_drift, found.holds), (i64::from(shift), false));
            assert_eq!((kinds(&found), found.free_drift), (vec![], 0));
            assert!(found.at_gate && !found.asks_for_load());
            world.settle();
            assert_eq!(world.free(voucher), 8);
        }
        // Loaded for another reason, the gate gets what the ledger has, and is not loaded for that.
        world.store.wipe();
        world.wanted.request(voucher);
        world.settle();
        let free = 8_u32.checked_add_signed(shift).unwrap();
        assert_eq!(world.free(voucher), free);
        let found = finding(&world);
        let drifts = (found.stock_drift, found.free_drift);
        assert_eq!(drifts, (i64::from(shift), i64::from(shift)));
        assert!(!found.asks_for_load());
        // An administrator puts it right, and the next round the gate.
        assert!(world.book.shift_stock(voucher, -shift));
        let found = finding(&world);
        assert_eq!((found.stock_drift, found.free_drift), (0, i64::from(shift)));
        assert!(found.asks_for_load());
        world.settle();
        assert_eq!(world.free(voucher), 8);
        assert!(finding(&world).holds);
        world.assert_sound(voucher);
    }
}

/// An order that somebody has ended by hand: its unit is nobody's. Released, it would go to whoever
/// waits, whom the ledger would have to send away.
#[test]
fn units_that_the_ledger_does_not_have_are_handed_on_to_nobody() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let ended = world.bought(voucher, 1, 1);
    world.run(world.cancel.run(ended, buyer(1))).unwrap();
    world.settle();
    let back = Held {
        order: ended,
        quantity: 1,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, buyer(1), back));
    assert!(world.store.shift_free(voucher, -1));
    assert!(world.book.shift_stock(voucher, -1));
    let waits = world.waiting(voucher, 2, 1);
    let found = finding(&world);
    assert_one(&found, DifferenceKind::NotReleased, ended, true);
    assert_eq!((found.stock_drift, found.holds), (-1, false));
    world.settle();
    assert_eq!(held(&world, voucher, 1), [], "the gate follows the ledger");
    for _ in 0..2 {
        let found = finding(&world);
        assert_eq!((kinds(&found), found.stock_drift), (vec![], -1));
        world.settle();
        assert_eq!(world.free(voucher), 0);
        assert_eq!(world.status(waits), OrderStatus::Waiting);
    }
    assert!(world.book.shift_stock(voucher, 1));
    assert!(finding(&world).asks_for_load());
    world.settle();
    assert_eq!(world.status(waits), OrderStatus::PendingPayment);
    world.assert_sound(voucher);
}

/// Somebody makes the gate forget him again and again.
#[test]
fn what_comes_again_in_the_next_round_is_not_called_repaired() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    for round in 0..3 {
        assert!(world.store.drop_holder(voucher, order));
        let found = finding(&world);
        assert_one(&found, DifferenceKind::HolderGone, order, round == 0);
        world.settle();
        assert_eq!(held(&world, voucher, 1), [order], "it is tried again");
    }
    assert_eq!(kinds(&finding(&world)), []);
    // What was sound in between is new.
    assert!(world.store.drop_holder(voucher, order));
    assert_one(&finding(&world), DifferenceKind::HolderGone, order, true);
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    world.assert_sound(voucher);
}

/// It is a repair like any other, and counted.
#[test]
fn terms_that_differ_are_told_of_and_the_load_is_counted() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    let gate = world.alone(world.hot.gate.facts(&[voucher])).unwrap();
    let version = gate[0].expect("loaded").pulse.version;
    // The gate follows something that the ledger has never said.
    let ahead = seckill_domain::GateUpdate {
        voucher,
        version: version.next(),
        changes: Vec::new(),
    };
    world.alone(world.hot.gate.follow(&ahead)).unwrap();
    let report = crate::reconcile::round(
        &world,
        seckill_application::ReconcileScope {
            full: false,
            dry_run: false,
        },
    );
    assert!(report.vouchers[0].terms_differ);
    assert_eq!((report.findings(), report.repairs()), (1, 1));
    assert!(report.leaves_nothing());
    world.settle();
    assert!(!finding(&world).terms_differ);
    world.assert_sound(voucher);
}

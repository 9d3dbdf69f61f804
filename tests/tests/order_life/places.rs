//! Places on the waitlist that the gate has otherwise than the ledger: found by the round that looks,
//! and put right before anybody is served out of turn.

use seckill_application::ports::DifferenceKind;
use seckill_domain::{OrderId, OrderStatus, Seat, Ticket, VoucherId};

use crate::reconcile::{assert_one, finding, kinds, mended};
use crate::world::{Offer, World, buyer};

/// A sale of one unit that somebody has, and three who wait for it.
fn queue(world: &World) -> (VoucherId, OrderId, [OrderId; 3]) {
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let waiting = [50, 9, 100].map(|number| world.waiting(voucher, number, 1));
    world.settle();
    (voucher, first, waiting)
}

fn seat(world: &World, voucher: VoucherId, number: u64) -> Seat {
    let found = world.alone(world.hot.gate.claimants(voucher, &[buyer(number)]));
    let found = found.unwrap().expect("loaded").remove(0);
    found.seat.expect("he waits")
}

fn assert_served(world: &World, mut has: (OrderId, u64), line: &[(OrderId, u64)]) {
    for (order, number) in line {
        assert_eq!(world.status(*order), OrderStatus::Waiting, "{number}");
        world.run(world.cancel.run(has.0, buyer(has.1))).unwrap();
        world.settle();
        assert_eq!(
            world.status(*order),
            OrderStatus::PendingPayment,
            "{number}"
        );
        has = (*order, *number);
    }
}

#[test]
fn a_waiter_whom_the_gate_forgot_keeps_his_turn() {
    let world = World::new();
    let (voucher, first, [one, two, three]) = queue(&world);
    assert!(world.store.plant_place(voucher, buyer(50), None));
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::WaiterGone, one, true);
    assert_served(&world, (first, 1), &[(one, 50), (two, 9), (three, 100)]);
    world.assert_sound(voucher);
}

#[test]
fn waiters_who_changed_places_change_back() {
    let world = World::new();
    let (voucher, first, [one, two, three]) = queue(&world);
    let [ahead, behind] = [50, 9].map(|number| seat(&world, voucher, number));
    let swapped = [(&ahead, behind.ticket), (&behind, ahead.ticket)];
    for (seat, ticket) in swapped {
        let seat = Seat {
            ticket,
            ..seat.clone()
        };
        assert!(world.store.plant_place(voucher, seat.buyer, Some(seat)));
    }
    let found = mended(&world, voucher);
    assert_eq!(kinds(&found), [DifferenceKind::PlaceDiffers; 2]);
    assert_served(&world, (first, 1), &[(one, 50), (two, 9), (three, 100)]);
    world.assert_sound(voucher);
}

#[test]
fn a_waiter_who_wants_more_than_he_asked_for_gets_what_he_asked_for() {
    let world = World::new();
    let (voucher, first, [one, ..]) = queue(&world);
    let greedy = Seat {
        quantity: 2,
        ..seat(&world, voucher, 50)
    };
    assert!(world.store.plant_place(voucher, buyer(50), Some(greedy)));
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::PlaceDiffers, one, true);
    assert_served(&world, (first, 1), &[(one, 50)]);
    world.assert_sound(voucher);
}

#[test]
fn a_waiter_whom_the_ledger_has_never_heard_of_is_told_to_it() {
    let world = World::new();
    let (voucher, first, [one, two, three]) = queue(&world);
    let order = OrderId::new(4_711);
    let unheard_of = Seat {
        ticket: Ticket::new(1 << 50),
        order,
        buyer: buyer(7),
        quantity: 1,
        key: None,
    };
    assert!(world.store.plant_place(voucher, buyer(7), Some(unheard_of)));
    let found = mended(&world, voucher);
    assert_one(&found, DifferenceKind::WaiterUnknown, order, true);
    assert_served(
        &world,
        (first, 1),
        &[(one, 50), (two, 9), (three, 100), (order, 7)],
    );
    world.assert_sound(voucher);
}

/// A place that is on its way into the ledger, out of it, or up to its units is no difference.
#[test]
fn places_that_are_on_their_way_are_no_difference() {
    let world = World::new();
    let (voucher, first, [one, ..]) = queue(&world);
    world.alone(async {
        let request = crate::world::request(voucher, 30, 1);
        world.purchase.run(request).await.unwrap();
        world.place.leave(voucher, buyer(9)).await.unwrap();
        world.cancel.run(first, buyer(1)).await.unwrap();
    });
    // The writers work beside it.
    let found = finding(&world);
    assert_eq!((kinds(&found), found.holds), (vec![], true));
    world.settle();
    assert_eq!(world.status(one), OrderStatus::PendingPayment);
    world.assert_sound(voucher);
}

/// Nor while nobody writes: what stands is said to stand.
#[test]
fn a_join_whose_message_stands_is_left_to_the_writer() {
    let world = World::new();
    let (voucher, ..) = queue(&world);
    let order = world.alone(async {
        let request = crate::world::request(voucher, 30, 1);
        let seckill_application::Purchase::Waitlisted { order, .. } =
            world.purchase.run(request).await.unwrap()
        else {
            panic!("no place");
        };
        world.place.leave(voucher, buyer(9)).await.unwrap();
        order
    });
    let reconcile = world.reconcile("process-1");
    let run = reconcile.run(seckill_application::ReconcileScope {
        full: false,
        dry_run: false,
    });
    let report = world.alone(run).unwrap().expect("nobody else is at it");
    assert_one(
        &report.vouchers[0],
        DifferenceKind::NotDelivered,
        order,
        false,
    );
    assert_eq!(report.repairs(), 0);
    world.settle();
    assert_eq!(kinds(&finding(&world)), []);
    world.assert_sound(voucher);
}

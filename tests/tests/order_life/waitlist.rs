//! The waitlist: strict arrival order, and every path that frees units promotes.

use std::time::Duration;

use seckill_application::ports::{NewAdjustment, Place};
use seckill_application::{
    AdjustStockReply, CancelReply, FindPlace, LeavePlace, Purchase, SteerCommand,
};
use seckill_domain::{OrderId, OrderStatus, VoucherId};

use crate::world::{MINUTE, Offer, SECOND, World, buyer, payment};

/// Buyers whose names sort differently from their arrival.
const ARRIVALS: [u64; 5] = [50, 9, 100, 7, 30];

/// A sale of one unit that somebody has, and who waits for it, in the order of arrival.
fn queue(world: &World) -> (VoucherId, OrderId, [OrderId; 5]) {
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let waiting = ARRIVALS.map(|number| world.waiting(voucher, number, 1));
    (voucher, first, waiting)
}

fn cancelled(world: &World, order: OrderId, number: u64) {
    let reply = world.run(world.cancel.run(order, buyer(number))).unwrap();
    assert!(matches!(reply, CancelReply::Cancelled(_)), "{reply:?}");
    world.settle();
}

fn has_units(world: &World, order: OrderId) -> bool {
    world.status(order) == OrderStatus::PendingPayment
}

fn place(world: &World, voucher: VoucherId, number: u64) -> Option<Place> {
    match world.run(world.place.find(voucher, buyer(number))) {
        Ok(FindPlace::At(place)) => Some(place),
        Ok(FindPlace::NotWaiting) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn five_are_served_in_the_order_of_their_arrival() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    cancelled(&world, first, 1);
    for (at, (order, number)) in waiting.iter().zip(ARRIVALS).enumerate() {
        assert!(has_units(&world, *order), "{number} is next");
        for later in &waiting[at + 1..] {
            assert_eq!(world.status(*later), OrderStatus::Waiting);
        }
        cancelled(&world, *order, number);
    }
    assert_eq!(world.free(voucher), 1);
    world.assert_sound(voucher);
}

#[test]
fn a_place_can_be_read_and_the_list_is_bounded() {
    let world = World::new();
    let (voucher, _, waiting) = queue(&world);
    for (at, number) in (1..).zip(ARRIVALS) {
        let expected = Place::Waiting {
            order: waiting[at as usize - 1],
            position: at,
            length: 5,
        };
        assert_eq!(place(&world, voucher, number), Some(expected));
    }
    assert_eq!(place(&world, voucher, 77), None);
    assert_eq!(world.ask(voucher, 77, 1), Purchase::SoldOut);
    let again = world.ask(voucher, ARRIVALS[2], 1);
    let expected = Purchase::Waitlisted {
        order: waiting[2],
        position: 3,
        status: OrderStatus::Waiting,
        joined: false,
    };
    assert_eq!(again, expected, "one place per buyer");
}

#[test]
fn one_who_left_is_passed_over() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    for _ in 0..2 {
        let left = world.run(world.place.leave(voucher, buyer(ARRIVALS[0])));
        assert_eq!(left.unwrap(), LeavePlace::NotWaiting);
    }
    // Cancelling an order that waits leaves the list too.
    cancelled(&world, waiting[1], ARRIVALS[1]);
    cancelled(&world, waiting[1], ARRIVALS[1]);
    cancelled(&world, first, 1);
    assert!(has_units(&world, waiting[2]));
    let gone = [OrderStatus::Withdrawn; 2];
    assert_eq!(world.statuses(&waiting[..2]), gone);
    let late = world.run(world.place.leave(voucher, buyer(ARRIVALS[2])));
    assert_eq!(late.unwrap(), LeavePlace::AlreadyPromoted(waiting[2]));
    world.assert_sound(voucher);
}

#[test]
fn whoever_holds_units_never_joins() {
    let world = World::new();
    let (voucher, first, _) = queue(&world);
    for _ in 0..3 {
        let orders = vec![first];
        assert_eq!(world.ask(voucher, 1, 1), Purchase::AlreadyHeld { orders });
    }
    assert_eq!(place(&world, voucher, 1), None);
}

/// Promotions in the order of arrival, each a window after the one before.
#[test]
fn a_silent_head_delays_the_next_by_its_window_and_no_more() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    let window = Duration::from_mins(15).as_millis();
    let window = i64::try_from(window).unwrap();
    world
        .run(world.pay.run(first, buyer(1), &payment("pay-1")))
        .unwrap();
    world.run(world.refund.run(first)).unwrap();
    world.settle();
    let mut before = world.order(waiting[0]).expires_at.unwrap().as_millis();
    for order in &waiting[1..] {
        world.run(async {
            loop {
                world.hot.delays.wait(SECOND).await.unwrap();
                world.expire.on_time().await.unwrap();
                let stages = world.ledger.ledger.stages(&[*order]).await.unwrap();
                if stages[0].1 == OrderStatus::PendingPayment {
                    break;
                }
            }
        });
        let due = world.order(*order).expires_at.unwrap().as_millis();
        let late = due - before - window;
        assert!((0..2_000).contains(&late), "{late} ms late");
        before = due;
    }
    let mut expected = [OrderStatus::Expired; 5];
    expected[4] = OrderStatus::PendingPayment;
    assert_eq!(world.statuses(&waiting), expected);
    world.assert_sound(voucher);
}

#[test]
fn a_head_that_wants_three_gets_them_before_a_later_one_that_wants_one() {
    let world = World::new();
    let voucher = world.sale(Offer::of(3).limit(3).waitlist(5));
    let held = [1, 2, 3].map(|number| world.bought(voucher, number, 1));
    let three = world.waiting(voucher, 10, 3);
    let one = world.waiting(voucher, 11, 1);
    for (at, order) in held.into_iter().enumerate() {
        let status = [three, one].map(|it| world.status(it));
        assert_eq!(status, [OrderStatus::Waiting; 2], "{at} units free");
        cancelled(&world, order, at as u64 + 1);
    }
    assert!(has_units(&world, three));
    assert_eq!(world.status(one), OrderStatus::Waiting);
    cancelled(&world, three, 10);
    assert!(has_units(&world, one));
    assert_eq!(world.free(voucher), 2);
    world.assert_sound(voucher);
}

#[test]
fn units_that_accumulate_for_the_head_are_the_next_ones_when_he_leaves() {
    let world = World::new();
    let voucher = world.sale(Offer::of(2).limit(2).waitlist(5));
    let held = [world.bought(voucher, 1, 1), world.bought(voucher, 2, 1)];
    world.waiting(voucher, 10, 2);
    let next = world.waiting(voucher, 11, 1);
    cancelled(&world, held[0], 1);
    assert_eq!(world.status(next), OrderStatus::Waiting);
    world.run(world.place.leave(voucher, buyer(10))).unwrap();
    world.run(world.upkeep.run()).unwrap();
    world.settle();
    assert!(has_units(&world, next));
    world.assert_sound(voucher);
}

/// Stands for: only expiry promotes; or two workers promote the same buyer (2.30).
#[test]
fn every_path_that_frees_units_promotes() {
    let world = World::new();
    let frees: [fn(&World, VoucherId, OrderId); 5] = [
        |world, _, order| cancelled(world, order, 1),
        |world, _, _| {
            world.pass(16 * MINUTE);
            world.run(world.expire.sweep()).unwrap();
        },
        |world, _, _| {
            world.pass(16 * MINUTE);
            world.run(world.expire.on_time()).unwrap();
        },
        |world, _, order| {
            let id = payment(&format!("pay-{order}"));
            world.run(world.pay.run(order, buyer(1), &id)).unwrap();
            world.run(world.refund.run(order)).unwrap();
        },
        |world, voucher, _| {
            let wish = NewAdjustment {
                voucher,
                delta: 1,
                reason: "found one".to_owned(),
                key: None,
            };
            let reply = world.run(world.adjust.run(&wish)).unwrap();
            assert!(matches!(reply, AdjustStockReply::Done(_)));
        },
    ];
    for (number, frees_a_unit) in frees.into_iter().enumerate() {
        let voucher = world.sale(Offer::of(1).waitlist(5));
        let order = world.bought(voucher, 1, 1);
        let waits = world.waiting(voucher, 2, 1);
        frees_a_unit(&world, voucher, order);
        world.settle();
        assert!(has_units(&world, waits), "path {number}");
        world.assert_sound(voucher);
    }
}

#[test]
fn nobody_is_promoted_while_a_sale_is_paused_and_all_who_can_be_when_it_goes_on() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    world.steered(voucher, SteerCommand::Pause);
    cancelled(&world, first, 1);
    assert_eq!(world.status(waiting[0]), OrderStatus::Waiting);
    assert_eq!(world.free(voucher), 1);
    world.steered(voucher, SteerCommand::Resume);
    world.settle();
    assert!(has_units(&world, waiting[0]));
    world.assert_sound(voucher);
}

#[test]
fn closing_drains_the_list_and_units_freed_later_stay_free() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    world.steered(voucher, SteerCommand::Close);
    world.settle();
    assert_eq!(world.statuses(&waiting), [OrderStatus::ClosedOut; 5]);
    assert_eq!(place(&world, voucher, ARRIVALS[0]), None);
    assert!(has_units(&world, first), "its window runs on");
    cancelled(&world, first, 1);
    assert_eq!(world.free(voucher), 1);
    assert_eq!(world.ask(voucher, 77, 1), Purchase::Closed);
    world.assert_sound(voucher);
}

#[test]
fn a_long_list_is_drained_whole_when_its_time_is_over() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(1_000));
    world.bought(voucher, 1, 1);
    let mut orders = Vec::new();
    for number in 2..=400 {
        let Purchase::Waitlisted { order, .. } = world.ask(voucher, number, 1) else {
            panic!("no place");
        };
        orders.push(order);
    }
    world.settle();
    world.skip(crate::world::SALE);
    world.run(world.upkeep.run()).unwrap();
    world.settle();
    let out = world.statuses(&orders).into_iter();
    assert_eq!(out.filter(|it| *it == OrderStatus::ClosedOut).count(), 399);
    world.assert_sound(voucher);
}

#[test]
fn a_wiped_gate_keeps_orders_and_the_order_of_the_list() {
    let world = World::new();
    let (voucher, first, waiting) = queue(&world);
    world.store.wipe();
    let orders = vec![first];
    let again = world.ask(voucher, 1, 1);
    assert_eq!(again, Purchase::AlreadyHeld { orders });
    for (at, number) in (1..).zip(ARRIVALS) {
        let expected = Place::Waiting {
            order: waiting[at as usize - 1],
            position: at,
            length: 5,
        };
        assert_eq!(place(&world, voucher, number), Some(expected));
    }
    cancelled(&world, first, 1);
    assert!(has_units(&world, waiting[0]));
    world.assert_sound(voucher);
}

#[test]
fn a_gate_wiped_in_the_middle_of_a_sale_sells_exactly_the_rest() {
    let world = World::new();
    let voucher = world.sale(Offer::of(200));
    let sold: Vec<OrderId> = (1..=60).map(|it| world.granted(voucher, it, 1)).collect();
    world.settle();
    world.store.wipe();
    for (number, order) in (1..).zip(&sold) {
        let orders = vec![*order];
        assert_eq!(
            world.ask(voucher, number, 1),
            Purchase::AlreadyHeld { orders }
        );
    }
    let mut granted = 0;
    for number in 1_000..1_300 {
        match world.ask(voucher, number, 1) {
            Purchase::Granted { .. } => granted += 1,
            other => assert_eq!(other, Purchase::SoldOut),
        }
    }
    assert_eq!(granted, 140);
    world.assert_sound(voucher);
}

//! Closed sales leave the gate, and repeats are still answered.

use seckill_application::{PayReply, Purchase, PurchaseRequest, RefundReply, SteerCommand};
use seckill_domain::{OrderId, OrderStatus, VoucherId};

use crate::reconcile::{EVERY_MINUTE, FULL, held, round};
use crate::world::{MINUTE, Offer, PARTITION, World, buyer, payment, request};

/// Two sweeps: a sale leaves when the sweep before has found it settled, too.
fn retire(world: &World) -> usize {
    let first = world.run(world.retire.run()).unwrap();
    first + world.run(world.retire.run()).unwrap()
}

fn is_retired(world: &World, voucher: VoucherId) -> bool {
    let found = world.alone(world.ledger.ledger.voucher(voucher)).unwrap();
    found.unwrap().retired
}

fn at_gate(world: &World, voucher: VoucherId) -> bool {
    let facts = world.alone(world.hot.gate.facts(&[voucher])).unwrap();
    facts[0].is_some()
}

fn keyed(voucher: VoucherId, number: u64, quantity: u32) -> PurchaseRequest {
    PurchaseRequest {
        key: Some("the-key".parse().expect("a key")),
        ..request(voucher, number, quantity)
    }
}

/// A sale that is over, with one order paid.
fn over(world: &World) -> (VoucherId, OrderId) {
    let voucher = world.sale(Offer::of(10).limit(2).waitlist(5));
    let asked = world.run(world.purchase.run(keyed(voucher, 1, 2))).unwrap();
    let Purchase::Granted { order, .. } = asked else {
        panic!("{asked:?}");
    };
    world.settle();
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    world.steered(voucher, SteerCommand::Close);
    world.settle();
    (voucher, order)
}

#[test]
fn repeats_are_answered_after_a_sale_has_left_the_gate() {
    let world = World::new();
    let (voucher, order) = over(&world);
    assert_eq!(retire(&world), 1);
    assert!(is_retired(&world, voucher));
    assert!(!at_gate(&world, voucher));
    let status = OrderStatus::Paid;
    let replay = world.run(world.purchase.run(keyed(voucher, 1, 2))).unwrap();
    assert_eq!(replay, Purchase::Granted { order, status });
    let reused = world.run(world.purchase.run(keyed(voucher, 1, 1))).unwrap();
    assert_eq!(reused, Purchase::KeyReused);
    let orders = vec![order];
    assert_eq!(world.ask(voucher, 1, 1), Purchase::AlreadyHeld { orders });
    assert_eq!(world.ask(voucher, 2, 1), Purchase::Closed);
    assert_eq!(retire(&world), 0);
    world.assert_sound(voucher);
}

#[test]
fn a_sale_stays_while_anything_about_it_is_open() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let order = world.granted(voucher, 1, 1);
    assert_eq!(retire(&world), 0, "on sale");
    // Closed with the grant still in flight.
    let close = world.steer.run(voucher, SteerCommand::Close);
    world.alone(close).unwrap();
    assert_eq!(world.alone(world.retire.run()).unwrap(), 0, "in flight");
    world.settle();
    assert_eq!(retire(&world), 0, "unpaid");
    world.pass(15 * MINUTE);
    // Expired, and the gate has not followed.
    world.store.chaos().fail_before("purchase_gate.follow", 1);
    world.alone(world.expire.sweep()).unwrap();
    assert_eq!(world.alone(world.retire.run()).unwrap(), 0, "update waits");
    world.settle();
    assert_eq!(world.status(order), OrderStatus::Expired);
    assert_eq!(retire(&world), 1);
}

#[test]
fn whoever_waits_is_told_before_a_sale_leaves() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let order = world.bought(voucher, 1, 1);
    let waits = world.waiting(voucher, 2, 1);
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    // The drain after closing does not get through.
    world.store.chaos().fail_before("purchase_gate.promote", 1);
    world
        .run(world.steer.run(voucher, SteerCommand::Close))
        .unwrap_err();
    world.store.chaos().heal();
    assert_eq!(world.alone(world.retire.run()).unwrap(), 0);
    world.settle();
    assert_eq!(world.status(waits), OrderStatus::ClosedOut);
    assert_eq!(retire(&world), 1);
}

#[test]
fn a_retirement_that_is_cut_off_is_completed() {
    let world = World::new();
    let (voucher, _) = over(&world);
    assert_eq!(world.run(world.retire.run()).unwrap(), 0, "a first look");
    world.book.chaos().fail_before("unit_of_work.commit", 1);
    world.run(world.retire.run()).unwrap_err();
    assert!(!is_retired(&world, voucher));
    assert_eq!(world.ask(voucher, 2, 1), Purchase::Closed, "in between");
    assert_eq!(retire(&world), 1);
    assert!(is_retired(&world, voucher));
}

#[test]
fn a_refund_after_retirement_leaves_nothing_behind() {
    let world = World::new();
    let (voucher, order) = over(&world);
    assert_eq!(retire(&world), 1);
    let reply = world.run(world.refund.run(order)).unwrap();
    assert!(matches!(reply, RefundReply::Refunded(_)));
    world.assert_sound(voucher);
    assert!(!at_gate(&world, voucher));
    let pay = world.run(world.pay.run(order, buyer(1), &payment("pay-2")));
    assert!(matches!(pay.unwrap(), PayReply::Refused(_)));
}

/// Somebody deletes the last messages of the stream, of whichever sale; nobody decides anything more,
/// so that no gap in the numbers shows it.
#[test]
fn what_is_gone_from_the_end_of_the_stream_keeps_no_sale() {
    let world = World::new();
    let (voucher, order) = over(&world);
    let other = world.sale(Offer::of(10).waitlist(5));
    let asked = world.alone(world.purchase.run(request(other, 7, 1)));
    let Purchase::Granted { order: lost, .. } = asked.unwrap() else {
        panic!("not granted");
    };
    assert!(world.store.remove_message(other, lost));
    world.pass(MINUTE);
    let mut retired = 0;
    for _ in 0..4 {
        retired += world.run(world.retire.run()).unwrap();
        world.settle();
    }
    assert_eq!(retired, 1);
    assert!(is_retired(&world, voucher));
    let orders = vec![order];
    assert_eq!(world.ask(voucher, 1, 2), Purchase::AlreadyHeld { orders });
    assert_eq!(world.status(lost), OrderStatus::PendingPayment);
    world.assert_sound(other);
}

/// A message is gone, and an entry that cannot be read takes its number: by the numbers, the ledger
/// knows all that was decided.
#[test]
fn a_sale_stays_while_the_gate_has_a_holder_whom_the_ledger_does_not_know() {
    let world = World::new();
    let (voucher, other) = (world.sale(Offer::of(10)), world.sale(Offer::of(10)));
    let sound = world.sale(Offer::of(10));
    world.bought(sound, 2, 1);
    world.steered(sound, SteerCommand::Close);
    let asked = world.alone(world.purchase.run(request(voucher, 7, 1)));
    let Purchase::Granted { order: lost, .. } = asked.unwrap() else {
        panic!("not granted");
    };
    assert!(world.store.remove_message(voucher, lost));
    let _ = world.store.plant_entry(PARTITION, "not ours");
    world.settle();
    world.bought(other, 1, 1);
    world.steered(voucher, SteerCommand::Close);
    world.settle();
    assert_eq!(retire(&world), 0, "a holder whom the ledger does not know");
    let report = round(&world, EVERY_MINUTE);
    let compared: Vec<VoucherId> = report.vouchers.iter().map(|it| it.voucher).collect();
    assert!(compared.contains(&voucher) && compared.contains(&sound));
    world.settle();
    assert_eq!(world.status(lost), OrderStatus::PendingPayment);
    world.pass(15 * MINUTE);
    world.alone(world.expire.sweep()).unwrap();
    world.settle();
    assert_eq!(retire(&world), 2);
    assert!(is_retired(&world, voucher) && is_retired(&world, sound));
    assert_eq!(world.status(lost), OrderStatus::Expired);
    world.assert_sound(voucher);
}

#[test]
fn a_sale_that_cannot_be_looked_at_keeps_no_other() {
    let world = World::new();
    let [one, two] = [world.sale(Offer::of(1)), world.sale(Offer::of(1))];
    for voucher in [one, two] {
        world.steered(voucher, SteerCommand::Close);
    }
    world.settle();
    let retire = || world.run(world.retire.run());
    world.store.chaos().fail_before("purchase_gate.tally", 1);
    retire().unwrap_err();
    assert_eq!(retire().unwrap(), 1, "the one that was settled twice");
    assert_eq!(retire().unwrap(), 1);
    assert!(is_retired(&world, one) && is_retired(&world, two));
}

/// The marker is hot data too.
#[test]
fn a_retired_sale_does_not_come_back_when_the_gate_is_wiped() {
    let world = World::new();
    let (voucher, order) = over(&world);
    assert_eq!(retire(&world), 1);
    world.store.wipe();
    let orders = vec![order];
    assert_eq!(world.ask(voucher, 1, 1), Purchase::AlreadyHeld { orders });
    world.run(world.refund.run(order)).unwrap();
    world.assert_sound(voucher);
    assert!(!at_gate(&world, voucher));
    assert_eq!(world.ask(voucher, 1, 1), Purchase::Closed);
}

#[test]
fn a_closed_sale_that_the_gate_lost_is_loaded_once_more_and_retired() {
    let world = World::new();
    let (voucher, _) = over(&world);
    world.store.wipe();
    assert_eq!(retire(&world), 0);
    world.pass(MINUTE);
    assert_eq!(retire(&world), 1);
    assert!(is_retired(&world, voucher));
    assert!(!at_gate(&world, voucher));
}

#[test]
fn closed_sales_are_looked_at_until_they_are_retired() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world.steered(voucher, SteerCommand::Close);
    assert!(world.store.drop_holder(voucher, order));
    assert_eq!(round(&world, EVERY_MINUTE).repairs(), 1);
    world.settle();
    assert_eq!(held(&world, voucher, 1), [order]);
    world.run(world.cancel.run(order, buyer(1))).unwrap();
    world.settle();
    assert_eq!(world.run(world.retire.run()).unwrap(), 0);
    assert_eq!(world.run(world.retire.run()).unwrap(), 1);
    assert_eq!(round(&world, FULL).vouchers, []);
}

/// The others are only if their units do not add up.
#[test]
fn a_full_round_looks_at_more_than_the_newest_hundred_closed_sales() {
    let world = World::new();
    let vouchers: Vec<VoucherId> = (0..102).map(|_| world.sale(Offer::of(3))).collect();
    for voucher in &vouchers {
        world.bought(*voucher, 1, 1);
        world.steered(*voucher, SteerCommand::Close);
    }
    let looked_at = |scope| {
        let report = round(&world, scope);
        let mut found: Vec<VoucherId> = report.vouchers.iter().map(|it| it.voucher).collect();
        found.sort();
        found
    };
    assert_eq!(looked_at(EVERY_MINUTE), vouchers[2..]);
    assert_eq!(looked_at(FULL), vouchers);
    assert!(world.store.shift_free(vouchers[1], 1));
    assert_eq!(looked_at(EVERY_MINUTE), vouchers[1..]);
}

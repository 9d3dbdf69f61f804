//! Messages that cannot be applied: they block nobody, their units are counted, and an
//! administrator settles them.

use seckill_application::ports::{ParkReason, ParkedMessage, ParkedReply, PaymentOutcome};
use seckill_application::{HearReply, PaymentNotice, Purchase};
use seckill_domain::{Claim, Decision, Held, OrderId, OrderStatus, RejectReason, Stage, VoucherId};

use crate::reconcile::{finding, kinds};
use crate::world::{MINUTE, Offer, PARTITION, PRICE_MINOR, World, buyer, money, payment, request};

fn waiting(world: &World) -> Vec<ParkedMessage> {
    world
        .alone(world.parked.list(true, None, 100))
        .unwrap()
        .items
}

fn claim(voucher: VoucherId, order: OrderId, number: u64) -> Claim {
    Claim {
        order,
        voucher,
        buyer: buyer(number),
        quantity: 1,
        key: None,
    }
}

fn parked_units(world: &World, voucher: VoucherId) -> i64 {
    let balance = world.run(world.balance.run(voucher)).unwrap().unwrap();
    assert!(balance.holds, "{balance:?}");
    balance.tally.parked
}

/// A grant that the gate made and the ledger cannot apply: its order id is another buyer's.
fn collided(world: &World, voucher: VoucherId, order: OrderId, number: u64) -> Claim {
    let claim = claim(voucher, order, number);
    let held = Held {
        order,
        quantity: 1,
        promoted: false,
    };
    assert!(world.store.plant_holder(voucher, claim.buyer, held));
    assert!(world.store.shift_free(voucher, -1));
    let granted = vec![Decision::Granted(claim.clone())];
    assert!(world.store.plant_decisions(PARTITION, granted));
    world.settle();
    claim
}

#[test]
fn a_foreign_entry_blocks_nobody_and_is_discarded() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    world
        .store
        .plant_entry(PARTITION, "not ours \u{706b}")
        .unwrap();
    let after = world.bought(voucher, 2, 1);
    assert_eq!(world.status(after), OrderStatus::PendingPayment);
    let messages = waiting(&world);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].raw, "not ours \u{706b}");
    let id = messages[0].id;
    let unfit = ParkedReply::StillUnfit(ParkReason::Unreadable);
    assert_eq!(world.run(world.parked.replay(id)).unwrap(), unfit);
    for _ in 0..2 {
        let reply = world.run(world.parked.discard(id, "not ours")).unwrap();
        assert_eq!(reply, ParkedReply::Settled);
    }
    assert_eq!(waiting(&world), []);
    let replay = world.run(world.parked.replay(id)).unwrap();
    assert_eq!(replay, ParkedReply::Conflict);
    world.assert_sound(voucher);
}

/// Its voucher is a draft, so that its grant cannot be applied.
#[test]
fn a_parked_order_is_queued_for_its_buyer_also_when_its_entry_is_trimmed() {
    let world = World::new();
    // So that the partition is there.
    world.sale(Offer::of(1));
    let voucher = world.new_draft(Offer::of(10)).id;
    let claim = claim(voucher, OrderId::new(4_711), 2);
    let granted = vec![Decision::Granted(claim.clone())];
    assert!(world.store.plant_decisions(PARTITION, granted));
    world.settle();
    assert_eq!(waiting(&world).len(), 1);
    let seen = || {
        let view = world
            .alone(world.orders.find(claim.order, buyer(2)))
            .unwrap();
        view.map(|view| (view.order.status(), view.order.quantity))
    };
    let queued = Some((OrderStatus::Queued, 1));
    assert_eq!(seen(), queued);
    world.pass(2 * MINUTE);
    world.trim();
    let gone = world.alone(world.hot.gate.has_decided(claim.order));
    assert!(!gone.unwrap());
    assert_eq!(seen(), queued);
    let other = world.alone(world.orders.find(claim.order, buyer(3)));
    assert_eq!(other.unwrap(), None);
}

/// A grant whose message is spoilt before the ledger has it.
fn spoilt(world: &World, voucher: VoucherId, number: u64, names: bool) -> OrderId {
    let request = request(voucher, number, 1);
    let asked = world.alone(world.purchase.run(request)).unwrap();
    let Purchase::Granted { order, .. } = asked else {
        panic!("{asked:?}");
    };
    assert!(world.store.spoil_message(voucher, order, names));
    order
}

/// Its number is taken, and nobody takes that for a stream that has gone back.
#[test]
fn an_entry_that_cannot_be_read_takes_its_number_with_it() {
    for follows in [false, true] {
        let world = World::new();
        let voucher = world.sale(Offer::of(10));
        world.bought(voucher, 1, 1);
        let epoch = world.epoch();
        let order = spoilt(&world, voucher, 2, true);
        if follows {
            world.granted(voucher, 3, 1);
        }
        world.settle();
        let messages = waiting(&world);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].reason, ParkReason::Unreadable);
        assert_eq!(messages[0].claim.as_ref().map(|it| it.order), Some(order));
        assert_eq!(parked_units(&world, voucher), 1);
        let after = world.bought(voucher, 4, 1);
        assert_eq!(world.status(after), OrderStatus::PendingPayment);
        assert_eq!(world.epoch(), epoch);
        let reply = world.run(world.parked.replay(messages[0].id)).unwrap();
        assert_eq!(reply, ParkedReply::Settled);
        assert_eq!(world.status(order), OrderStatus::PendingPayment);
        assert_eq!(parked_units(&world, voucher), 0);
        world.assert_sound(voucher);
        assert_eq!(world.epoch(), epoch);
    }
}

/// Nothing of it can be made out: its order is appended again from the holder.
#[test]
fn an_order_in_an_entry_that_names_nothing_is_found_by_comparison() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    let epoch = world.epoch();
    let order = spoilt(&world, voucher, 2, false);
    world.bought(voucher, 3, 1);
    let every_minute = seckill_application::ReconcileScope {
        full: false,
        dry_run: false,
    };
    let report = world.run(world.reconcile("process-1").run(every_minute));
    let report = report.unwrap().expect("nobody else is at it");
    assert_eq!((report.differences(), report.repairs()), (1, 1));
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    assert_eq!(world.free(voucher), 7);
    assert_eq!(world.epoch(), epoch);
    world.assert_sound(voucher);
}

#[test]
fn a_discarded_grant_lets_go_of_what_the_gate_took() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let claim = collided(&world, voucher, order, 2);
    assert_eq!(parked_units(&world, voucher), 1);
    assert_eq!(world.free(voucher), 8);
    let id = waiting(&world)[0].id;
    world.book.chaos().fail_after("parked_messages.discard", 1);
    let reply = world.run(world.parked.discard(id, "collided")).unwrap();
    assert_eq!(reply, ParkedReply::Settled);
    assert_eq!(world.free(voucher), 9);
    assert_eq!(parked_units(&world, voucher), 0);
    let found = world.alone(world.hot.gate.claimants(voucher, &[claim.buyer]));
    assert_eq!(found.unwrap().unwrap()[0].held, []);
    assert_eq!(world.order(order).buyer, buyer(1), "his stays his");
    world.bought(voucher, 2, 1);
    world.assert_sound(voucher);
}

#[test]
fn parked_units_stay_counted_through_a_rebuild_of_the_gate() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let claim = collided(&world, voucher, order, 2);
    world.store.wipe();
    world.wanted.request(voucher);
    world.settle();
    assert_eq!(world.free(voucher), 8);
    assert_eq!(parked_units(&world, voucher), 1);
    let found = world.alone(world.hot.gate.claimants(voucher, &[claim.buyer]));
    let held = found.unwrap().unwrap().remove(0).held;
    assert_eq!(held.len(), 1, "he may not buy again");
    let id = waiting(&world)[0].id;
    world.run(world.parked.discard(id, "collided")).unwrap();
    assert_eq!(world.free(voucher), 9);
    world.assert_sound(voucher);
}

/// A grant of a voucher that is not on sale, and that is on sale since.
fn granted_too_early(world: &World) -> (VoucherId, Claim) {
    let voucher = world.new_draft(Offer::of(10).waitlist(5)).id;
    // So that the partition is there.
    world.sale(Offer::of(1));
    let claim = claim(voucher, OrderId::new(4_711), 1);
    let granted = vec![Decision::Granted(claim.clone())];
    assert!(world.store.plant_decisions(PARTITION, granted));
    world.settle();
    let steer = seckill_application::SteerCommand::Publish;
    world.steered(voucher, steer);
    (voucher, claim)
}

#[test]
fn a_replayed_grant_becomes_an_order_that_can_be_paid() {
    let world = World::new();
    let (voucher, claim) = granted_too_early(&world);
    let message = waiting(&world).remove(0);
    assert_eq!(message.claim, Some(claim.clone()));
    assert_eq!(message.reason, ParkReason::UnknownVoucher);
    assert_eq!(parked_units(&world, voucher), i64::from(message.units));
    world.book.chaos().fail_after("parked_messages.replay", 1);
    let reply = world.run(world.parked.replay(message.id)).unwrap();
    assert_eq!(reply, ParkedReply::Settled);
    assert_eq!(world.status(claim.order), OrderStatus::PendingPayment);
    assert_eq!(parked_units(&world, voucher), 0);
    let paid = world.run(world.pay.run(claim.order, claim.buyer, &payment("pay-1")));
    paid.unwrap();
    assert_eq!(world.status(claim.order), OrderStatus::Paid);
    assert_eq!(world.free(voucher), 9);
    world.assert_sound(voucher);
    let discard = world.run(world.parked.discard(message.id, "no")).unwrap();
    assert_eq!(discard, ParkedReply::Conflict);
}

#[test]
fn a_replayed_grant_that_nobody_pays_expires() {
    let world = World::new();
    let (voucher, claim) = granted_too_early(&world);
    let message = waiting(&world).remove(0);
    world.skip(60 * MINUTE);
    world.run(world.parked.replay(message.id)).unwrap();
    assert_eq!(world.run(world.expire.sweep()).unwrap(), 0);
    world.pass(15 * MINUTE);
    assert_eq!(world.run(world.expire.sweep()).unwrap(), 1);
    assert_eq!(world.status(claim.order), OrderStatus::Expired);
    world.assert_sound(voucher);
    assert_eq!(world.free(voucher), 10);
}

#[test]
fn a_discarded_order_says_why_to_its_buyer() {
    let world = World::new();
    let (voucher, claim) = granted_too_early(&world);
    let message = waiting(&world).remove(0);
    world
        .run(world.parked.discard(message.id, "forged"))
        .unwrap();
    let found = world.run(world.orders.find(claim.order, claim.buyer));
    let view = found.unwrap().expect("he can read it");
    let reason = RejectReason::Discarded;
    assert_eq!(view.order.stage, Stage::Rejected { reason });
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

#[test]
fn units_that_a_discarded_message_frees_go_to_whoever_waits() {
    let world = World::new();
    let voucher = world.sale(Offer::of(2).waitlist(5));
    let order = world.bought(voucher, 1, 1);
    collided(&world, voucher, order, 2);
    let waits = world.waiting(voucher, 3, 1);
    let id = waiting(&world)[0].id;
    world.run(world.parked.discard(id, "collided")).unwrap();
    world.settle();
    assert_eq!(world.status(waits), OrderStatus::PendingPayment);
    world.assert_sound(voucher);
}

/// Or the gate serves an order that is over, has the ledger refuse it, and closes the sale to be
/// loaded again, while whoever is next waits.
#[test]
fn a_discarded_place_is_passed_over() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let asked = world.alone(world.purchase.run(request(voucher, 2, 1)));
    let Purchase::Waitlisted { order, .. } = asked.unwrap() else {
        panic!("no place");
    };
    assert!(world.store.spoil_message(voucher, order, true));
    let next = world.waiting(voucher, 3, 1);
    let id = waiting(&world)[0].id;
    world.run(world.parked.discard(id, "forged")).unwrap();
    let reason = RejectReason::Discarded;
    assert_eq!(world.order(order).stage, Stage::Rejected { reason });
    world.run(world.cancel.run(first, buyer(1))).unwrap();
    world.settle();
    assert_eq!(world.status(next), OrderStatus::PendingPayment);
    let reloads = world.alone(world.ledger.reconciliations.reloads(&[voucher]));
    assert_eq!(reloads.unwrap(), [], "the sale stayed open");
    assert_eq!(waiting(&world), []);
    world.assert_sound(voucher);
}

/// Or a round that comes before the gate was told closes a sound sale to load it again.
#[test]
fn a_discarded_place_is_no_difference_while_the_gate_is_about_to_be_told() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    world.bought(voucher, 1, 1);
    let asked = world.alone(world.purchase.run(request(voucher, 2, 1)));
    let Purchase::Waitlisted { order, .. } = asked.unwrap() else {
        panic!("no place");
    };
    assert!(world.store.spoil_message(voucher, order, true));
    world.settle();
    let id = waiting(&world)[0].id;
    world
        .store
        .chaos()
        .fail_before("purchase_gate.follow", 1_000);
    world.run(world.parked.discard(id, "forged")).unwrap();
    let found = finding(&world);
    assert_eq!(kinds(&found), []);
    assert!(world.store.chaos().struck() > 0, "the gate was not told");
    world.store.chaos().heal();
    world.settle();
    let reloads = world.alone(world.ledger.reconciliations.reloads(&[voucher]));
    assert_eq!(reloads.unwrap(), [], "the sale stayed open");
    assert_eq!(kinds(&finding(&world)), []);
    let facts = world.alone(world.hot.gate.facts(&[voucher])).unwrap();
    let facts = facts[0].expect("it is at the gate");
    assert_eq!(facts.pulse.waiting, 0);
    world.assert_sound(voucher);
}

/// Or a payment that came while an administrator had not looked yet would go back for no reason.
#[test]
fn money_for_a_parked_order_is_asked_to_come_again() {
    let world = World::new();
    let (_, claim) = granted_too_early(&world);
    let notice = PaymentNotice {
        payment: payment("pay-1"),
        order: claim.order,
        amount: money(PRICE_MINOR),
    };
    let queued = world.run(world.hear.run(&notice)).unwrap();
    assert_eq!(queued, HearReply::OrderQueued);
    let id = waiting(&world)[0].id;
    world.run(world.parked.replay(id)).unwrap();
    let outcome = world.run(world.hear.run(&notice)).unwrap();
    assert_eq!(outcome, HearReply::Settled(PaymentOutcome::Paid));
}

//! A failover loses the gate's latest writes, or the gate has lost a place. What the simulation once
//! found of it, by itself.

use std::sync::Arc;

use seckill_application::ports::{Admitted, StreamReply};
use seckill_application::{
    CancelReply, Meters, Purchase, PurchaseRequest, PurchaseVoucher, RememberedAnswers,
    SteerCommand,
};
use seckill_domain::{
    Admission, Attempt, Claim, Decision, EventId, OrderId, OrderStatus, SaleStatus, VoucherId,
};
use seckill_memory::Piece;

use crate::reconcile::mended;
use crate::world::{MS, Offer, PARTITION, SECOND, World, buyer, payment, request};

/// Most writes that are lost.
const LOST_MAX: usize = 100;

/// Loses writes until the gate is so.
fn fail_over(world: &World, is_so: impl Fn(&World) -> bool) {
    for _ in 0..LOST_MAX {
        if is_so(world) {
            return;
        }
        assert_eq!(world.store.lose_last(1), 1);
    }
    panic!("it was never so");
}

fn keyed(voucher: VoucherId) -> PurchaseRequest {
    PurchaseRequest {
        key: Some("the-key".parse().expect("a key")),
        ..request(voucher, 1, 1)
    }
}

/// The order of somebody whom only the gate has heard of.
fn unwritten(world: &World, purchase: &PurchaseVoucher, request: PurchaseRequest) -> OrderId {
    match world.alone(purchase.run(request)).unwrap() {
        Purchase::Granted { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

/// Has a buyer wait under an order id that somebody chose.
fn waits_as(world: &World, voucher: VoucherId, who: u64, id: u64) -> OrderId {
    let attempt = Attempt {
        order: OrderId::new(id),
        buyer: buyer(who),
        quantity: 1,
        key: None,
    };
    let asked = world
        .hot
        .gate
        .admit(voucher, std::slice::from_ref(&attempt));
    let Admitted::Decided { admissions, .. } = world.alone(asked).unwrap() else {
        panic!("the sale is not at the gate");
    };
    let joined = matches!(admissions[..], [Admission::Waitlisted { .. }]);
    assert!(joined, "{admissions:?}");
    attempt.order
}

/// Nobody looks after a sale that the ledger calls retired: so there are two sweeps between its
/// closing and its retirement.
#[test]
fn a_closing_that_is_lost_is_not_lost_with_the_retirement() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let paid = world.run(world.pay.run(order, buyer(1), &payment("p-1")));
    paid.unwrap();
    world.steered(voucher, SteerCommand::Close);
    world.settle();
    world.run(world.retire.run()).unwrap();
    fail_over(&world, |world| {
        let facts = world.alone(world.hot.gate.facts(&[voucher])).unwrap();
        facts[0].is_some_and(|facts| facts.terms.status == SaleStatus::Published)
    });
    world.settle();
    assert_eq!(world.ask(voucher, 2, 1), Purchase::Closed);
    world.assert_sound(voucher);
}

/// What a failover lost is decided again under the same numbers. The first of it is given to a
/// consumer that was fenced, and what follows seems to continue the ledger.
#[test]
fn what_a_fenced_consumer_was_given_after_a_failover_is_not_passed_over() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(10));
    world.bought(voucher, 1, 1);
    let applied = world.bought(voucher, 2, 1);
    let epoch = world.epoch();
    fail_over(&world, |world| world.free(voucher) == 9);
    world.skip(SECOND);
    let passed_over = unwritten(&world, &world.purchase, request(voucher, 3, 1));
    let ghost = world.hot.stream.read_new(PARTITION, epoch, "ghost", 10, MS);
    let StreamReply::Entries(taken) = world.alone(ghost).unwrap() else {
        panic!("no stream");
    };
    assert_eq!(taken.len(), 1, "the ghost has it");
    let next = unwritten(&world, &world.purchase, request(voucher, 4, 1));
    world.write_once();
    assert_ne!(world.epoch(), epoch, "what came between is seen at once");
    world.settle();
    assert_eq!(
        world.statuses(&[applied, passed_over, next]),
        [OrderStatus::PendingPayment; 3]
    );
    world.assert_sound(voucher);
}

/// The use case of a process that is about to die: what it remembers goes with it.
fn mortal(world: &World) -> PurchaseVoucher {
    PurchaseVoucher::new(
        &world.hot,
        &world.ledger,
        world.clock.clone(),
        world.wanted.clone(),
        Arc::new(RememberedAnswers::new(
            &world.hot,
            &world.ledger,
            world.clock.clone(),
            world.wanted.clone(),
            Arc::new(Meters::default()),
            world.partitions(),
        )),
    )
}

/// After a failover a grant stands in the stream under a number that the ledger has applied. Then the
/// gate loses who holds what, and the partition its life, and the process that answered dies.
#[test]
fn what_stands_in_the_stream_of_a_life_that_ends_is_not_lost() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(10));
    let applied = world.bought(voucher, 1, 1);
    fail_over(&world, |world| world.free(voucher) == 10);
    world.skip(SECOND);
    let dead = mortal(&world);
    let granted = [2, 3].map(|buyer| unwritten(&world, &dead, request(voucher, buyer, 1)));
    drop(dead);
    assert!(world.store.delete(Piece::Holders(voucher)));
    assert!(world.store.delete(Piece::Meta(PARTITION)));
    world.settle();
    world.pass(3 * SECOND);
    world.run(world.remembered.settle()).unwrap();
    world.settle();
    let all = [applied, granted[0], granted[1]];
    assert_eq!(world.statuses(&all), [OrderStatus::PendingPayment; 3]);
    world.assert_sound(voucher);
}

/// Two were given their turns, and the stream that says so is lost: who came first is written down
/// first, whatever his number.
/// Their order ids are the other way round: another process drew its id first and asked later.
#[test]
fn turns_that_only_the_gate_remembers_are_written_down_in_their_order() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(2).waitlist(5));
    let bought = [1, 3].map(|buyer| world.bought(voucher, buyer, 1));
    let waiting = [(6, 4_712), (2, 4_711)].map(|(buyer, id)| waits_as(&world, voucher, buyer, id));
    world.settle();
    for (order, who) in bought.into_iter().zip([1, 3]) {
        let gone = world.alone(world.cancel.run(order, buyer(who))).unwrap();
        assert!(matches!(gone, CancelReply::Cancelled(_)), "{gone:?}");
    }
    assert_eq!(world.statuses(&waiting), [OrderStatus::Waiting; 2]);
    assert!(world.store.delete(Piece::Stream(PARTITION)));
    assert!(world.store.delete(Piece::Meta(PARTITION)));
    world.settle();
    world.pass(3 * SECOND);
    world.settle();
    assert_eq!(world.statuses(&waiting), [OrderStatus::PendingPayment; 2]);
    let [first, second] = waiting.map(|order| {
        let events = world.ledger.events.of_order(order, EventId::default(), 100);
        let events = world.alone(events).unwrap();
        events.last().expect("he was told").id
    });
    assert!(first < second);
    world.assert_sound(voucher);
}

/// Whoever was told of it first is dead when it is lost.
#[test]
fn a_grant_that_was_told_by_a_replay_is_remembered() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(10));
    let dead = mortal(&world);
    let order = unwritten(&world, &dead, keyed(voucher));
    drop(dead);
    assert_eq!(unwritten(&world, &world.purchase, keyed(voucher)), order);
    fail_over(&world, |world| world.free(voucher) == 10);
    world.pass(3 * SECOND);
    world.run(world.remembered.settle()).unwrap();
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    world.assert_sound(voucher);
}

/// Or the same request, asked again after the next load, is a second order.
#[test]
fn a_grant_that_only_the_gate_holds_keeps_the_key_that_its_process_remembers() {
    let world = World::that_remembers(LOST_MAX);
    let voucher = world.sale(Offer::of(10).limit(2));
    let order = unwritten(&world, &world.purchase, keyed(voucher));
    assert!(world.store.delete(Piece::Keys(voucher)));
    assert!(world.store.delete(Piece::Stream(PARTITION)));
    assert!(world.store.delete(Piece::Meta(PARTITION)));
    world.settle();
    assert_eq!(world.order(order).key, keyed(voucher).key);
    world.store.wipe();
    world.settle();
    let again = world.run(world.purchase.run(keyed(voucher))).unwrap();
    let Purchase::Granted { order: same, .. } = again else {
        panic!("{again:?}");
    };
    assert_eq!(same, order);
    world.assert_sound(voucher);
}

/// The acknowledgement is lost, and so is whoever would send it again.
#[test]
fn what_is_applied_is_acknowledged_by_the_next_writer() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = unwritten(&world, &world.purchase, request(voucher, 1, 1));
    let epoch = world.epoch();
    world.store.chaos().fail_before("admission_stream.ack", 100);
    world.pass(100 * MS);
    world.store.chaos().heal();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    let backlog = world.alone(world.hot.stream.backlog(PARTITION)).unwrap();
    assert_eq!((backlog.decisions, backlog.pending), (1, 1));
    world.replace_writer("another");
    // Until nothing is pending.
    world.settle();
    assert_eq!(world.epoch(), epoch, "and no new life begins for it");
    world.assert_sound(voucher);
}

/// A sale of one unit that buyer 1 has, and the order with which buyer 2 waits for it, which the gate
/// has lost.
fn a_lost_place(world: &World) -> (VoucherId, OrderId, OrderId) {
    let voucher = world.sale(Offer::of(1).waitlist(10));
    let first = world.bought(voucher, 1, 1);
    let waiting = world.waiting(voucher, 2, 1);
    assert!(world.store.plant_place(voucher, buyer(2), None));
    (voucher, first, waiting)
}

/// It comes back, and would be promoted later.
#[test]
fn a_place_that_the_gate_has_lost_is_not_called_given_up() {
    let world = World::new();
    let (voucher, _, waiting) = a_lost_place(&world);
    let cancelled = world.run(world.cancel.run(waiting, buyer(2)));
    let fault = cancelled.expect_err("nobody can say");
    assert!(fault.is_retryable(), "{fault:?}");
    mended(&world, voucher);
    let cancelled = world.run(world.cancel.run(waiting, buyer(2))).unwrap();
    assert!(matches!(cancelled, CancelReply::Cancelled(_)));
    world.settle();
    assert_eq!(world.status(waiting), OrderStatus::Withdrawn);
    world.assert_sound(voucher);
}

/// Its promotion reaches the ledger while the buyer gives it up: then it is an order to cancel.
#[test]
fn a_lost_place_that_was_promoted_is_cancelled_as_an_order() {
    let world = World::new();
    let (voucher, first, waiting) = a_lost_place(&world);
    // The ledger has the unit again, and the gate has not heard of it.
    world.store.chaos().fail_before("purchase_gate.follow", 1);
    world.alone(world.cancel.run(first, buyer(1))).unwrap();
    world.store.chaos().heal();
    let promoted = Decision::Promoted(Claim {
        order: waiting,
        voucher,
        buyer: buyer(2),
        quantity: 1,
        key: None,
    });
    assert!(world.store.plant_decisions(PARTITION, vec![promoted]));
    let reply = world.run(world.cancel.run(waiting, buyer(2))).unwrap();
    let CancelReply::Cancelled(told) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(told.status(), OrderStatus::Cancelled);
    world.settle();
    assert_eq!(world.status(waiting), OrderStatus::Cancelled);
    world.assert_sound(voucher);
}

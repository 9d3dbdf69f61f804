//! What becomes of decisions in the ledger.

use seckill_application::ports::{
    Applied, BatchItem, EntryId, LoadChunk, NewAdjustment, ParkReason, Unreadable, Verdict,
};
use seckill_domain::invariants::{self, Tally};
use seckill_domain::{
    AdjustmentId, Claim, Decision, GateVersion, LeftReason, OrderId, OrderStatus, RejectReason,
    Sequence, Stage, Ticket, VoucherId,
};

use crate::fixture::{PARTITION, VOUCHER, World, claim, now};

fn stage(world: &World, order: u64) -> Option<Stage> {
    let found = now(world.book.ledger.order(OrderId::new(order))).unwrap();
    found.map(|order| order.stage)
}

fn rejected(reason: RejectReason) -> Stage {
    Stage::Rejected { reason }
}

/// The ledger alone, with nothing in flight.
fn tally(world: &World) -> Tally {
    let tally = now(world
        .book
        .ledger
        .tally(VOUCHER, GateVersion::new(u64::MAX - 1)));
    let tally = tally.unwrap().unwrap();
    Tally {
        total: tally.total.into(),
        free: tally.stock.into(),
        in_flight: 0,
        parked: tally.parked.into(),
        awaiting_payment: tally.awaiting_payment.into(),
        paid: tally.paid.into(),
    }
}

#[test]
fn a_grant_too_many_is_rejected_with_a_reason_and_takes_nothing() {
    let world = World::new();
    world.publish(1);
    let verdicts = world.apply(vec![
        Decision::Granted(claim(1)),
        Decision::Granted(claim(2)),
    ]);
    let surplus = Verdict::Rejected(RejectReason::NoStock);
    assert_eq!(verdicts, [Verdict::Confirmed, surplus]);
    assert_eq!(stage(&world, 1), Some(Stage::PendingPayment));
    assert_eq!(stage(&world, 2), Some(rejected(RejectReason::NoStock)));
    assert!(invariants::conserved(&tally(&world)));
}

#[test]
fn a_buyer_beyond_his_limit_is_rejected_whatever_the_gate_says() {
    let world = World::new();
    world.publish(10);
    let second = Claim {
        order: OrderId::new(2),
        ..claim(1)
    };
    let verdicts = world.apply(vec![Decision::Granted(claim(1)), Decision::Granted(second)]);
    let beyond = Verdict::Rejected(RejectReason::LimitReached);
    assert_eq!(verdicts, [Verdict::Confirmed, beyond]);
    assert_eq!(tally(&world).awaiting_payment, 1);
}

#[test]
fn the_same_decision_again_changes_nothing() {
    let world = World::new();
    world.publish(10);
    world.apply(vec![Decision::Granted(claim(1))]);
    let verdicts = world.apply(vec![
        Decision::Granted(claim(1)),
        Decision::Promoted(claim(1)),
    ]);
    assert_eq!(verdicts, [Verdict::AlreadyThere; 2]);
    assert_eq!(world.voucher().stock_units, 9);
}

#[test]
fn a_waiting_order_is_promoted_by_a_promotion_or_a_grant_and_keeps_its_turn() {
    let world = World::new();
    world.publish(10);
    let joined = |buyer| Decision::Joined {
        claim: claim(buyer),
        ticket: Ticket::new(buyer),
    };
    world.apply(vec![joined(1), joined(2), joined(3)]);
    let position = |order| now(world.book.ledger.waiting_position(OrderId::new(order))).unwrap();
    assert_eq!([position(1), position(3)], [Some(1), Some(3)]);
    let left = Decision::Left {
        claim: claim(3),
        reason: LeftReason::ClosedOut,
    };
    let verdicts = world.apply(vec![
        Decision::Promoted(claim(1)),
        Decision::Granted(claim(2)),
        left,
    ]);
    assert_eq!(verdicts, [Verdict::Confirmed; 3]);
    assert_eq!(stage(&world, 1), Some(Stage::PendingPayment));
    assert_eq!(stage(&world, 2), Some(Stage::PendingPayment));
    assert_eq!(stage(&world, 3), Some(Stage::ClosedOut));
    assert_eq!(position(1), None);
    let order = now(world.book.ledger.order(OrderId::new(2)))
        .unwrap()
        .unwrap();
    assert_eq!(order.ticket, Some(Ticket::new(2)));
    assert!(order.expires_at.is_some());
}

#[test]
fn an_offered_grant_that_found_no_stock_is_readable_as_lost() {
    let world = World::new();
    world.publish(1);
    assert_eq!(
        world.apply(vec![Decision::Lost(claim(1))]),
        [Verdict::Confirmed]
    );
    assert_eq!(stage(&world, 1), Some(rejected(RejectReason::Lost)));
    assert_eq!(world.voucher().stock_units, 1);
}

#[test]
fn a_message_that_cannot_be_applied_is_parked_and_blocks_nobody() {
    let world = World::new();
    world.publish(10);
    let stranger = Claim {
        voucher: VoucherId::new(99),
        ..claim(1)
    };
    let nothing = Claim {
        quantity: 0,
        ..claim(2)
    };
    let verdicts = world.apply(vec![
        Decision::Granted(stranger),
        Decision::Granted(nothing),
        Decision::Granted(claim(3)),
    ]);
    let expected = [
        Verdict::Parked(ParkReason::UnknownVoucher),
        Verdict::Parked(ParkReason::BadValues),
        Verdict::Confirmed,
    ];
    assert_eq!(verdicts, expected);
    let parked = now(world.book.parked.list(true, None, 100)).unwrap();
    assert_eq!(parked.items.len(), 2);
}

#[test]
fn the_units_of_a_parked_grant_leave_the_stock_and_it_still_counts_as_held() {
    let world = World::new();
    world.publish(10);
    // The joining said one unit; the promotion says three.
    let joined = Decision::Joined {
        claim: claim(1),
        ticket: Ticket::new(1),
    };
    let other = Claim {
        key: Some("k".parse().unwrap()),
        quantity: 3,
        ..claim(1)
    };
    let verdicts = world.apply(vec![joined, Decision::Promoted(other)]);
    let parked = Verdict::Parked(ParkReason::BadValues);
    assert_eq!(verdicts, [Verdict::Confirmed, parked]);
    let counted = tally(&world);
    assert_eq!((counted.free, counted.parked), (7, 3));
    assert!(invariants::conserved(&counted));
    let stages = now(world.book.ledger.stages(&[OrderId::new(1)])).unwrap();
    assert_eq!(stages, [(OrderId::new(1), OrderStatus::Queued)]);
    let snapshot = now(world.book.ledger.sale_snapshot(VOUCHER))
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.sale.free, 7);
    let chunk = &snapshot.chunks[0];
    let held: Vec<u32> = chunk.holders.iter().map(|it| it.held.quantity).collect();
    assert_eq!((held, chunk.seats.len(), chunk.keys.len()), (vec![3], 0, 1));
}

#[test]
fn a_snapshot_of_nobody_still_has_a_chunk() {
    let world = World::new();
    world.publish(10);
    let snapshot = now(world.book.ledger.sale_snapshot(VOUCHER))
        .unwrap()
        .unwrap();
    assert_eq!(snapshot.chunks, [LoadChunk::default()]);
}

#[test]
fn units_for_an_order_that_ended_without_are_refused() {
    let world = World::new();
    world.publish(1);
    let left = Decision::Left {
        claim: claim(1),
        reason: LeftReason::Withdrawn,
    };
    world.apply(vec![
        left,
        Decision::Granted(claim(2)),
        Decision::Granted(claim(3)),
    ]);
    let verdicts = world.apply(vec![
        Decision::Promoted(claim(1)),
        Decision::Promoted(claim(3)),
    ]);
    let wrong = [RejectReason::Lost, RejectReason::NoStock].map(Verdict::Rejected);
    assert_eq!(verdicts, wrong);
    assert_eq!(stage(&world, 1), Some(Stage::Withdrawn), "as it was");
}

#[test]
fn a_key_buys_once_even_if_the_gate_forgot_it() {
    let world = World::new();
    world.publish(10);
    let with_key = |buyer, order| Claim {
        order: OrderId::new(order),
        key: Some("k".parse().unwrap()),
        ..claim(buyer)
    };
    let left = Decision::Left {
        claim: with_key(1, 1),
        reason: LeftReason::Withdrawn,
    };
    let verdicts = world.apply(vec![
        left,
        Decision::Granted(with_key(1, 2)),
        Decision::Granted(with_key(3, 3)),
    ]);
    let twice = Verdict::Rejected(RejectReason::LimitReached);
    assert_eq!(verdicts, [Verdict::Confirmed, twice, Verdict::Confirmed]);
    assert_eq!(world.voucher().stock_units, 9);
}

#[test]
fn an_unreadable_entry_moves_the_position_and_takes_no_number() {
    let world = World::new();
    let mut batch = world.batch(Vec::new());
    let entry = EntryId {
        millis: 7,
        counter: 0,
    };
    let body = Unreadable {
        raw: "?".to_owned(),
        reason: "?".to_owned(),
        named: None,
    };
    batch.items = vec![BatchItem::Unreadable {
        entry,
        body,
        taken: None,
    }];
    batch.up_to = entry;
    let applied = now(world.book.admissions.apply(&batch)).unwrap();
    let Applied::Committed { verdicts, head, .. } = applied else {
        panic!("{applied:?}");
    };
    assert_eq!(verdicts, [Verdict::Parked(ParkReason::Unreadable)]);
    assert_eq!((head.applied, head.entry), (Sequence::default(), entry));
}

#[test]
fn a_withdrawal_shrinks_the_sale_once() {
    let world = World::new();
    world.publish(10);
    let mut unit = now(world.book.ledger.begin()).unwrap();
    let wish = NewAdjustment {
        voucher: VOUCHER,
        delta: -4,
        reason: "damaged".to_owned(),
        key: None,
    };
    now(unit.record_adjustment(&wish)).unwrap();
    now(unit.commit()).unwrap();
    let withdrawn = Decision::Withdrawn {
        voucher: VOUCHER,
        units: 4,
        adjustment: AdjustmentId::new(1),
    };
    assert_eq!(world.apply(vec![withdrawn.clone()]), [Verdict::Confirmed]);
    assert_eq!(world.apply(vec![withdrawn]), [Verdict::AlreadyThere]);
    let voucher = world.voucher();
    assert_eq!((voucher.total_units, voucher.stock_units), (6, 6));
    let unknown = Decision::Withdrawn {
        voucher: VOUCHER,
        units: 4,
        adjustment: AdjustmentId::new(9),
    };
    let verdicts = world.apply(vec![unknown]);
    assert_eq!(verdicts, [Verdict::Parked(ParkReason::BadValues)]);
    assert!(
        invariants::conserved(&tally(&world)),
        "its units are parked"
    );
}

#[test]
fn a_fenced_writer_changes_nothing() {
    let world = World::new();
    world.publish(10);
    let old = world.batch(vec![Decision::Granted(claim(1))]);
    let head = now(world.book.admissions.take_over(PARTITION)).unwrap();
    let applied = now(world.book.admissions.apply(&old)).unwrap();
    assert_eq!(applied, Applied::Stale(head));
    assert_eq!(stage(&world, 1), None);
}

#[test]
fn a_number_is_known_only_with_what_was_decided_under_it() {
    let world = World::new();
    world.publish(10);
    let ours = world.batch(vec![Decision::Granted(claim(1))]).items;
    let other = world.batch(vec![Decision::Granted(claim(2))]).items;
    world.apply(vec![Decision::Granted(claim(1))]);
    let has = |items: &[BatchItem]| now(world.book.admissions.has_applied(PARTITION, items));
    assert!(has(&ours).unwrap());
    assert!(!has(&other).unwrap(), "the stream went back and moved on");
}

//! What can be asked of the gate without changing it.

use seckill_application::ports::{EntryId, GateOrder, LoadToken, NotLoaded, Place, PlaceReply};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, GateVersion, LeftReason, OrderId, PlaceAtFirst,
    Sequence, VoucherId,
};

use super::loading::Load;
use super::opening::{FIRST_EPOCH, Opening, VOUCHER};
use super::stall::{Stall, new_order};
use super::{HotHarness, PARTITIONS, promises};

promises! { gate_reads over dyn HotHarness:
    the_gate_answers_a_ping,
    facts_come_in_the_order_asked,
    facts_of_a_hundred_vouchers_are_one_question,
    a_granted_order_is_found_at_once,
    an_order_that_waits_is_found_with_its_place,
    an_order_that_was_promoted_is_found_with_its_units,
    an_order_that_gave_its_units_back_holds_none,
    an_order_is_the_ledgers_once_its_last_decision_is_applied,
    orders_are_found_in_every_partition,
    a_gate_that_is_not_loaded_does_not_say_that_nobody_waits,
    a_place_is_of_one_voucher,
    a_tally_counts_what_was_taken_after_an_entry,
    a_tally_is_of_one_voucher,
    a_voucher_that_is_not_loaded_has_no_tally,
}

async fn the_gate_answers_a_ping(harness: &dyn HotHarness) {
    harness.hot().gate.ping().await.unwrap();
}

async fn facts_come_in_the_order_asked(harness: &dyn HotHarness) {
    let [first, second] = [VOUCHER.get() + 10, VOUCHER.get() + 11].map(VoucherId::new);
    let first = Opening::of(1).voucher(first).open(harness).await;
    let second = Opening::of(2).voucher(second).limit(2).open(harness).await;
    let asked = [
        second.voucher,
        VoucherId::new(1),
        first.voucher,
        second.voucher,
    ];
    let facts = first.hot.gate.facts(&asked).await.unwrap();
    let expected = [
        Some(second.facts().await),
        None,
        Some(first.facts().await),
        Some(second.facts().await),
    ];
    assert_eq!(facts, expected);
    assert_eq!(facts[0].unwrap().terms, second.terms);
    assert_eq!(facts[0].unwrap().pulse.free, 2);
}

async fn facts_of_a_hundred_vouchers_are_one_question(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let asked: Vec<VoucherId> = (0..100)
        .map(|n| VoucherId::new(VOUCHER.get() + n))
        .collect();
    let facts = stall.hot.gate.facts(&asked).await.unwrap();
    assert_eq!(facts.len(), 100);
    assert!(facts[0].is_some() && facts[1..].iter().all(Option::is_none));
    assert_eq!(stall.hot.gate.facts(&[]).await.unwrap(), []);
}

async fn find(stall: &Stall, attempt: &Attempt) -> GateOrder {
    let found = stall.hot.gate.find_order(attempt.order).await.unwrap();
    let found = found.unwrap_or_else(|| panic!("{attempt:?} is known"));
    let expected = Claim {
        key: None,
        ..stall.claim(attempt)
    };
    assert_eq!(found.claim, expected);
    found
}

async fn a_granted_order_is_found_at_once(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let before = harness.gate_time().await;
    let attempt = stall.keyed(1, 2, "k");
    stall.admit(&attempt).await;
    let after = harness.gate_time().await;
    let found = find(&stall, &attempt).await;
    assert_eq!(found.first, PlaceAtFirst::Granted);
    assert!(found.holds_units);
    assert_eq!(found.position, None);
    assert!(
        (before..=after).contains(&found.decided_at),
        "{before:?} {found:?} {after:?}"
    );
    let unknown = new_order();
    assert_eq!(stall.hot.gate.find_order(unknown).await.unwrap(), None);
}

async fn an_order_that_waits_is_found_with_its_place(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    stall.waiting(1, 1).await;
    let attempt = stall.waiting(2, 1).await;
    let found = find(&stall, &attempt).await;
    assert_eq!(found.first, PlaceAtFirst::Waitlisted);
    assert!(!found.holds_units);
    assert_eq!((found.position, found.left), (Some(2), None));
}

async fn an_order_that_was_promoted_is_found_with_its_units(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    let attempt = stall.waiting(1, 1).await;
    harness.elapse(std::time::Duration::from_millis(5)).await;
    let before = harness.gate_time().await;
    stall.add(1).await;
    let promoted = find(&stall, &attempt).await;
    assert!(promoted.decided_at >= before, "{promoted:?} {before:?}");
    let found = find(&stall, &attempt).await;
    assert_eq!(found.first, PlaceAtFirst::Waitlisted);
    assert!(found.holds_units);
    assert_eq!(found.position, None);
}

async fn an_order_that_gave_its_units_back_holds_none(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let held = stall.granted(1, 1).await;
    let waited = stall.waiting(2, 1).await;
    stall.leave(2).await;
    stall.release(&held).await;
    let left = [(held, None), (waited, Some(LeftReason::Withdrawn))];
    for (attempt, reason) in left {
        let found = find(&stall, &attempt).await;
        assert!(!found.holds_units);
        assert_eq!((found.position, found.left), (None, reason));
    }
}

/// From then on the ledger alone can say what became of it.
async fn an_order_is_the_ledgers_once_its_last_decision_is_applied(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    // One entry of three decisions.
    let attempts: Vec<Attempt> = (1..=3).map(|buyer| stall.attempt(buyer, 1)).collect();
    stall.admit_all(&attempts).await;
    let applied = async |number: u64| {
        let (stream, number) = (&stall.hot.stream, Sequence::new(number));
        let ack = stream.ack(stall.partition, stall.epoch, &[], number);
        ack.await.unwrap();
        let mut applied = Vec::new();
        for attempt in &attempts {
            applied.push(find(&stall, attempt).await.applied);
        }
        applied
    };
    assert_eq!(applied(0).await, [false, false, false]);
    assert_eq!(applied(1).await, [true, false, false]);
    assert_eq!(applied(3).await, [true, true, true]);
    stall.release(&attempts[0]).await;
    assert_eq!(applied(3).await, [true, false, true], "promoted since");
    assert_eq!(applied(4).await, [true, true, true]);
}

async fn orders_are_found_in_every_partition(harness: &dyn HotHarness) {
    for number in 0..u64::from(PARTITIONS) {
        let voucher = VoucherId::new(VOUCHER.get() + number);
        let stall = Opening::of(1).voucher(voucher).open(harness).await;
        let attempt = stall.granted(1, 1).await;
        find(&stall, &attempt).await;
    }
}

async fn a_gate_that_is_not_loaded_does_not_say_that_nobody_waits(harness: &dyn HotHarness) {
    let nothing = harness.hot().gate.place(VOUCHER, BuyerId::new(1)).await;
    let partition = PlaceReply::NotLoaded(NotLoaded::Partition);
    assert_eq!(nothing.unwrap(), partition);
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    stall.waiting(1, 1).await;
    assert_eq!(stall.place_reply(2).await, PlaceReply::Nowhere);
    Load::begun(&stall.hot, VOUCHER, "token").await;
    let loading = PlaceReply::NotLoaded(NotLoaded::Loading);
    assert_eq!(stall.place_reply(1).await, loading);
    let token = LoadToken("token".to_owned());
    stall.hot.loader.abandon(VOUCHER, &token).await.unwrap();
    let unloaded = PlaceReply::NotLoaded(NotLoaded::Voucher);
    assert_eq!(stall.place_reply(1).await, unloaded);
}

async fn a_place_is_of_one_voucher(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    let voucher = VoucherId::new(VOUCHER.get() + u64::from(PARTITIONS));
    let other = Opening::of(0)
        .voucher(voucher)
        .waitlist(5)
        .open(harness)
        .await;
    let attempt = stall.waiting(1, 1).await;
    assert_eq!(other.place(1).await, None);
    let place = Place::Waiting {
        order: attempt.order,
        position: 1,
        length: 1,
    };
    assert_eq!(stall.place(1).await, Some(place));
}

/// Units in flight are part of the balance: hole 14 replenishes what was in flight.
async fn a_tally_counts_what_was_taken_after_an_entry(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(5).waitlist(5).open(harness).await;
    stall.granted(1, 2).await;
    let middle = stall.log().await.end();
    stall.granted(2, 3).await;
    let adjustment = AdjustmentId::new(1);
    stall
        .hot
        .gate
        .withdraw(stall.voucher, 4, adjustment)
        .await
        .unwrap();
    stall.waiting(3, 1).await;
    stall.waiting(4, 1).await;
    stall.leave(3).await;
    stall.add(1).await;
    let end = stall.log().await.end();
    for (after, units_after) in [(EntryId::START, 10), (middle, 8), (end, 0)] {
        let tally = stall
            .hot
            .gate
            .tally(stall.voucher, after)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(tally.units_after, units_after, "after {after}");
        assert_eq!(tally.free, 0);
        assert_eq!(tally.version, GateVersion::new(1));
        assert_eq!(tally.epoch, FIRST_EPOCH);
        assert_eq!(tally.sequence, stall.log().await.last());
    }
}

async fn a_tally_is_of_one_voucher(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let voucher = VoucherId::new(VOUCHER.get() + u64::from(PARTITIONS));
    let other = Opening::of(5).voucher(voucher).limit(5).open(harness).await;
    stall.granted(1, 2).await;
    other.granted(1, 3).await;
    let units = async |stall: &Stall| {
        let tally = stall.hot.gate.tally(stall.voucher, EntryId::START).await;
        tally.unwrap().unwrap().units_after
    };
    assert_eq!(units(&stall).await, 2);
    assert_eq!(units(&other).await, 3);
}

async fn a_voucher_that_is_not_loaded_has_no_tally(harness: &dyn HotHarness) {
    let gate = &harness.hot().gate;
    assert_eq!(gate.tally(VOUCHER, EntryId::START).await.unwrap(), None);
    assert_eq!(gate.find_order(OrderId::new(1)).await.unwrap(), None);
    Opening::of(1).open(harness).await;
    let unknown = VoucherId::new(VOUCHER.get() + 40);
    assert_eq!(gate.tally(unknown, EntryId::START).await.unwrap(), None);
}

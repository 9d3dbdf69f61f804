//! The waitlist at the gate: strict order of arrival, one place per buyer, nobody jumps.

use seckill_application::ports::{LeaveReply, Place};
use seckill_domain::{
    Admission, Attempt, Claim, Decision, GateChange, LeftReason, SaleTerms, Ticket,
};

use super::opening::{FIRST_EPOCH, Opening};
use super::stall::{Stall, waitlisted};
use super::{HotHarness, promises};

promises! { gate_waitlist over dyn HotHarness:
    buyers_join_in_order_of_arrival_and_are_told_their_place,
    each_further_click_is_the_same_place,
    the_list_is_bounded,
    a_list_that_was_shortened_keeps_whom_it_has,
    while_somebody_waits_new_buyers_wait_too,
    a_unit_that_comes_back_goes_to_the_head_in_the_same_step,
    turns_follow_arrival_and_not_ids,
    units_add_up_for_a_head_who_wants_several,
    a_head_who_can_never_be_served_leaves,
    a_head_whose_limit_filled_up_leaves,
    a_place_can_be_given_up_and_is_given_up_once,
    those_behind_a_leaver_move_up,
    whoever_leaves_before_the_head_can_be_served_lets_the_next_be,
    a_promoted_buyer_cannot_leave_any_more,
    a_direct_buyer_is_not_on_the_list,
    whoever_left_may_join_again_at_the_end,
    a_promoted_order_keeps_the_id_and_key_of_its_place,
}

pub(super) async fn sold_out_with_waitlist(
    harness: &dyn HotHarness,
    capacity: u32,
) -> (Stall, Attempt) {
    let stall = Opening::of(1).waitlist(capacity).open(harness).await;
    let holder = stall.granted(1, 1).await;
    (stall, holder)
}

/// What was decided about these, in order: who, and as what.
pub(super) fn promoted(stall: &Stall, attempts: &[&Attempt]) -> Vec<Decision> {
    let claims = attempts.iter().map(|attempt| stall.claim(attempt));
    claims.map(Decision::Promoted).collect()
}

pub(super) fn left(claim: Claim, reason: LeftReason) -> Decision {
    Decision::Left { claim, reason }
}

async fn buyers_join_in_order_of_arrival_and_are_told_their_place(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 5).await;
    let mut expected = Vec::new();
    for (position, buyer) in (1..).zip([900, 10, 200]) {
        let (attempt, admission) = stall.buy(buyer, 1).await;
        let order = attempt.order;
        assert_eq!(admission, waitlisted(order, position));
        let length = position;
        let place = Place::Waiting {
            order,
            position,
            length,
        };
        assert_eq!(stall.place(buyer).await, Some(place));
        expected.push(stall.claim(&attempt));
    }
    let log = stall.log().await;
    let joined: Vec<Decision> = log.numbered().skip(1).map(|(_, it)| it.clone()).collect();
    let numbers = log.numbered().skip(1).map(|(number, _)| number);
    let expected: Vec<Decision> = expected
        .into_iter()
        .zip(numbers.map(|number| Ticket::drawn_at(FIRST_EPOCH, number)))
        .map(|(claim, ticket)| Decision::Joined { claim, ticket })
        .collect();
    assert_eq!(joined, expected, "a turn is the number of its decision");
}

/// Hole 3: each click with a fresh order id is a new place.
async fn each_further_click_is_the_same_place(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 5).await;
    stall.waiting(2, 1).await;
    let order = stall.waiting(3, 1).await.order;
    for _ in 0..3 {
        let waits = Admission::AlreadyWaiting { order, position: 2 };
        assert_eq!(stall.buy(3, 1).await.1, waits);
    }
    assert_eq!(stall.pulse().await.waiting, 2);
}

async fn the_list_is_bounded(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 2).await;
    stall.waiting(2, 1).await;
    assert!(stall.pulse().await.waitlist_open);
    stall.waiting(3, 1).await;
    assert!(!stall.pulse().await.waitlist_open);
    assert_eq!(stall.buy(4, 1).await.1, Admission::SoldOut);
    stall.leave(2).await;
    stall.waiting(4, 1).await;
}

async fn a_list_that_was_shortened_keeps_whom_it_has(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 3).await;
    let first = stall.waiting(2, 1).await;
    let second = stall.waiting(3, 1).await;
    let shorter = SaleTerms {
        waitlist_capacity: 1,
        ..stall.terms
    };
    stall.follow(vec![GateChange::SetTerms(shorter)]).await;
    assert_eq!(stall.buy(4, 1).await.1, Admission::SoldOut);
    assert_eq!(stall.pulse().await.waiting, 2);
    stall.release(&holder).await;
    stall.release(&first).await;
    let decisions = stall.decisions().await;
    assert_eq!(decisions[3..], promoted(&stall, &[&first, &second]));
}

/// Hole 13: the freed unit is open to whoever clicks first.
async fn while_somebody_waits_new_buyers_wait_too(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    stall.waiting(2, 2).await;
    let (attempt, admission) = stall.buy(3, 1).await;
    let order = attempt.order;
    let waits = waitlisted(order, 2);
    assert_eq!(admission, waits, "though a unit is free");
    assert_eq!(stall.free().await, 1);
}

async fn a_unit_that_comes_back_goes_to_the_head_in_the_same_step(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    let head = stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    let more = stall.release(&holder).await;
    assert!(!more);
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 1));
    let order = head.order;
    let place = Place::Promoted { order, length: 1 };
    assert_eq!(stall.place(2).await, Some(place));
    let last = stall.decisions().await.pop();
    assert_eq!(last, promoted(&stall, &[&head]).pop());
    // The buyer who gave his unit back waits like everybody else.
    let (attempt, admission) = stall.buy(1, 1).await;
    let order = attempt.order;
    assert_eq!(admission, waitlisted(order, 2));
}

/// Hole 3 and bug reports: whole seconds that tie are sorted by the text of the buyer.
async fn turns_follow_arrival_and_not_ids(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 20).await;
    let buyers = [900, 10, 200, 9, u64::MAX, 1_000, 99];
    let mut arrived = Vec::new();
    for buyer in buyers {
        arrived.push(stall.waiting(buyer, 1).await);
    }
    stall.add(3).await;
    stall.add(4).await;
    let decisions = stall.decisions().await;
    let served: Vec<&Attempt> = arrived.iter().collect();
    assert_eq!(decisions[8..], promoted(&stall, &served));
}

async fn units_add_up_for_a_head_who_wants_several(harness: &dyn HotHarness) {
    let stall = Opening::of(3).limit(3).waitlist(5).open(harness).await;
    let mut holders = Vec::new();
    for buyer in 1..=3 {
        holders.push(stall.granted(buyer, 1).await);
    }
    let head = stall.waiting(10, 2).await;
    let next = stall.waiting(11, 1).await;
    stall.release(&holders[0]).await;
    assert_eq!(
        stall.decisions().await.len(),
        5,
        "nobody is served before the head"
    );
    assert_eq!(stall.free().await, 1);
    stall.release(&holders[1]).await;
    stall.release(&holders[2]).await;
    let decisions = stall.decisions().await;
    assert_eq!(decisions[5..], promoted(&stall, &[&head, &next]));
    assert_eq!(stall.free().await, 0);
}

async fn a_head_who_can_never_be_served_leaves(harness: &dyn HotHarness) {
    let stall = Opening::of(3).limit(3).waitlist(5).open(harness).await;
    let holder = stall.granted(1, 2).await;
    let hopeless = stall.waiting(2, 3).await;
    let next = stall.waiting(3, 1).await;
    let adjustment = seckill_domain::AdjustmentId::new(1);
    stall
        .hot
        .gate
        .withdraw(stall.voucher, 1, adjustment)
        .await
        .unwrap();
    stall.settle().await;
    assert_eq!(stall.place(2).await, None, "though no unit is free");
    stall.release(&holder).await;
    stall.settle().await;
    let decisions = stall.decisions().await;
    let sent_away = left(stall.claim(&hopeless), LeftReason::NotEnoughUnits);
    assert_eq!(decisions[4], sent_away);
    assert_eq!(decisions[5..], promoted(&stall, &[&next]));
    assert_eq!(stall.place(2).await, None);
}

async fn a_head_whose_limit_filled_up_leaves(harness: &dyn HotHarness) {
    let stall = Opening::of(2).limit(2).waitlist(5).open(harness).await;
    let holder = stall.granted(1, 1).await;
    let hopeless = stall.waiting(2, 2).await;
    let next = stall.waiting(3, 1).await;
    // A grant that this buyer was told of earlier, and that the store had lost since.
    let regained = stall.claim(&stall.attempt(2, 1));
    stall
        .hot
        .loader
        .offer(stall.voucher, std::slice::from_ref(&regained), &[])
        .await
        .unwrap();
    stall.release(&holder).await;
    stall.settle().await;
    let decisions = stall.decisions().await;
    assert_eq!(decisions[3], Decision::Granted(regained));
    let sent_away = left(stall.claim(&hopeless), LeftReason::LimitReached);
    assert_eq!(decisions[4], sent_away);
    assert_eq!(decisions[5..], promoted(&stall, &[&next]));
}

async fn a_place_can_be_given_up_and_is_given_up_once(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 5).await;
    let attempt = stall.waiting(2, 1).await;
    assert_eq!(stall.leave(2).await, LeaveReply::Left(attempt.order));
    assert_eq!(stall.leave(2).await, LeaveReply::NotWaiting);
    assert_eq!(stall.place(2).await, None);
    let gone = left(stall.claim(&attempt), LeftReason::Withdrawn);
    assert_eq!(stall.decisions().await[2..], [gone]);
}

async fn those_behind_a_leaver_move_up(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    let last = stall.waiting(4, 1).await;
    stall.leave(3).await;
    let order = last.order;
    let place = Place::Waiting {
        order,
        position: 2,
        length: 2,
    };
    assert_eq!(stall.place(4).await, Some(place));
    stall.leave(2).await;
    stall.release(&holder).await;
    assert_eq!(
        stall.place(4).await,
        Some(Place::Promoted { order, length: 0 })
    );
}

async fn whoever_leaves_before_the_head_can_be_served_lets_the_next_be(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    stall.waiting(2, 2).await;
    let next = stall.waiting(3, 1).await;
    stall.leave(2).await;
    stall.settle().await;
    let order = next.order;
    assert_eq!(
        stall.place(3).await,
        Some(Place::Promoted { order, length: 0 })
    );
    assert_eq!(stall.free().await, 0);
}

async fn a_promoted_buyer_cannot_leave_any_more(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    let attempt = stall.waiting(2, 1).await;
    stall.release(&holder).await;
    for _ in 0..2 {
        assert_eq!(
            stall.leave(2).await,
            LeaveReply::AlreadyPromoted(attempt.order)
        );
    }
    assert_eq!(stall.decisions().await.len(), 3);
}

async fn a_direct_buyer_is_not_on_the_list(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 5).await;
    assert_eq!(stall.leave(1).await, LeaveReply::NotWaiting);
    assert_eq!(stall.place(1).await, None);
    assert_eq!(stall.leave(77).await, LeaveReply::NotWaiting);
}

async fn whoever_left_may_join_again_at_the_end(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 5).await;
    stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    stall.leave(2).await;
    let (attempt, admission) = stall.buy(2, 1).await;
    let order = attempt.order;
    assert_eq!(admission, waitlisted(order, 2));
}

async fn a_promoted_order_keeps_the_id_and_key_of_its_place(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    let attempt = stall.keyed(2, 1, "k");
    stall.admit(&attempt).await;
    stall.release(&holder).await;
    let promoted = Decision::Promoted(stall.claim(&attempt));
    assert_eq!(stall.decisions().await.last(), Some(&promoted));
    let order = attempt.order;
    assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
    let replayed = Admission::Replayed {
        order,
        first: seckill_domain::PlaceAtFirst::Waitlisted,
    };
    assert_eq!(stall.admit(&stall.keyed(2, 1, "k")).await, replayed);
}

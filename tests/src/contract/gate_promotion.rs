//! Serving the waitlist, stopping to serve it, and sending it home.

use std::time::Duration;

use futures::future::join_all;
use seckill_application::ports::{LeaveReply, NotLoaded, Place};
use seckill_domain::{Attempt, Decision, GateChange, LeftReason, SaleStatus, SaleTerms};

use super::gate_waitlist::{left, promoted, sold_out_with_waitlist};
use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, release_of};
use super::{HotHarness, promises};

promises! { gate_promotion over dyn HotHarness:
    a_pause_stops_promotions_and_resuming_goes_on,
    before_the_sale_opens_nobody_is_promoted,
    many_promotions_are_cut_into_calls,
    of_many_who_serve_the_list_at_once_one_serves_each_place,
    a_closed_sale_sends_everybody_home_in_order,
    a_sale_closed_by_the_clock_sends_everybody_home,
    after_the_close_freed_units_stay_free,
    many_are_sent_home_in_several_calls,
    a_voucher_that_is_not_loaded_has_nothing_to_promote,
}

async fn a_pause_stops_promotions_and_resuming_goes_on(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    let head = stall.waiting(2, 1).await;
    stall.turn(SaleStatus::Paused).await;
    stall.release(&holder).await;
    stall.settle().await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (1, 1));
    stall.turn(SaleStatus::Published).await;
    stall.settle().await;
    let order = head.order;
    assert_eq!(
        stall.place(2).await,
        Some(Place::Promoted { order, length: 0 })
    );
}

async fn before_the_sale_opens_nobody_is_promoted(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    stall.waiting(2, 1).await;
    let later = SaleTerms {
        opens_at: stall.terms.closes_at,
        closes_at: stall.terms.closes_at.plus(Duration::from_mins(1)),
        ..stall.terms
    };
    stall
        .follow(vec![GateChange::SetTerms(later), release_of(&holder)])
        .await;
    stall.settle().await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (1, 1));
}

async fn many_promotions_are_cut_into_calls(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 500).await;
    let crowd = crowd(&stall, 200).await;
    assert!(stall.add(150).await, "more is left to do");
    let at_first = 200 - stall.pulse().await.waiting;
    assert!(
        (1..=128).contains(&at_first),
        "{at_first} promotions in one call"
    );
    let mut calls = 1;
    while stall.hot.gate.promote(stall.voucher).await.unwrap() {
        calls += 1;
        assert!(calls < 150, "there is always more");
    }
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 50));
    let served: Vec<&Attempt> = crowd.iter().take(150).collect();
    assert_eq!(stall.decisions().await[201..], promoted(&stall, &served));
    assert!(!stall.hot.gate.promote(stall.voucher).await.unwrap());
}

/// Stands for: the head is read, and removed in a second step, so that two workers promote the same
/// buyer and a unit is lost.
async fn of_many_who_serve_the_list_at_once_one_serves_each_place(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 500).await;
    let crowd = crowd(&stall, 200).await;
    assert!(stall.add(150).await, "more is left to do");
    let promote = || stall.hot.gate.promote(stall.voucher);
    for reply in join_all((0..8).map(|_| promote())).await {
        reply.unwrap();
    }
    stall.settle().await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 50));
    let served: Vec<&Attempt> = crowd.iter().take(150).collect();
    assert_eq!(stall.decisions().await[201..], promoted(&stall, &served));
}

async fn a_closed_sale_sends_everybody_home_in_order(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 20).await;
    let crowd = crowd(&stall, 5).await;
    stall.turn(SaleStatus::Closed).await;
    stall.settle().await;
    assert_eq!(stall.decisions().await[6..], closed_out(&stall, &crowd));
    assert_eq!(stall.pulse().await.waiting, 0);
    assert_eq!(stall.place(1_000).await, None);
}

async fn a_sale_closed_by_the_clock_sends_everybody_home(harness: &dyn HotHarness) {
    let wait = Duration::from_millis(1_500);
    let now = harness.gate_time().await;
    let opening = Opening::of(1).waitlist(5).window(now, now.plus(wait));
    let stall = opening.open(harness).await;
    stall.granted(1, 1).await;
    let attempt = stall.waiting(2, 1).await;
    stall.settle().await;
    assert_eq!(stall.pulse().await.waiting, 1, "not before the end");
    harness.elapse(wait).await;
    stall.settle().await;
    assert_eq!(stall.decisions().await[2..], closed_out(&stall, &[attempt]));
}

async fn after_the_close_freed_units_stay_free(harness: &dyn HotHarness) {
    let (stall, holder) = sold_out_with_waitlist(harness, 5).await;
    let attempt = stall.waiting(2, 1).await;
    stall.turn(SaleStatus::Closed).await;
    stall.release(&holder).await;
    stall.settle().await;
    assert_eq!(stall.decisions().await[2..], closed_out(&stall, &[attempt]));
    assert_eq!(stall.free().await, 1);
}

async fn many_are_sent_home_in_several_calls(harness: &dyn HotHarness) {
    let (stall, _) = sold_out_with_waitlist(harness, 500).await;
    let crowd = crowd(&stall, 200).await;
    stall.turn(SaleStatus::Closed).await;
    let waiting = stall.pulse().await.waiting;
    assert!(waiting >= 72, "at most 128 a call: {waiting} wait");
    assert!(stall.hot.gate.promote(stall.voucher).await.unwrap() || waiting <= 128);
    stall.settle().await;
    assert_eq!(stall.decisions().await[201..], closed_out(&stall, &crowd));
}

async fn a_voucher_that_is_not_loaded_has_nothing_to_promote(harness: &dyn HotHarness) {
    let gate = &harness.hot().gate;
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let stall = Opening::of(1).open(harness).await;
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let not_loaded = LeaveReply::NotLoaded(NotLoaded::Voucher);
    assert_eq!(stall.leave(1).await, not_loaded);
}

/// Lets so many buyers join, from buyer 1,000 on.
async fn crowd(stall: &Stall, buyers: u64) -> Vec<Attempt> {
    let crowd: Vec<Attempt> = (0..buyers).map(|n| stall.attempt(1_000 + n, 1)).collect();
    for batch in crowd.chunks(50) {
        stall.admit_all(batch).await;
    }
    crowd
}

fn closed_out(stall: &Stall, attempts: &[Attempt]) -> Vec<Decision> {
    let claims = attempts.iter().map(|attempt| stall.claim(attempt));
    claims
        .map(|claim| left(claim, LeftReason::ClosedOut))
        .collect()
}

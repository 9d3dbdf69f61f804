//! `PurchaseGate::follow`: what reconciliation has the gate put right.

use seckill_application::ports::NotLoaded;
use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, Decision, GateChange, LeftReason, SaleStatus,
};

use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, release_of};
use super::{HotHarness, promises};

promises! { gate_repairs over dyn HotHarness:
    a_restored_holder_holds_and_takes_no_free_unit,
    a_restored_holder_gives_his_units_back_once,
    whoever_holds_already_is_not_restored_twice,
    a_restored_holder_beside_what_he_has,
    a_restored_holder_waits_no_more,
    another_order_of_a_restored_holder_keeps_its_place,
    restored_holders_are_counted,
    an_appended_grant_is_on_the_stream_again,
    an_appended_grant_changes_nothing_at_the_gate,
    what_the_gate_does_not_hold_is_not_appended,
    what_is_appended_comes_before_what_it_frees,
    what_a_promoted_buyer_holds_is_appended_too,
    many_repairs_fit_one_update,
}

fn restore(claim: &Claim) -> GateChange {
    GateChange::RestoreHolder(claim.clone())
}

fn append(claim: &Claim) -> GateChange {
    GateChange::AppendAgain(claim.clone())
}

fn new_claim(stall: &Stall, buyer: u64, quantity: u32) -> (Attempt, Claim) {
    let attempt = stall.attempt(buyer, quantity);
    let claim = stall.claim(&attempt);
    (attempt, claim)
}

async fn orders_of(stall: &Stall, buyer: u64) -> Vec<u64> {
    let found = stall
        .hot
        .gate
        .claimants(VOUCHER, &[BuyerId::new(buyer)])
        .await;
    let found = found.unwrap().expect("loaded").pop().expect("one answer");
    found.held.iter().map(|held| held.order.get()).collect()
}

async fn a_restored_holder_holds_and_takes_no_free_unit(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    let (attempt, claim) = new_claim(&stall, 1, 2);
    stall.follow(vec![restore(&claim)]).await;
    assert_eq!(stall.free().await, 5, "they were taken long ago");
    assert_eq!(orders_of(&stall, 1).await, [attempt.order.get()]);
    let orders = vec![attempt.order];
    assert_eq!(stall.buy(1, 1).await.1, Admission::AlreadyHeld { orders });
    assert_eq!(stall.decisions().await, [], "the ledger knows of it");
}

async fn a_restored_holder_gives_his_units_back_once(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    let (attempt, claim) = new_claim(&stall, 1, 2);
    stall.follow(vec![restore(&claim)]).await;
    stall.release(&attempt).await;
    stall.release(&attempt).await;
    assert_eq!(stall.free().await, 7);
    stall.granted(1, 2).await;
}

async fn whoever_holds_already_is_not_restored_twice(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    let claim = stall.claim(&attempt);
    stall.follow(vec![restore(&claim), restore(&claim)]).await;
    stall.follow(vec![restore(&claim)]).await;
    assert_eq!(orders_of(&stall, 1).await, [attempt.order.get()]);
    stall.granted(1, 1).await;
    stall.release(&attempt).await;
    assert_eq!(stall.free().await, 4);
}

async fn a_restored_holder_beside_what_he_has(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(3).open(harness).await;
    let first = stall.granted(1, 1).await;
    let (second, claim) = new_claim(&stall, 1, 1);
    stall.follow(vec![restore(&claim)]).await;
    let expected = [first.order.get(), second.order.get()];
    assert_eq!(orders_of(&stall, 1).await, expected);
    let remaining = 1;
    let more = stall.buy(1, 2).await.1;
    assert_eq!(more, Admission::LimitExceeded { remaining });
}

async fn a_restored_holder_waits_no_more(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let first = stall.granted(1, 1).await;
    let [second, third] = [stall.waiting(2, 1).await, stall.waiting(3, 1).await];
    stall.follow(vec![restore(&stall.claim(&second))]).await;
    assert_eq!(orders_of(&stall, 2).await, [second.order.get()]);
    assert_eq!(stall.pulse().await.waiting, 1);
    stall.release(&first).await;
    assert_eq!(orders_of(&stall, 3).await, [third.order.get()]);
}

async fn another_order_of_a_restored_holder_keeps_its_place(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    let first = stall.granted(1, 1).await;
    let waiting = stall.waiting(2, 1).await;
    let (restored, claim) = new_claim(&stall, 2, 1);
    stall.follow(vec![restore(&claim)]).await;
    assert_eq!(stall.pulse().await.waiting, 1);
    stall.release(&first).await;
    let expected = [restored.order.get(), waiting.order.get()];
    assert_eq!(orders_of(&stall, 2).await, expected);
}

/// The counts that tell a whole sale from one that lost a key have to include him.
async fn restored_holders_are_counted(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let (attempt, claim) = new_claim(&stall, 1, 1);
    stall.follow(vec![restore(&claim)]).await;
    stall.granted(2, 1).await;
    stall.release(&attempt).await;
    let other = stall.granted(3, 1).await;
    stall.release(&other).await;
    stall.granted(4, 1).await;
    assert_eq!(stall.free().await, 4);
    let survivors = super::loading::survivors(&stall.hot, VOUCHER).await;
    assert_eq!(survivors.holders.len(), 2);
}

async fn an_appended_grant_is_on_the_stream_again(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    let (attempt, claim) = new_claim(&stall, 1, 2);
    stall.follow(vec![restore(&claim)]).await;
    stall.granted(2, 1).await;
    stall.follow(vec![append(&claim)]).await;
    // The log itself is held to numbers without a gap.
    let decisions = stall.decisions().await;
    assert_eq!(decisions.len(), 2);
    assert_eq!(decisions[1], Decision::Granted(claim));
    let found = stall.hot.gate.find_order(attempt.order).await.unwrap();
    assert!(found.is_some_and(|found| found.holds_units));
}

async fn an_appended_grant_changes_nothing_at_the_gate(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    let attempt = stall.granted(1, 2).await;
    let claim = stall.claim(&attempt);
    stall.follow(vec![append(&claim)]).await;
    assert_eq!(stall.free().await, 3);
    assert_eq!(orders_of(&stall, 1).await, [attempt.order.get()]);
    let granted = Decision::Granted(claim);
    assert_eq!(stall.decisions().await, [granted.clone(), granted]);
    let order = attempt.order;
    assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
}

async fn what_the_gate_does_not_hold_is_not_appended(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let released = stall.granted(1, 1).await;
    stall.release(&released).await;
    stall.granted(2, 1).await;
    let waiting = stall.waiting(3, 1).await;
    let before = stall.decisions().await;
    let (_, stranger) = new_claim(&stall, 4, 1);
    let impostor = Claim {
        buyer: BuyerId::new(2),
        ..stall.claim(&released)
    };
    let claims = [
        stall.claim(&released),
        stall.claim(&waiting),
        stranger,
        impostor,
    ];
    stall.follow(claims.iter().map(append).collect()).await;
    assert_eq!(stall.decisions().await, before);
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    stall.assert_not_loaded(NotLoaded::Voucher).await;
}

async fn what_is_appended_comes_before_what_it_frees(harness: &dyn HotHarness) {
    let stall = Opening::of(2).waitlist(5).open(harness).await;
    let [kept, gone] = [stall.granted(1, 1).await, stall.granted(2, 1).await];
    let waiting = stall.waiting(3, 1).await;
    let changes = vec![release_of(&gone), append(&stall.claim(&kept))];
    stall.follow(changes).await;
    let expected = [
        Decision::Granted(stall.claim(&kept)),
        Decision::Promoted(stall.claim(&waiting)),
    ];
    assert_eq!(stall.decisions().await[3..], expected);
}

async fn what_a_promoted_buyer_holds_is_appended_too(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let first = stall.granted(1, 1).await;
    let second = stall.waiting(2, 1).await;
    stall.release(&first).await;
    stall.follow(vec![append(&stall.claim(&second))]).await;
    let claim = stall.claim(&second);
    let expected = [Decision::Promoted(claim.clone()), Decision::Granted(claim)];
    assert_eq!(stall.decisions().await[2..], expected);
}

async fn many_repairs_fit_one_update(harness: &dyn HotHarness) {
    let stall = Opening::of(5).waitlist(5).open(harness).await;
    let claims: Vec<Claim> = (1..=300)
        .map(|buyer| new_claim(&stall, buyer, 1).1)
        .collect();
    stall.follow(claims.iter().map(restore).collect()).await;
    let mut changes: Vec<GateChange> = claims.iter().map(append).collect();
    let closed = seckill_domain::SaleTerms {
        status: SaleStatus::Closed,
        ..stall.terms
    };
    let waiting = {
        for buyer in 1_001..=1_005 {
            stall.granted(buyer, 1).await;
        }
        stall.waiting(1_006, 1).await
    };
    changes.push(GateChange::SetTerms(closed));
    stall.follow(changes).await;
    stall.settle().await;
    let decisions = stall.decisions().await;
    let granted: Vec<Decision> = claims.into_iter().map(Decision::Granted).collect();
    assert_eq!(decisions[6..306], granted);
    let left = Decision::Left {
        claim: stall.claim(&waiting),
        reason: LeftReason::ClosedOut,
    };
    assert_eq!(decisions[306..], [left]);
}

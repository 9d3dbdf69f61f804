//! `PurchaseGate::withdraw` and `retire`: units that leave, and sales that leave.

use seckill_application::ports::{
    Admitted, FollowReply, LeaveReply, NotLoaded, PlaceReply, WithdrawReply,
};
use seckill_domain::{AdjustmentId, Decision, SaleStatus, VoucherId};

use super::opening::Opening;
use super::stall::Stall;
use super::{HotHarness, promises};

promises! { gate_stock over dyn HotHarness:
    free_units_are_taken_out_and_written_down,
    the_same_adjustment_takes_units_once,
    more_than_is_free_is_not_taken_at_all,
    a_refused_withdrawal_may_be_tried_again,
    a_paused_or_closed_sale_still_gives_units_up,
    a_voucher_that_is_not_loaded_gives_nothing_up,
    a_retired_voucher_says_so,
    a_sale_with_a_waitlist_is_not_retired,
}

async fn withdraw(stall: &Stall, units: u32, adjustment: u64) -> WithdrawReply {
    let adjustment = AdjustmentId::new(adjustment);
    let gate = &stall.hot.gate;
    gate.withdraw(stall.voucher, units, adjustment)
        .await
        .unwrap()
}

async fn free_units_are_taken_out_and_written_down(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    assert_eq!(
        withdraw(&stall, 3, u64::MAX).await,
        WithdrawReply::Withdrawn
    );
    let facts = stall.facts().await;
    assert_eq!((facts.pulse.free, facts.terms.total_units), (2, 2));
    let withdrawn = Decision::Withdrawn {
        voucher: stall.voucher,
        units: 3,
        adjustment: AdjustmentId::new(u64::MAX),
    };
    assert_eq!(stall.decisions().await, [withdrawn]);
}

async fn the_same_adjustment_takes_units_once(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    for _ in 0..3 {
        assert_eq!(withdraw(&stall, 3, 7).await, WithdrawReply::Withdrawn);
    }
    assert_eq!(stall.free().await, 2);
    assert_eq!(withdraw(&stall, 2, 8).await, WithdrawReply::Withdrawn);
    assert_eq!(stall.free().await, 0);
    assert_eq!(
        withdraw(&stall, 3, 7).await,
        WithdrawReply::Withdrawn,
        "though none is left"
    );
    assert_eq!(stall.decisions().await.len(), 2);
}

async fn more_than_is_free_is_not_taken_at_all(harness: &dyn HotHarness) {
    let stall = Opening::of(3).open(harness).await;
    stall.granted(1, 1).await;
    let reply = withdraw(&stall, 3, 7).await;
    assert_eq!(reply, WithdrawReply::NotEnough { free: 2 });
    let facts = stall.facts().await;
    assert_eq!((facts.pulse.free, facts.terms.total_units), (2, 3));
    assert_eq!(stall.decisions().await.len(), 1);
}

async fn a_refused_withdrawal_may_be_tried_again(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    assert_eq!(
        withdraw(&stall, 1, 7).await,
        WithdrawReply::NotEnough { free: 0 }
    );
    stall.release(&attempt).await;
    assert_eq!(withdraw(&stall, 1, 7).await, WithdrawReply::Withdrawn);
}

async fn a_paused_or_closed_sale_still_gives_units_up(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    stall.turn(SaleStatus::Paused).await;
    assert_eq!(withdraw(&stall, 1, 7).await, WithdrawReply::Withdrawn);
    stall.turn(SaleStatus::Closed).await;
    assert_eq!(withdraw(&stall, 1, 8).await, WithdrawReply::Withdrawn);
}

async fn a_voucher_that_is_not_loaded_gives_nothing_up(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    stall.hot.loader.unload(stall.voucher).await.unwrap();
    let not_loaded = WithdrawReply::NotLoaded(NotLoaded::Voucher);
    assert_eq!(withdraw(&stall, 1, 7).await, not_loaded);
}

async fn a_retired_voucher_says_so(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    let other = VoucherId::new(stall.voucher.get() + u64::from(super::PARTITIONS));
    let other = Opening::of(1).voucher(other).open(harness).await;
    stall.granted(1, 1).await;
    stall.turn(SaleStatus::Closed).await;
    let gate = &stall.hot.gate;
    assert!(gate.retire(stall.voucher).await.unwrap());
    let why = NotLoaded::Retired;
    stall.assert_not_loaded(why).await;
    let reply = stall.ask(&[stall.attempt(1, 1)]).await;
    assert_eq!(
        reply,
        Admitted::NotLoaded(why),
        "the ledger answers repeats"
    );
    assert_eq!(stall.leave(1).await, LeaveReply::NotLoaded(why));
    assert_eq!(
        stall.follow_at(2, Vec::new()).await,
        FollowReply::NotLoaded(why)
    );
    assert_eq!(withdraw(&stall, 1, 7).await, WithdrawReply::NotLoaded(why));
    assert_eq!(gate.facts(&[stall.voucher]).await.unwrap(), [None]);
    assert_eq!(stall.place_reply(1).await, PlaceReply::NotLoaded(why));
    other.granted(1, 1).await;
}

async fn a_sale_with_a_waitlist_is_not_retired(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    stall.waiting(1, 1).await;
    stall.turn(SaleStatus::Closed).await;
    let waits = stall.pulse().await.waiting > 0;
    let retired = stall.hot.gate.retire(stall.voucher).await.unwrap();
    assert_ne!(retired, waits, "while anybody waits");
    stall.settle().await;
    assert!(stall.hot.gate.retire(stall.voucher).await.unwrap());
}

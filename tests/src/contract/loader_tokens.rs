//! `GateLoader`: one loader at a time, and only for as long as its token lives.

use std::time::Duration;

use futures::future::join_all;
use seckill_application::ports::{
    FollowReply, LeaveReply, LoadBegun, LoadChunk, NotLoaded, OpenSale, Opened, WithdrawReply,
};
use seckill_domain::{AdjustmentId, BuyerId, Claim, OrderId, VoucherId};

use super::loading::Load;
use super::opening::{LONG, Opening, VOUCHER, begin_partition};
use super::{HotHarness, promises};

promises! { loader_tokens over dyn HotHarness:
    while_a_voucher_is_loading_the_gate_is_shut,
    a_second_loader_is_kept_away,
    of_many_loaders_one_begins,
    a_loader_may_begin_again_and_gets_its_time_again,
    a_loader_that_is_gone_is_replaced,
    an_expired_token_is_good_for_nothing,
    a_loader_may_give_up,
    only_its_loader_gives_a_voucher_up,
    a_voucher_that_was_given_up_stays_shut,
    an_opened_sale_is_not_opened_again_over_its_buyers,
    a_token_is_used_up_by_opening,
    loading_one_voucher_leaves_the_others_open,
    unloading_shuts_the_gate_until_it_is_loaded_again,
}

const SHORT: Duration = Duration::from_millis(250);

/// A sale to open by hand, and a claim that nobody has.
async fn prepared(harness: &dyn HotHarness) -> (OpenSale, Claim) {
    let (_, sequence) = begin_partition(harness.hot(), harness.partitions(), VOUCHER).await;
    let sale = Opening::of(5).open_sale(harness.gate_time().await, sequence);
    let claim = Claim {
        order: OrderId::new(4),
        voucher: VOUCHER,
        buyer: BuyerId::new(4),
        quantity: 1,
        key: None,
    };
    (sale, claim)
}

async fn while_a_voucher_is_loading_the_gate_is_shut(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    stall.granted(1, 1).await;
    Load::begun(&stall.hot, VOUCHER, "token").await;
    let why = NotLoaded::Loading;
    stall.assert_not_loaded(why).await;
    assert_eq!(stall.leave(1).await, LeaveReply::NotLoaded(why));
    assert_eq!(
        stall.follow_at(1, Vec::new()).await,
        FollowReply::NotLoaded(why)
    );
    let gate = &stall.hot.gate;
    let withdrawn = gate
        .withdraw(VOUCHER, 1, AdjustmentId::new(1))
        .await
        .unwrap();
    assert_eq!(withdrawn, WithdrawReply::NotLoaded(why));
    assert_eq!(gate.facts(&[VOUCHER]).await.unwrap(), [None]);
    assert!(!gate.promote(VOUCHER).await.unwrap());
    assert_eq!(stall.decisions().await.len(), 1);
}

async fn a_second_loader_is_kept_away(harness: &dyn HotHarness) {
    let (sale, claim) = prepared(harness).await;
    let (first, _) = Load::begun(harness.hot(), VOUCHER, "first").await;
    let other = harness.another_process().await;
    let second = Load::under(&other, VOUCHER, "second");
    assert_eq!(second.begin(LONG).await, LoadBegun::Busy);
    second.assert_not_mine(&sale, &claim).await;
    assert_eq!(first.open(&sale).await, Opened::Opened);
}

async fn of_many_loaders_one_begins(harness: &dyn HotHarness) {
    prepared(harness).await;
    let loads: Vec<Load<'_>> = (0..10)
        .map(|n| Load::under(harness.hot(), VOUCHER, &format!("token-{n}")))
        .collect();
    let replies = join_all(loads.iter().map(|load| load.begin(LONG))).await;
    let busy = replies.iter().filter(|reply| **reply == LoadBegun::Busy);
    assert_eq!(busy.count(), 9, "{replies:?}");
}

async fn a_loader_may_begin_again_and_gets_its_time_again(harness: &dyn HotHarness) {
    let (sale, _) = prepared(harness).await;
    let load = Load::under(harness.hot(), VOUCHER, "token");
    let begun = load.begin(SHORT).await;
    assert_eq!(load.begin(LONG).await, begun);
    harness.elapse(2 * SHORT).await;
    assert_eq!(load.open(&sale).await, Opened::Opened);
}

async fn a_loader_that_is_gone_is_replaced(harness: &dyn HotHarness) {
    let (sale, claim) = prepared(harness).await;
    let gone = Load::under(harness.hot(), VOUCHER, "gone");
    gone.begin(SHORT).await;
    harness.elapse(SHORT).await;
    let (next, _) = Load::begun(harness.hot(), VOUCHER, "next").await;
    gone.assert_not_mine(&sale, &claim).await;
    gone.abandon().await;
    assert_eq!(gone.begin(LONG).await, LoadBegun::Busy);
    assert_eq!(next.open(&sale).await, Opened::Opened);
}

async fn an_expired_token_is_good_for_nothing(harness: &dyn HotHarness) {
    let (sale, claim) = prepared(harness).await;
    let load = Load::under(harness.hot(), VOUCHER, "token");
    load.begin(SHORT).await;
    harness.elapse(SHORT).await;
    load.assert_not_mine(&sale, &claim).await;
    assert_eq!(harness.hot().gate.facts(&[VOUCHER]).await.unwrap(), [None]);
    assert!(matches!(load.begin(LONG).await, LoadBegun::Begun { .. }));
    assert_eq!(load.open(&sale).await, Opened::Opened);
}

async fn a_loader_may_give_up(harness: &dyn HotHarness) {
    let (sale, claim) = prepared(harness).await;
    let (load, _) = Load::begun(harness.hot(), VOUCHER, "first").await;
    load.abandon().await;
    load.abandon().await;
    load.assert_not_mine(&sale, &claim).await;
    let (next, _) = Load::begun(harness.hot(), VOUCHER, "second").await;
    assert_eq!(next.open(&sale).await, Opened::Opened);
}

async fn only_its_loader_gives_a_voucher_up(harness: &dyn HotHarness) {
    let (sale, _) = prepared(harness).await;
    let (load, _) = Load::begun(harness.hot(), VOUCHER, "first").await;
    let stranger = Load::under(harness.hot(), VOUCHER, "stranger");
    stranger.abandon().await;
    assert_eq!(stranger.begin(LONG).await, LoadBegun::Busy);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    load.abandon().await;
    assert!(harness.hot().gate.facts(&[VOUCHER]).await.unwrap()[0].is_some());
}

async fn a_voucher_that_was_given_up_stays_shut(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    load.abandon().await;
    stall.assert_not_loaded(NotLoaded::Voucher).await;
}

/// Hole 2: a slow loader overwrites a live counter.
async fn an_opened_sale_is_not_opened_again_over_its_buyers(harness: &dyn HotHarness) {
    let opening = Opening::of(2);
    let stall = opening.clone().open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    stall.granted(1, 1).await;
    // The answer was lost, and the loader asks again.
    let again = load.open(&sale).await;
    assert!(
        matches!(again, Opened::Opened | Opened::NotMine),
        "{again:?}"
    );
    assert_eq!(stall.free().await, 1);
    let attempt = stall.attempt(1, 1);
    assert!(matches!(
        stall.admit(&attempt).await,
        seckill_domain::Admission::AlreadyHeld { .. }
    ));
}

async fn a_token_is_used_up_by_opening(harness: &dyn HotHarness) {
    let (sale, claim) = prepared(harness).await;
    let (load, _) = Load::begun(harness.hot(), VOUCHER, "token").await;
    assert_eq!(load.open(&sale).await, Opened::Opened);
    let holders = std::slice::from_ref(&claim);
    let not_mine = seckill_application::ports::LoadStep::NotMine;
    assert_eq!(load.append(holders, &[]).await, not_mine);
    assert_eq!(load.load(&LoadChunk::default(), 0).await, not_mine);
    let facts = harness.hot().gate.facts(&[VOUCHER]).await.unwrap();
    assert_eq!(facts[0].map(|facts| facts.pulse.free), Some(5));
}

async fn loading_one_voucher_leaves_the_others_open(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let other = VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS));
    let opening = Opening::of(5).voucher(other);
    let other = opening.clone().open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, other.voucher, "token").await;
    stall.granted(1, 1).await;
    other.assert_not_loaded(NotLoaded::Loading).await;
    // What is decided about others meanwhile is no reason to wait.
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    other.granted(1, 1).await;
}

async fn unloading_shuts_the_gate_until_it_is_loaded_again(harness: &dyn HotHarness) {
    let opening = Opening::of(5);
    let stall = opening.clone().open(harness).await;
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    stall.assert_not_loaded(NotLoaded::Voucher).await;
    let stall = opening.open(harness).await;
    stall.granted(1, 1).await;
}

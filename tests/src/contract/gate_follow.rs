//! `PurchaseGate::follow`: the gate follows the ledger, each version once and in order.

use futures::future::join_all;
use seckill_application::ports::{FollowReply, NotLoaded, Place};
use seckill_domain::{
    Admission, BuyerId, GateChange, GateVersion, OrderId, SaleStatus, SaleTerms, Timestamp,
    VoucherId,
};

use super::opening::{Opening, VOUCHER};
use super::stall::{drop_of, release_of};
use super::{HotHarness, promises};

promises! { gate_follow over dyn HotHarness:
    each_version_is_applied_once,
    a_version_whose_predecessor_is_missing_changes_nothing,
    a_sale_goes_on_from_the_version_it_was_opened_with,
    a_relay_that_runs_twice_applies_once,
    units_come_back_from_whoever_holds_them,
    units_do_not_come_back_from_whoever_holds_none,
    a_release_names_order_and_buyer,
    a_dropped_place_is_given_up_and_frees_nothing,
    whoever_stands_behind_a_dropped_place_is_served_at_once,
    only_a_place_of_this_order_and_buyer_is_dropped,
    units_of_one_order_come_back_once,
    a_buyer_who_gave_his_units_back_may_buy_again,
    added_units_are_free_and_count,
    settings_change_but_not_the_total,
    an_update_is_applied_whole,
    an_update_without_a_change_still_counts,
    a_voucher_that_is_not_loaded_follows_nothing,
    vouchers_follow_each_for_itself,
}

const APPLIED: FollowReply = FollowReply::Applied { more: false };

fn add(units: u32) -> Vec<GateChange> {
    vec![GateChange::AddUnits { units }]
}

async fn each_version_is_applied_once(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    for version in 1..=3 {
        assert_eq!(stall.follow_at(version, add(10)).await, APPLIED);
        for old in 0..=version {
            let reply = stall.follow_at(old, add(10)).await;
            assert_eq!(reply, FollowReply::AlreadyApplied, "{old} after {version}");
        }
        let pulse = stall.pulse().await;
        assert_eq!(pulse.version, GateVersion::new(version));
        assert_eq!(u64::from(pulse.free), 1 + 10 * version);
    }
}

async fn a_version_whose_predecessor_is_missing_changes_nothing(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    stall.add(1).await;
    let before = stall.pulse().await;
    let at = GateVersion::new(1);
    assert_eq!(stall.follow_at(3, add(10)).await, FollowReply::Gap { at });
    assert_eq!(stall.pulse().await, before);
    assert_eq!(stall.follow_at(2, add(10)).await, APPLIED);
    assert_eq!(stall.follow_at(3, add(10)).await, APPLIED);
}

async fn a_sale_goes_on_from_the_version_it_was_opened_with(harness: &dyn HotHarness) {
    // More digits than Lua prints of a number by itself.
    let version = 4_503_599_627_370_497;
    let stall = Opening::of(1).version(version).open(harness).await;
    assert_eq!(
        stall.follow_at(version, add(1)).await,
        FollowReply::AlreadyApplied
    );
    let at = GateVersion::new(version);
    assert_eq!(
        stall.follow_at(version + 2, add(1)).await,
        FollowReply::Gap { at }
    );
    assert_eq!(stall.follow_at(version + 1, add(1)).await, APPLIED);
    assert_eq!(stall.pulse().await.version, GateVersion::new(version + 1));
}

async fn a_relay_that_runs_twice_applies_once(harness: &dyn HotHarness) {
    let stall = Opening::of(0).open(harness).await;
    let replies = join_all((0..8).map(|_| stall.follow_at(1, add(5)))).await;
    let applied = replies.iter().filter(|reply| **reply == APPLIED).count();
    assert_eq!(applied, 1, "{replies:?}");
    assert_eq!(stall.free().await, 5);
}

async fn units_come_back_from_whoever_holds_them(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let two = stall.granted(1, 2).await;
    let three = stall.granted(1, 3).await;
    stall.release(&two).await;
    assert_eq!(stall.free().await, 2);
    let orders = vec![three.order];
    stall.granted(1, 2).await;
    let Admission::AlreadyHeld { orders: held } = stall.buy(1, 1).await.1 else {
        panic!("at the limit");
    };
    assert_eq!(held[..1], orders);
}

async fn units_do_not_come_back_from_whoever_holds_none(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    stall.granted(1, 1).await;
    let waiting = stall.waiting(2, 1).await;
    let stranger = stall.attempt(3, 1);
    stall.release(&stranger).await;
    stall.release(&waiting).await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 1));
    assert_eq!(
        pulse.version,
        GateVersion::new(2),
        "the version moves on all the same"
    );
}

async fn a_release_names_order_and_buyer(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    let mine = stall.granted(1, 1).await;
    let other = stall.granted(2, 1).await;
    let release = GateChange::Release {
        order: mine.order,
        buyer: other.buyer,
        quantity: 1,
    };
    stall.follow(vec![release]).await;
    assert_eq!(stall.free().await, 0);
    let orders = vec![mine.order];
    assert_eq!(stall.buy(1, 1).await.1, Admission::AlreadyHeld { orders });
}

async fn a_dropped_place_is_given_up_and_frees_nothing(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let holder = stall.granted(1, 1).await;
    let dropped = stall.waiting(2, 1).await;
    let next = stall.waiting(3, 1).await;
    let before = stall.decisions().await;
    for _ in 0..2 {
        stall.follow(vec![drop_of(&dropped)]).await;
        let pulse = stall.pulse().await;
        assert_eq!((pulse.free, pulse.waiting), (0, 1));
    }
    assert_eq!(stall.place(2).await, None);
    assert_eq!(stall.decisions().await, before, "the ledger has ended it");
    stall.release(&holder).await;
    let (order, length) = (next.order, 0);
    let promoted = Some(Place::Promoted { order, length });
    assert_eq!(stall.place(3).await, promoted);
    stall.release(&next).await;
    stall.granted(2, 1).await;
}

async fn whoever_stands_behind_a_dropped_place_is_served_at_once(harness: &dyn HotHarness) {
    let stall = Opening::of(2).limit(2).waitlist(5).open(harness).await;
    let holder = stall.granted(1, 2).await;
    let greedy = stall.waiting(2, 2).await;
    let modest = stall.waiting(3, 1).await;
    let last = stall.waiting(4, 1).await;
    let release = GateChange::Release {
        order: holder.order,
        buyer: holder.buyer,
        quantity: 1,
    };
    stall.follow(vec![release]).await;
    assert_eq!(stall.free().await, 1, "it waits for a second one");
    stall.follow(vec![drop_of(&last), drop_of(&greedy)]).await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 0));
    let (order, length) = (modest.order, 0);
    let promoted = Some(Place::Promoted { order, length });
    assert_eq!(stall.place(3).await, promoted);
}

async fn only_a_place_of_this_order_and_buyer_is_dropped(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let holder = stall.granted(1, 1).await;
    let waiting = stall.waiting(2, 1).await;
    let others = [
        drop_of(&holder),
        drop_of(&stall.attempt(2, 1)),
        GateChange::DropPlace {
            order: waiting.order,
            buyer: holder.buyer,
        },
    ];
    stall.follow(others.to_vec()).await;
    let pulse = stall.pulse().await;
    assert_eq!((pulse.free, pulse.waiting), (0, 1));
    stall.release(&holder).await;
    stall.follow(vec![drop_of(&waiting)]).await;
    let (order, length) = (waiting.order, 0);
    let promoted = Some(Place::Promoted { order, length });
    assert_eq!(stall.place(2).await, promoted, "it has its unit by now");
    assert_eq!(stall.free().await, 0);
}

/// Hole 10: two cancels return the unit twice.
async fn units_of_one_order_come_back_once(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    stall.release(&attempt).await;
    stall.release(&attempt).await;
    stall
        .follow(vec![release_of(&attempt), release_of(&attempt)])
        .await;
    assert_eq!(stall.free().await, 1);
}

/// Hole 12: the buyer stays marked after expiry and can never buy again.
async fn a_buyer_who_gave_his_units_back_may_buy_again(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    stall.release(&attempt).await;
    let again = stall.granted(1, 1).await;
    assert_ne!(again.order, attempt.order);
}

async fn added_units_are_free_and_count(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    stall.granted(1, 1).await;
    stall.add(3).await;
    let facts = stall.facts().await;
    assert_eq!((facts.pulse.free, facts.terms.total_units), (3, 4));
}

async fn settings_change_but_not_the_total(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    let terms = SaleTerms {
        status: SaleStatus::Paused,
        opens_at: Timestamp::from_millis(1),
        closes_at: Timestamp::from_millis(4_000_000_000_000),
        per_buyer_limit: 1,
        waitlist_capacity: 7,
        total_units: 1_000,
    };
    stall.follow(vec![GateChange::SetTerms(terms)]).await;
    let facts = stall.facts().await;
    let total_units = 2;
    let expected = SaleTerms {
        total_units,
        ..terms
    };
    assert_eq!(facts.terms, expected);
    assert_eq!(facts.pulse.free, 2);
}

async fn an_update_is_applied_whole(harness: &dyn HotHarness) {
    let stall = Opening::of(3).open(harness).await;
    let attempts = [
        stall.granted(1, 1).await,
        stall.granted(2, 1).await,
        stall.granted(3, 1).await,
    ];
    let mut changes: Vec<GateChange> = attempts[..2].iter().map(release_of).collect();
    changes.push(GateChange::AddUnits { units: 10 });
    changes.push(GateChange::SetTerms(SaleTerms {
        status: SaleStatus::Paused,
        ..stall.terms
    }));
    stall.follow(changes).await;
    let facts = stall.facts().await;
    assert_eq!((facts.pulse.free, facts.terms.total_units), (12, 13));
    assert_eq!(facts.terms.status, SaleStatus::Paused);
    assert_eq!(facts.pulse.version, GateVersion::new(1));
}

async fn an_update_without_a_change_still_counts(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    assert_eq!(stall.follow_at(1, Vec::new()).await, APPLIED);
    assert_eq!(stall.follow_at(2, add(1)).await, APPLIED);
}

/// Stands for: an update makes a counter of 1 out of a missing key (2.27).
async fn a_voucher_that_is_not_loaded_follows_nothing(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    let reply = stall.follow_at(1, add(1)).await;
    assert_eq!(reply, FollowReply::NotLoaded(NotLoaded::Voucher));
}

async fn vouchers_follow_each_for_itself(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let voucher = VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS));
    let other = Opening::of(1).voucher(voucher).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    let same_ids = GateChange::Release {
        order: OrderId::new(attempt.order.get()),
        buyer: BuyerId::new(1),
        quantity: 1,
    };
    other.follow(vec![same_ids]).await;
    assert_eq!(stall.pulse().await.version, GateVersion::new(0));
    assert_eq!(other.free().await, 1);
    assert_eq!(stall.free().await, 0);
}

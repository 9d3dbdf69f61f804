//! `GateLoader::offer`: grants that a process answered and that may be lost.

use seckill_application::ports::{LOAD_CHUNK_MAX, LoadChunk, Offered, Opened};
use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, Decision, Epoch, OrderId, PlaceAtFirst, Sequence, VoucherId,
};

use super::loading::{Load, decisions};
use super::opening::{FIRST_EPOCH, Opening, VOUCHER, begin_partition};
use super::stall::{Stall, waitlisted};
use super::{HotHarness, promises};

promises! { loader_offers over dyn HotHarness:
    a_missing_partition_takes_no_offer,
    a_voucher_that_is_neither_open_nor_loading_takes_no_offer,
    what_the_gate_knows_is_left_as_it_is,
    what_the_gate_was_loaded_with_is_left_as_it_is,
    while_loading_every_grant_is_taken,
    a_snapshot_without_an_offered_grant_is_refused,
    offering_what_is_known_holds_nobody_up,
    an_open_sale_takes_a_grant_it_has_room_for,
    nobody_who_waits_goes_before_a_grant_that_was_answered,
    without_stock_a_grant_is_recorded_as_lost,
    beyond_the_limit_a_grant_is_recorded_as_lost,
    of_several_grants_as_many_are_taken_as_there_is_room_for,
    the_same_grants_offered_again_are_taken_once,
    whoever_lost_his_grant_is_answered_with_its_order,
    a_key_of_an_offered_grant_is_remembered,
    a_key_of_a_grant_that_is_lost_for_good_is_remembered,
    a_grant_whose_key_has_got_another_order_is_lost,
    a_sale_that_has_left_takes_nothing_and_what_it_took_is_lost,
    what_was_decided_is_not_lost,
    a_full_chunk_is_taken,
}

fn grant(order: u64, buyer: u64, quantity: u32) -> Claim {
    Claim {
        order: OrderId::new(order),
        voucher: VOUCHER,
        buyer: BuyerId::new(buyer),
        quantity,
        key: None,
    }
}

async fn offer(stall: &Stall, claims: &[Claim]) {
    let offered = stall.hot.loader.offer(VOUCHER, claims, &[]).await.unwrap();
    assert_eq!(offered, Offered::Taken);
}

async fn a_missing_partition_takes_no_offer(harness: &dyn HotHarness) {
    let offered = harness
        .hot()
        .loader
        .offer(VOUCHER, &[grant(1, 1, 1)], &[])
        .await
        .unwrap();
    assert_eq!(offered, Offered::PartitionMissing);
}

async fn a_voucher_that_is_neither_open_nor_loading_takes_no_offer(harness: &dyn HotHarness) {
    let hot = harness.hot();
    begin_partition(hot, harness.partitions(), VOUCHER).await;
    let claims = [grant(1, 1, 1)];
    assert_eq!(
        hot.loader.offer(VOUCHER, &claims, &[]).await.unwrap(),
        Offered::NotLoaded
    );
    let stall = Opening::of(5).open(harness).await;
    hot.loader.unload(VOUCHER).await.unwrap();
    assert_eq!(
        hot.loader.offer(VOUCHER, &claims, &[]).await.unwrap(),
        Offered::NotLoaded
    );
    assert_eq!(stall.decisions().await, []);
}

async fn what_the_gate_knows_is_left_as_it_is(harness: &dyn HotHarness) {
    let stall = Opening::of(2).waitlist(5).open(harness).await;
    let held = stall.granted(1, 1).await;
    let released = stall.granted(2, 1).await;
    let waited = stall.waiting(3, 1).await;
    stall.leave(3).await;
    stall.release(&released).await;
    let before = stall.pulse().await;
    let claims = [&held, &released, &waited].map(|attempt| stall.claim(attempt));
    offer(&stall, &claims).await;
    assert_eq!(stall.pulse().await, before);
    assert_eq!(stall.decisions().await.len(), 4);
}

async fn what_the_gate_was_loaded_with_is_left_as_it_is(harness: &dyn HotHarness) {
    let opening = Opening::of(3).limit(3).waitlist(5);
    let opening = opening.holder(BuyerId::new(1), OrderId::new(1), 1);
    let opening = opening.seat(1, BuyerId::new(2), OrderId::new(2), 3);
    let stall = opening.open(harness).await;
    let before = stall.pulse().await;
    offer(&stall, &[grant(1, 1, 1), grant(2, 2, 3)]).await;
    assert_eq!(stall.pulse().await, before);
    assert_eq!(stall.decisions().await, []);
}

async fn while_loading_every_grant_is_taken(harness: &dyn HotHarness) {
    let (epoch, _) = begin_partition(harness.hot(), harness.partitions(), VOUCHER).await;
    let hot = harness.hot();
    Load::begun(hot, VOUCHER, "token").await;
    let claims = [grant(3, 1, 5), grant(2, 1, 5), grant(1, 2, 1)];
    // The ledger is the one to judge: it has the stock and the limits.
    assert_eq!(
        hot.loader.offer(VOUCHER, &claims, &[]).await.unwrap(),
        Offered::Taken
    );
    let written = decisions(hot, harness.partitions(), epoch, VOUCHER).await;
    assert_eq!(written, claims.map(Decision::Granted));
}

async fn a_snapshot_without_an_offered_grant_is_refused(harness: &dyn HotHarness) {
    let opening = Opening::of(5);
    let stall = opening.clone().open(harness).await;
    let (load, before) = Load::begun(&stall.hot, VOUCHER, "token").await;
    load.loaded(&LoadChunk::default(), 0).await;
    offer(&stall, &[grant(1, 1, 1)]).await;
    let now = harness.gate_time().await;
    let opened = load.open(&opening.open_sale(now, before)).await;
    assert_eq!(opened, Opened::Behind(Sequence::new(1)));
    let fresh = Opening::of(4).holder(BuyerId::new(1), OrderId::new(1), 1);
    load.loaded(fresh.chunk(), 0).await;
    let opened = load.open(&fresh.open_sale(now, Sequence::new(1))).await;
    assert_eq!(opened, Opened::Opened);
    offer(&stall, &[grant(1, 1, 1)]).await;
    assert_eq!(stall.free().await, 4);
}

/// Offers come from every process, while other vouchers of the partition are sold: if each moved the
/// position that the snapshot needs, a busy partition would never open this one.
async fn offering_what_is_known_holds_nobody_up(harness: &dyn HotHarness) {
    let opening = Opening::of(5);
    let stall = opening.clone().open(harness).await;
    let known = stall.granted(1, 1).await;
    let other = VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS));
    let other = Opening::of(5).voucher(other).open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    other.granted(1, 1).await;
    offer(&stall, &[stall.claim(&known)]).await;
    load.append(&[stall.claim(&known)], &[]).await;
    let fresh = Opening::of(4).holder(known.buyer, known.order, 1);
    load.loaded(fresh.chunk(), 0).await;
    let sale = fresh.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
}

async fn an_open_sale_takes_a_grant_it_has_room_for(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(3).open(harness).await;
    let claim = grant(1, 1, 2);
    offer(&stall, std::slice::from_ref(&claim)).await;
    assert_eq!(stall.free().await, 3);
    assert_eq!(stall.decisions().await, [Decision::Granted(claim.clone())]);
    let found = stall
        .hot
        .gate
        .find_order(claim.order)
        .await
        .unwrap()
        .unwrap();
    assert!(found.holds_units);
    let exceeded = Admission::LimitExceeded { remaining: 1 };
    assert_eq!(stall.buy(1, 2).await.1, exceeded);
}

async fn nobody_who_waits_goes_before_a_grant_that_was_answered(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    let waiting = stall.waiting(2, 2).await;
    let claim = grant(1, 1, 1);
    offer(&stall, std::slice::from_ref(&claim)).await;
    assert_eq!(stall.free().await, 0);
    let order = waiting.order;
    let position = 1;
    assert_eq!(stall.admit(&waiting).await, waitlisted(order, position));
}

async fn without_stock_a_grant_is_recorded_as_lost(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(5).open(harness).await;
    let claim = grant(1, 1, 2);
    offer(&stall, std::slice::from_ref(&claim)).await;
    assert_eq!(stall.free().await, 1);
    assert_eq!(stall.decisions().await, [Decision::Lost(claim.clone())]);
    let found = stall.hot.gate.find_order(claim.order).await.unwrap();
    assert!(found.is_some_and(|found| !found.holds_units && found.position.is_none()));
    stall.granted(1, 1).await;
}

async fn beyond_the_limit_a_grant_is_recorded_as_lost(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(2).open(harness).await;
    stall.granted(1, 1).await;
    let claim = grant(1, 1, 2);
    offer(&stall, std::slice::from_ref(&claim)).await;
    assert_eq!(stall.free().await, 4);
    assert_eq!(stall.decisions().await[1..], [Decision::Lost(claim)]);
}

async fn of_several_grants_as_many_are_taken_as_there_is_room_for(harness: &dyn HotHarness) {
    let stall = Opening::of(3).limit(2).open(harness).await;
    let claims = [
        grant(9, 1, 2),
        grant(8, 1, 1),
        grant(7, 2, 2),
        grant(6, 3, 1),
    ];
    offer(&stall, &claims).await;
    let [first, beyond_limit, beyond_stock, last] = claims;
    assert_eq!(
        stall.decisions().await,
        [
            Decision::Granted(first),
            Decision::Lost(beyond_limit),
            Decision::Lost(beyond_stock),
            Decision::Granted(last),
        ]
    );
    assert_eq!(stall.free().await, 0);
}

async fn the_same_grants_offered_again_are_taken_once(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(5).open(harness).await;
    let claims = [grant(1, 1, 1), grant(2, 1, 1), grant(1, 1, 1)];
    for _ in 0..3 {
        offer(&stall, &claims).await;
    }
    let [taken, lost, _] = claims;
    let expected = [Decision::Granted(taken), Decision::Lost(lost)];
    assert_eq!(stall.decisions().await, expected);
}

async fn whoever_lost_his_grant_is_answered_with_its_order(harness: &dyn HotHarness) {
    let stall = Opening::of(0).open(harness).await;
    offer(&stall, &[grant(1, 1, 1)]).await;
    stall.add(1).await;
    let order = OrderId::new(1);
    let attempt = Attempt {
        order,
        ..stall.attempt(1, 1)
    };
    // The order is known to be lost: a repeat of its purchase does not win it again.
    let first = PlaceAtFirst::Granted;
    assert_eq!(
        stall.admit(&attempt).await,
        Admission::Replayed { order, first }
    );
    stall.granted(1, 1).await;
}

async fn a_key_of_an_offered_grant_is_remembered(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let attempt = stall.keyed(1, 2, "k");
    let claim = stall.claim(&attempt);
    offer(&stall, std::slice::from_ref(&claim)).await;
    let order = attempt.order;
    let first = PlaceAtFirst::Granted;
    let again = stall.keyed(1, 2, "k");
    assert_eq!(
        stall.admit(&again).await,
        Admission::Replayed { order, first }
    );
    assert_eq!(stall.decisions().await, [Decision::Granted(claim)]);
}

/// A call that is repeated gets the order it got, and reads there that it was lost.
async fn a_key_of_a_grant_that_is_lost_for_good_is_remembered(harness: &dyn HotHarness) {
    let stall = Opening::of(0).limit(5).waitlist(1).open(harness).await;
    let attempt = stall.keyed(1, 2, "k");
    let claim = stall.claim(&attempt);
    offer(&stall, std::slice::from_ref(&claim)).await;
    let order = attempt.order;
    let first = PlaceAtFirst::Granted;
    let again = stall.keyed(1, 2, "k");
    assert_eq!(
        stall.admit(&again).await,
        Admission::Replayed { order, first }
    );
    assert_eq!(stall.decisions().await, [Decision::Lost(claim)]);
}

async fn a_grant_whose_key_has_got_another_order_is_lost(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let attempt = stall.keyed(1, 2, "k");
    let claim = stall.claim(&attempt);
    let later = stall.keyed(1, 2, "k");
    let granted = Admission::Granted { order: later.order };
    assert_eq!(stall.admit(&later).await, granted);
    offer(&stall, std::slice::from_ref(&claim)).await;
    assert_eq!(stall.free().await, 3);
    let expected = [
        Decision::Granted(stall.claim(&later)),
        Decision::Lost(claim),
    ];
    assert_eq!(stall.decisions().await, expected);
    let again = stall.keyed(1, 2, "k");
    let replayed = Admission::Replayed {
        order: later.order,
        first: PlaceAtFirst::Granted,
    };
    assert_eq!(stall.admit(&again).await, replayed);
}

async fn a_sale_that_has_left_takes_nothing_and_what_it_took_is_lost(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let claims = [grant(1, 1, 1), grant(2, 2, 1)];
    let loader = &stall.hot.loader;
    loader.unload(VOUCHER).await.unwrap();
    let offered = loader.offer(VOUCHER, &claims, &[]).await.unwrap();
    assert_eq!(offered, Offered::NotLoaded);
    for _ in 0..2 {
        let lost = loader.lose(VOUCHER, &claims).await.unwrap();
        assert_eq!(lost, Offered::Taken);
    }
    let [first, second] = claims;
    let expected = [Decision::Lost(first), Decision::Lost(second)];
    assert_eq!(stall.decisions().await, expected);
}

async fn what_was_decided_is_not_lost(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let held = stall.granted(1, 1).await;
    let claim = stall.claim(&held);
    let lost = stall
        .hot
        .loader
        .lose(VOUCHER, std::slice::from_ref(&claim))
        .await;
    assert_eq!(lost.unwrap(), Offered::Taken);
    assert_eq!(stall.decisions().await, [Decision::Granted(claim)]);
}

async fn a_full_chunk_is_taken(harness: &dyn HotHarness) {
    let stall = Opening::of(2_000).open(harness).await;
    let many = LOAD_CHUNK_MAX as u64;
    let claims: Vec<Claim> = (1..=many).map(|n| grant(n, n, 1)).collect();
    offer(&stall, &claims).await;
    assert_eq!(stall.free().await, 1_000);
    let written = decisions(&stall.hot, harness.partitions(), FIRST_EPOCH, VOUCHER).await;
    assert_eq!(written.len(), claims.len());
    assert_eq!(stall.epoch, Epoch::new(1));
}

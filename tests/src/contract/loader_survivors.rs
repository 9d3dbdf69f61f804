//! `GateLoader::survivors` and `append_again`: what the gate still holds is not lost.

use seckill_application::ports::{LOAD_CHUNK_MAX, LoadChunk, LoadStep, Opened, Survivors};
use seckill_domain::{
    Admission, Attempt, BuyerId, Claim, Decision, Epoch, OrderId, Seat, Sequence, Ticket,
};

use super::loading::{Load, decisions, survivors};
use super::opening::{FIRST_EPOCH, Opening, VOUCHER};
use super::stall::{Stall, waitlisted};
use super::{HotHarness, promises};

promises! { loader_survivors over dyn HotHarness:
    a_shut_gate_still_knows_who_holds_and_who_waits,
    a_new_life_of_the_partition_still_knows_who_holds_and_who_waits,
    a_voucher_that_never_was_has_no_survivors,
    many_survivors_come_in_pages,
    survivors_are_appended_again_as_they_were,
    what_was_decided_in_this_life_is_not_appended_again,
    appending_again_twice_appends_once,
    what_was_appended_again_was_decided,
    a_snapshot_without_what_was_appended_again_is_refused,
    a_full_chunk_is_appended_again,
    a_lost_life_is_rebuilt_from_survivors_without_losing_a_grant,
}

/// A sale with two holders and two who wait.
async fn busy(harness: &dyn HotHarness) -> (Stall, [Attempt; 2], [Attempt; 2]) {
    let stall = Opening::of(3).limit(2).waitlist(5).open(harness).await;
    let held = [stall.keyed(20, 1, "held"), stall.attempt(10, 2)];
    let waiting = [stall.keyed(5, 2, "waiting"), stall.attempt(40, 1)];
    for attempt in held.iter().chain(&waiting) {
        stall.admit(attempt).await;
    }
    (stall, held, waiting)
}

/// The turns of those who wait: theirs are the third decision and the fourth.
fn turns() -> impl Iterator<Item = Ticket> {
    (3..).map(|number| Ticket::drawn_at(FIRST_EPOCH, Sequence::new(number)))
}

fn expected(stall: &Stall, held: &[Attempt], waiting: &[Attempt]) -> Survivors {
    let mut holders: Vec<Claim> = held.iter().map(|attempt| stall.claim(attempt)).collect();
    holders.sort_by_key(|claim| claim.order);
    let seats = turns().zip(waiting);
    let seats = seats.map(|(ticket, attempt)| Seat {
        ticket,
        order: attempt.order,
        buyer: attempt.buyer,
        quantity: attempt.quantity,
        key: attempt.key.clone(),
    });
    Survivors {
        holders,
        seats: seats.collect(),
        next: None,
    }
}

async fn begin_second_life(stall: &Stall, applied: u64) {
    let applied = Sequence::new(applied);
    let loader = &stall.hot.loader;
    loader
        .begin_epoch(stall.partition, Epoch::new(2), applied)
        .await
        .unwrap();
}

async fn a_shut_gate_still_knows_who_holds_and_who_waits(harness: &dyn HotHarness) {
    let (stall, held, waiting) = busy(harness).await;
    let expected = expected(&stall, &held, &waiting);
    stall.hot.loader.unload(VOUCHER).await.unwrap();
    assert_eq!(survivors(&stall.hot, VOUCHER).await, expected);
    Load::begun(&stall.hot, VOUCHER, "token").await;
    assert_eq!(survivors(&stall.hot, VOUCHER).await, expected);
}

async fn a_new_life_of_the_partition_still_knows_who_holds_and_who_waits(harness: &dyn HotHarness) {
    let (stall, held, waiting) = busy(harness).await;
    begin_second_life(&stall, 0).await;
    Load::begun(&stall.hot, VOUCHER, "token").await;
    let expected = expected(&stall, &held, &waiting);
    assert_eq!(survivors(&stall.hot, VOUCHER).await, expected);
}

async fn a_voucher_that_never_was_has_no_survivors(harness: &dyn HotHarness) {
    let nobody = Survivors {
        holders: Vec::new(),
        seats: Vec::new(),
        next: None,
    };
    assert_eq!(survivors(harness.hot(), VOUCHER).await, nobody);
    let (stall, ..) = busy(harness).await;
    let other = seckill_domain::VoucherId::new(VOUCHER.get() + 2);
    assert_eq!(survivors(&stall.hot, other).await, nobody);
}

async fn many_survivors_come_in_pages(harness: &dyn HotHarness) {
    let many = LOAD_CHUNK_MAX as u64 + 200;
    let mut opening = Opening::of(0).waitlist(5_000);
    for n in 1..=many / 2 {
        opening = opening.seat(n, BuyerId::new(n), OrderId::new(n), 1);
        let other = 10_000 + n;
        opening = opening.holder(BuyerId::new(other), OrderId::new(other), 1);
    }
    let stall = opening.open(harness).await;
    Load::begun(&stall.hot, VOUCHER, "token").await;
    let page = stall.hot.loader.survivors(VOUCHER, 0).await.unwrap();
    let size = page.holders.len() + page.seats.len();
    assert!(size <= 2 * LOAD_CHUNK_MAX, "{size} on a page");
    let all = survivors(&stall.hot, VOUCHER).await;
    assert_eq!(
        (all.holders.len() as u64, all.seats.len() as u64),
        (many / 2, many / 2)
    );
}

async fn survivors_are_appended_again_as_they_were(harness: &dyn HotHarness) {
    let (stall, held, waiting) = busy(harness).await;
    begin_second_life(&stall, 0).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    assert_eq!(sequence, Sequence::new(0));
    let found = survivors(&stall.hot, VOUCHER).await;
    let done = load.append(&found.holders, &found.seats).await;
    assert_eq!(done, LoadStep::Done(Sequence::new(4)));
    let mut expected: Vec<Decision> = held.map(|it| Decision::Granted(stall.claim(&it))).to_vec();
    expected.sort_by_key(|decision| decision.claim().map(|claim| claim.order));
    for (ticket, attempt) in turns().zip(&waiting) {
        let claim = stall.claim(attempt);
        expected.push(Decision::Joined { claim, ticket });
    }
    let written = decisions(&stall.hot, harness.partitions(), Epoch::new(2), VOUCHER).await;
    assert_eq!(written, expected);
}

async fn what_was_decided_in_this_life_is_not_appended_again(harness: &dyn HotHarness) {
    let (stall, ..) = busy(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let found = survivors(&stall.hot, VOUCHER).await;
    let done = load.append(&found.holders, &found.seats).await;
    assert_eq!(done, LoadStep::Done(sequence));
    assert_eq!(stall.decisions().await.len(), 4);
}

async fn appending_again_twice_appends_once(harness: &dyn HotHarness) {
    let (stall, ..) = busy(harness).await;
    begin_second_life(&stall, 7).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let found = survivors(&stall.hot, VOUCHER).await;
    for _ in 0..2 {
        let done = load.append(&found.holders, &found.seats).await;
        assert_eq!(done, LoadStep::Done(Sequence::new(11)));
    }
    assert_eq!(
        load.append(&[], &[]).await,
        LoadStep::Done(Sequence::new(11))
    );
}

async fn what_was_appended_again_was_decided(harness: &dyn HotHarness) {
    let opening = Opening::of(0).limit(2).waitlist(5);
    let (stall, held, _) = busy(harness).await;
    begin_second_life(&stall, 4).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let found = survivors(&stall.hot, VOUCHER).await;
    load.append(&found.holders, &[]).await;
    let order = held[1].order;
    let known = stall.hot.gate.find_order(order).await.unwrap().unwrap();
    assert_eq!(known.claim, stall.claim(&held[1]));
    // The ledger applied it, the buyer cancelled meanwhile, and now repeats his purchase.
    load.loaded(&LoadChunk::default(), 0).await;
    let sale = opening.open_sale(harness.gate_time().await, Sequence::new(6));
    assert_eq!(load.open(&sale).await, Opened::Opened);
    let first = seckill_domain::PlaceAtFirst::Granted;
    assert_eq!(
        stall.admit(&held[1]).await,
        Admission::Replayed { order, first }
    );
}

async fn a_snapshot_without_what_was_appended_again_is_refused(harness: &dyn HotHarness) {
    let opening = Opening::of(3).limit(2).waitlist(5);
    let (stall, ..) = busy(harness).await;
    begin_second_life(&stall, 0).await;
    let (load, before) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let found = survivors(&stall.hot, VOUCHER).await;
    let LoadStep::Done(after) = load.append(&found.holders, &[]).await else {
        panic!("the token is alive");
    };
    assert!(before < after);
    load.loaded(&LoadChunk::default(), 0).await;
    let now = harness.gate_time().await;
    let outdated = opening.open_sale(now, before);
    assert_eq!(load.open(&outdated).await, Opened::Behind(after));
    let fresh = Opening::of(0).open_sale(now, after);
    assert_eq!(load.open(&fresh).await, Opened::Opened);
}

async fn a_full_chunk_is_appended_again(harness: &dyn HotHarness) {
    let stall = Opening::of(0).open(harness).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let many = LOAD_CHUNK_MAX as u64;
    let holders: Vec<Claim> = (1..=many)
        .map(|n| Claim {
            order: OrderId::new(n),
            voucher: VOUCHER,
            buyer: BuyerId::new(n),
            quantity: 1,
            key: None,
        })
        .collect();
    let done = load.append(&holders, &[]).await;
    assert_eq!(done, LoadStep::Done(Sequence::new(many)));
    let written = decisions(&stall.hot, harness.partitions(), FIRST_EPOCH, VOUCHER).await;
    let expected: Vec<Decision> = holders.into_iter().map(Decision::Granted).collect();
    assert_eq!(written, expected);
}

/// The whole protocol, with the ledger played by this function.
async fn a_lost_life_is_rebuilt_from_survivors_without_losing_a_grant(harness: &dyn HotHarness) {
    let (stall, held, waiting) = busy(harness).await;
    // The ledger had applied the first grant only when the partition had to begin again.
    begin_second_life(&stall, 1).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let found = survivors(&stall.hot, VOUCHER).await;
    let unknown: Vec<Claim> = found
        .holders
        .iter()
        .filter(|it| it.order != held[0].order)
        .cloned()
        .collect();
    let LoadStep::Done(last) = load.append(&unknown, &found.seats).await else {
        panic!("the token is alive");
    };
    assert_eq!(last, Sequence::new(4));
    let opening = Opening::of(0).limit(2).waitlist(5);
    let opening = held.iter().fold(opening, |opening, attempt| {
        opening.holder(attempt.buyer, attempt.order, attempt.quantity)
    });
    let opening = found.seats.iter().fold(opening, |opening, seat| {
        opening.seat(seat.ticket.get(), seat.buyer, seat.order, seat.quantity)
    });
    load.loaded(opening.chunk(), 0).await;
    let sale = opening.open_sale(harness.gate_time().await, last);
    assert_eq!(load.open(&sale).await, Opened::Opened);

    let order = held[1].order;
    assert_eq!(stall.admit(&held[1]).await, Admission::Granted { order });
    let order = waiting[1].order;
    let place = waitlisted(order, 2);
    assert_eq!(stall.admit(&waiting[1]).await, place);
    let (attempt, admission) = stall.buy(3, 1).await;
    let order = attempt.order;
    assert_eq!(admission, waitlisted(order, 3));
}

//! `GateLoader::load` and `open`: what is in the snapshot is at the gate, and nothing else.

use seckill_application::ports::{
    Holder, LOAD_CHUNK_MAX, LoadChunk, LoadStep, Opened, Place, SaleFacts,
};
use seckill_domain::{
    Admission, BuyerId, Decision, Held, OrderId, PlaceAtFirst, Sequence, VoucherId,
};

use super::loading::{Load, survivors};
use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, waitlisted};
use super::{HotHarness, promises};

promises! { loader_contents over dyn HotHarness:
    settings_units_and_version_are_those_of_the_snapshot,
    holders_are_known_with_all_their_orders,
    a_promoted_holder_is_known_as_one,
    units_of_a_loaded_holder_come_back,
    keys_are_known_with_what_they_got,
    seats_are_served_by_turn_in_whatever_order_they_were_loaded,
    whoever_joins_later_stands_behind_the_loaded,
    the_snapshot_replaces_what_was_there,
    the_first_chunk_clears_an_earlier_attempt,
    a_chunk_that_is_loaded_twice_counts_once,
    many_holders_come_in_chunks,
    chunks_that_are_missing_are_noticed,
    nothing_is_admitted_from_half_a_snapshot,
    a_snapshot_older_than_the_last_grant_is_refused,
    an_empty_sale_opens_empty,
}

const FIRST: BuyerId = BuyerId::new(11);
const SECOND: BuyerId = BuyerId::new(7);

fn order(number: u64) -> OrderId {
    OrderId::new(9_007_199_254_740_000 + number)
}

async fn settings_units_and_version_are_those_of_the_snapshot(harness: &dyn HotHarness) {
    let opening = Opening::of(5).limit(3).waitlist(7).version(40);
    let stall = opening.holder(FIRST, order(1), 2).open(harness).await;
    let SaleFacts { terms, pulse } = stall.facts().await;
    assert_eq!(terms, stall.terms);
    assert_eq!(terms.total_units, 7);
    assert_eq!((pulse.free, pulse.waiting, pulse.version.get()), (5, 0, 40));
    assert!(pulse.waitlist_open);
    assert_eq!(stall.decisions().await, [], "loading decides nothing");
}

/// Bug report B6: the counter is reloaded and the bought set is not.
async fn holders_are_known_with_all_their_orders(harness: &dyn HotHarness) {
    let stall = Opening::of(5)
        .limit(3)
        .holder(FIRST, order(5), 1)
        .holder(FIRST, order(6), 2)
        .holder(SECOND, order(7), 2)
        .open(harness)
        .await;
    let orders = vec![order(5), order(6)];
    assert_eq!(
        stall.buy(FIRST.get(), 1).await.1,
        Admission::AlreadyHeld { orders }
    );
    let exceeded = Admission::LimitExceeded { remaining: 1 };
    assert_eq!(stall.buy(SECOND.get(), 2).await.1, exceeded);
    stall.granted(SECOND.get(), 1).await;
    assert_eq!(stall.free().await, 4);
}

async fn a_promoted_holder_is_known_as_one(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let holder = |buyer, order, promoted| Holder {
        buyer,
        held: Held {
            order,
            quantity: 1,
            promoted,
        },
    };
    let chunk = LoadChunk {
        holders: vec![
            holder(FIRST, order(1), true),
            holder(SECOND, order(2), false),
        ],
        ..LoadChunk::default()
    };
    load.loaded(&chunk, 0).await;
    let sale = Opening::of(5).open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    let promoted = Place::Promoted {
        order: order(1),
        length: 0,
    };
    assert_eq!(stall.place(FIRST.get()).await, Some(promoted));
    assert_eq!(stall.place(SECOND.get()).await, None);
}

async fn units_of_a_loaded_holder_come_back(harness: &dyn HotHarness) {
    let opening = Opening::of(0).limit(2).holder(FIRST, order(1), 2);
    let stall = opening.open(harness).await;
    let attempt = seckill_domain::Attempt {
        order: order(1),
        ..stall.attempt(FIRST.get(), 2)
    };
    stall.release(&attempt).await;
    assert_eq!(stall.free().await, 2);
    stall.granted(FIRST.get(), 2).await;
}

async fn keys_are_known_with_what_they_got(harness: &dyn HotHarness) {
    let opening = Opening::of(5).limit(5);
    let stall = opening.key(FIRST, "k", order(1), 2).open(harness).await;
    let replayed = Admission::Replayed {
        order: order(1),
        first: PlaceAtFirst::Granted,
    };
    assert_eq!(
        stall.admit(&stall.keyed(FIRST.get(), 2, "k")).await,
        replayed
    );
    let reused = Admission::KeyReused { order: order(1) };
    assert_eq!(stall.admit(&stall.keyed(FIRST.get(), 1, "k")).await, reused);
    let other = stall.keyed(SECOND.get(), 2, "k");
    let granted = Admission::Granted { order: other.order };
    assert_eq!(stall.admit(&other).await, granted);
}

/// A sale with three who wait; their turns are not in the order of anything else.
fn with_seats() -> Opening {
    Opening::of(0)
        .waitlist(9)
        .seat(900, BuyerId::new(5), order(1), 1)
        .seat(30, BuyerId::new(9), order(3), 1)
        .seat(200, BuyerId::new(7), order(2), 1)
}

async fn served(stall: &Stall) -> Vec<u64> {
    let decisions = stall.decisions().await;
    let promoted = decisions.iter().filter_map(|decision| match decision {
        Decision::Promoted(claim) => Some(claim.buyer.get()),
        _ => None,
    });
    promoted.collect()
}

async fn seats_are_served_by_turn_in_whatever_order_they_were_loaded(harness: &dyn HotHarness) {
    let stall = with_seats().open(harness).await;
    assert_eq!(stall.pulse().await.waiting, 3);
    let place = Place::Waiting {
        order: order(2),
        position: 2,
        length: 3,
    };
    assert_eq!(stall.place(7).await, Some(place));
    stall.add(3).await;
    assert_eq!(served(&stall).await, [9, 7, 5]);
}

async fn whoever_joins_later_stands_behind_the_loaded(harness: &dyn HotHarness) {
    let partition = harness.partitions().of(VOUCHER);
    // The turns of the snapshot were drawn below its last decision.
    let applied = Sequence::new(1_000);
    let loader = &harness.hot().loader;
    loader
        .begin_epoch(partition, seckill_domain::Epoch::new(1), applied)
        .await
        .unwrap();
    let stall = with_seats().open(harness).await;
    let (attempt, admission) = stall.buy(1, 1).await;
    let position = 4;
    let order = attempt.order;
    assert_eq!(admission, waitlisted(order, position));
    stall.add(4).await;
    assert_eq!(served(&stall).await, [9, 7, 5, 1]);
}

async fn the_snapshot_replaces_what_was_there(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    stall.admit(&stall.keyed(1, 1, "k")).await;
    stall.waiting(2, 1).await;
    // By what the ledger says, nobody bought and nobody waits.
    let reloaded = Opening::of(3).waitlist(5).version(9).open(harness).await;
    let pulse = reloaded.pulse().await;
    assert_eq!((pulse.free, pulse.waiting, pulse.version.get()), (3, 0, 9));
    assert_eq!(reloaded.place(2).await, None);
    let attempt = reloaded.attempt(1_000, 1);
    let order = attempt.order;
    assert_eq!(reloaded.admit(&attempt).await, Admission::Granted { order });
    let found = survivors(&reloaded.hot, VOUCHER).await;
    assert_eq!(found.holders, [reloaded.claim(&attempt)]);
    assert_eq!(found.seats, []);
}

async fn the_first_chunk_clears_an_earlier_attempt(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let holder = |buyer, order| LoadChunk {
        holders: vec![Holder {
            buyer,
            held: Held {
                order,
                quantity: 1,
                promoted: false,
            },
        }],
        ..LoadChunk::default()
    };
    let (given_up, _) = Load::begun(&stall.hot, VOUCHER, "first").await;
    given_up.loaded(&holder(FIRST, order(1)), 0).await;
    given_up.abandon().await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "second").await;
    load.loaded(&holder(BuyerId::new(3), order(3)), 0).await;
    load.loaded(&holder(SECOND, order(2)), 0).await;
    let sale = Opening::of(5).open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    let held = survivors(&stall.hot, VOUCHER).await.holders;
    let buyers: Vec<BuyerId> = held.iter().map(|claim| claim.buyer).collect();
    assert_eq!(buyers, [SECOND]);
    stall.granted(FIRST.get(), 1).await;
}

async fn a_chunk_that_is_loaded_twice_counts_once(harness: &dyn HotHarness) {
    let opening = with_seats().limit(2).holder(FIRST, order(9), 1);
    let stall = opening.clone().open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    load.loaded(&LoadChunk::default(), 0).await;
    for _ in 0..2 {
        load.loaded(opening.chunk(), 1).await;
    }
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    assert_eq!(stall.pulse().await.waiting, 3);
    stall.add(4).await;
    assert_eq!(served(&stall).await, [9, 7, 5]);
    stall.granted(FIRST.get(), 1).await;
    let orders = match stall.buy(FIRST.get(), 1).await.1 {
        Admission::AlreadyHeld { orders } => orders,
        other => panic!("{other:?}"),
    };
    assert_eq!(orders.len(), 2);
}

async fn many_holders_come_in_chunks(harness: &dyn HotHarness) {
    let many = 2 * LOAD_CHUNK_MAX as u64 + 500;
    let holders: Vec<Holder> = (1..=many)
        .map(|n| Holder {
            buyer: BuyerId::new(n),
            held: Held {
                order: order(n),
                quantity: 1,
                promoted: false,
            },
        })
        .collect();
    let opening = Opening::of(1);
    let stall = opening.clone().open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    for (number, chunk) in holders.chunks(LOAD_CHUNK_MAX).enumerate() {
        let chunk = LoadChunk {
            holders: chunk.to_vec(),
            ..LoadChunk::default()
        };
        load.loaded(&chunk, number).await;
    }
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    for buyer in [1, 999, 1_000, 1_001, 2_000, many] {
        let orders = vec![order(buyer)];
        assert_eq!(
            stall.buy(buyer, 1).await.1,
            Admission::AlreadyHeld { orders }
        );
    }
    let found: Vec<OrderId> = survivors(&stall.hot, VOUCHER)
        .await
        .holders
        .iter()
        .map(|claim| claim.order)
        .collect();
    assert_eq!(found, (1..=many).map(order).collect::<Vec<_>>());
    stall.granted(many + 1, 1).await;
}

/// A failover may lose what was loaded last, and keep the token of the loader.
async fn chunks_that_are_missing_are_noticed(harness: &dyn HotHarness) {
    let opening = Opening::of(5).holder(FIRST, order(1), 1);
    let stall = opening.clone().open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.load(opening.chunk(), 1).await, LoadStep::NotMine);
    load.loaded(&LoadChunk::default(), 0).await;
    assert_eq!(load.load(opening.chunk(), 2).await, LoadStep::NotMine);
    assert_eq!(load.open_with(&sale, 2).await, Opened::NotMine);
    load.loaded(opening.chunk(), 1).await;
    assert_eq!(load.open_with(&sale, 1).await, Opened::NotMine);
    assert_eq!(load.open_with(&sale, 2).await, Opened::Opened);
    let orders = vec![order(1)];
    assert_eq!(
        stall.buy(FIRST.get(), 1).await.1,
        Admission::AlreadyHeld { orders }
    );
}

async fn nothing_is_admitted_from_half_a_snapshot(harness: &dyn HotHarness) {
    let opening = with_seats();
    let stall = Opening::of(5).open(harness).await;
    let (load, _) = Load::begun(&stall.hot, VOUCHER, "token").await;
    load.loaded(opening.chunk(), 0).await;
    stall
        .assert_not_loaded(seckill_application::ports::NotLoaded::Loading)
        .await;
    load.abandon().await;
    stall
        .assert_not_loaded(seckill_application::ports::NotLoaded::Voucher)
        .await;
}

/// Hole 1: the stock is reloaded from the database while messages are in flight.
async fn a_snapshot_older_than_the_last_grant_is_refused(harness: &dyn HotHarness) {
    let opening = Opening::of(2);
    let stall = opening.clone().open(harness).await;
    stall.granted(1, 1).await;
    stall.granted(2, 1).await;
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "token").await;
    assert_eq!(sequence, Sequence::new(2));
    load.loaded(&LoadChunk::default(), 0).await;
    let now = harness.gate_time().await;
    for applied in [0, 1] {
        let outdated = opening.open_sale(now, Sequence::new(applied));
        let opened = load.open(&outdated).await;
        assert_eq!(
            opened,
            Opened::Behind(Sequence::new(2)),
            "with {applied} of 2"
        );
    }
    let sold_out = Opening::of(0).open_sale(now, sequence);
    assert_eq!(
        load.load(&LoadChunk::default(), 0).await,
        LoadStep::Done(sequence)
    );
    assert_eq!(
        load.open(&sold_out).await,
        Opened::Opened,
        "the token is still good"
    );
    assert_eq!(stall.buy(3, 1).await.1, Admission::SoldOut);
}

async fn an_empty_sale_opens_empty(harness: &dyn HotHarness) {
    let voucher = VoucherId::new(VOUCHER.get() + 12);
    let stall = Opening::of(1).voucher(voucher).open(harness).await;
    let (load, sequence) = Load::begun(&stall.hot, voucher, "token").await;
    let sale = Opening::of(1).open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened, "nothing was loaded");
    stall.granted(1, 1).await;
    assert_eq!(stall.buy(2, 1).await.1, Admission::SoldOut);
}

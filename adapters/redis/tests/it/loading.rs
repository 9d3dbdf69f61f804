//! The loading protocol.

use std::time::Duration;

use seckill_application::ports::{
    Admitted, EntryId, EpochBegun, Holder, KeyUse, LoadBegun, LoadChunk, LoadStep, LoadToken,
    NotLoaded, Offered, OpenSale, Opened, PartitionState,
};
use seckill_domain::{
    Admission, BuyerId, Claim, Decision, Epoch, GateVersion, Held, OrderId, PartitionId,
    PlaceAtFirst, Remembered, Seat, Sequence, Ticket, VoucherId,
};

use crate::stage::{
    EPOCH, PARTITION, Stage, VOUCHER, attempt, granted, key, keyed, pause, terms, waitlisted,
};

const TTL: Duration = Duration::from_secs(10);

fn token(name: &str) -> LoadToken {
    LoadToken(name.to_owned())
}

fn claim(order: u64, buyer: u64, quantity: u32) -> Claim {
    Claim::of(VOUCHER, &attempt(order, buyer, quantity))
}

fn holder(order: u64, buyer: u64, quantity: u32, promoted: bool) -> Holder {
    Holder {
        buyer: BuyerId::new(buyer),
        held: Held {
            order: OrderId::new(order),
            quantity,
            promoted,
        },
    }
}

fn seat(ticket: u64, order: u64, buyer: u64) -> Seat {
    Seat {
        ticket: Ticket::new(ticket),
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity: 1,
        key: None,
    }
}

fn opening(free: u32, applied: u64) -> OpenSale {
    OpenSale {
        terms: terms(free),
        free,
        version: GateVersion::new(4),
        applied: Sequence::new(applied),
    }
}

async fn begin(stage: &Stage, token: &LoadToken) -> LoadBegun {
    stage
        .hot
        .loader
        .begin_load(VOUCHER, token, TTL)
        .await
        .unwrap()
}

fn begun(sequence: u64) -> LoadBegun {
    LoadBegun::Begun {
        epoch: EPOCH,
        sequence: Sequence::new(sequence),
    }
}

#[tokio::test]
async fn an_epoch_begins_once_and_only_forward() {
    let stage = Stage::selling(5, |_| {}).await;
    stage.buy(1, 1, 1).await;
    let loader = &stage.hot.loader;
    let begin =
        |epoch, applied| loader.begin_epoch(PARTITION, Epoch::new(epoch), Sequence::new(applied));
    assert_eq!(begin(1, 0).await.unwrap(), EpochBegun::NotNewer(EPOCH));
    assert_eq!(stage.decisions().await.len(), 1, "nothing changed");
    assert_eq!(begin(4, 1).await.unwrap(), EpochBegun::Begun);
    assert_eq!(
        begin(4, 1).await.unwrap(),
        EpochBegun::NotNewer(Epoch::new(4))
    );
    let partition = loader.partition(PARTITION).await.unwrap();
    let expected = PartitionState::Open {
        epoch: Epoch::new(4),
        sequence: Sequence::new(1),
        applied: Sequence::new(1),
    };
    assert_eq!(partition, expected);
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    let streams: Vec<String> = stage.raw("KEYS *:stream:*").await;
    assert_eq!(streams, ["{seckill:p1}:stream:4"], "the old stream is gone");
    let other = loader.partition(PartitionId::new(0)).await.unwrap();
    assert_eq!(other, PartitionState::Missing);
}

#[tokio::test]
async fn a_process_that_believes_in_an_old_epoch_learns_the_new_one() {
    let stage = Stage::selling(5, |_| {}).await;
    let other = stage.another().await.ports();
    stage.buy(1, 1, 1).await;
    let epoch = Epoch::new(2);
    other
        .loader
        .begin_epoch(PARTITION, epoch, Sequence::new(1))
        .await
        .unwrap();
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    stage.open(terms(5), 4).await;
    assert_eq!(stage.buy(2, 2, 1).await, granted(2));
    let admitted = other
        .gate
        .admit(VOUCHER, &[attempt(3, 3, 1)])
        .await
        .unwrap();
    assert!(matches!(admitted, Admitted::Decided { .. }));
}

#[tokio::test]
async fn only_one_loads_and_nobody_buys_meanwhile() {
    let stage = Stage::selling(5, |_| {}).await;
    stage.buy(1, 1, 1).await;
    let (a, b) = (token("a"), token("b"));
    assert_eq!(begin(&stage, &a).await, begun(1));
    assert_eq!(begin(&stage, &b).await, LoadBegun::Busy);
    assert_eq!(begin(&stage, &a).await, begun(1), "its own token");
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Loading)
    );
    let loader = &stage.hot.loader;
    let chunk = LoadChunk::default();
    for not_mine in [
        loader.load(VOUCHER, &b, &chunk, true).await.unwrap(),
        loader
            .append_again(VOUCHER, &b, &[claim(9, 9, 1)], &[])
            .await
            .unwrap(),
    ] {
        assert_eq!(not_mine, LoadStep::NotMine);
    }
    assert_eq!(
        loader.open(VOUCHER, &b, &opening(5, 1)).await.unwrap(),
        Opened::NotMine
    );
    loader.abandon(VOUCHER, &b).await.unwrap();
    assert_eq!(begin(&stage, &b).await, LoadBegun::Busy);
    loader.abandon(VOUCHER, &a).await.unwrap();
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    assert_eq!(begin(&stage, &b).await, begun(1));
}

/// Stands for: check-then-set of the counter by two loaders (hole 2).
#[tokio::test]
async fn a_loader_that_took_too_long_changes_nothing() {
    let stage = Stage::bare().await;
    let (slow, quick) = (token("slow"), token("quick"));
    let loader = &stage.hot.loader;
    loader
        .begin_load(VOUCHER, &slow, Duration::from_millis(50))
        .await
        .unwrap();
    let chunk = LoadChunk {
        holders: vec![holder(1, 1, 1, false)],
        ..LoadChunk::default()
    };
    loader.load(VOUCHER, &slow, &chunk, true).await.unwrap();
    pause(80).await;
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    assert_eq!(begin(&stage, &quick).await, begun(0));
    assert_eq!(
        loader.open(VOUCHER, &slow, &opening(9, 0)).await.unwrap(),
        Opened::NotMine
    );
    assert_eq!(
        loader.open(VOUCHER, &quick, &opening(2, 0)).await.unwrap(),
        Opened::Opened
    );
    assert_eq!(
        stage.buy(2, 1, 1).await,
        granted(2),
        "what the slow one loaded is not there"
    );
    assert_eq!(
        loader.open(VOUCHER, &slow, &opening(9, 0)).await.unwrap(),
        Opened::NotMine
    );
    let again = loader.open(VOUCHER, &quick, &opening(2, 0)).await.unwrap();
    assert_eq!(
        again,
        Opened::Opened,
        "a repeat is answered as the first call"
    );
    let (_, pulse) = stage.batch(&[]).await;
    assert_eq!(pulse.free, 1, "and opens nothing again");
}

#[tokio::test]
async fn what_is_loaded_is_there() {
    let stage = Stage::bare_after(1_000).await;
    let seats = (1..=40).rev().map(|n| seat(n * 3, 100 + n, n)).collect();
    let remembered = |order, first| Remembered {
        order: OrderId::new(order),
        quantity: 1,
        first,
    };
    let chunk = LoadChunk {
        holders: vec![
            holder(11, 50, 1, false),
            holder(12, 51, 2, true),
            holder(13, 50, 1, false),
            holder(13, 50, 1, false),
        ],
        seats,
        keys: vec![KeyUse {
            buyer: BuyerId::new(60),
            key: "used".parse().unwrap(),
            first: remembered(14, PlaceAtFirst::Waitlisted),
        }],
    };
    let terms = seckill_domain::SaleTerms {
        per_buyer_limit: 2,
        waitlist_capacity: 100,
        ..terms(5)
    };
    stage.load(terms, 1, &chunk).await;
    let held = Admission::AlreadyHeld {
        orders: vec![OrderId::new(11), OrderId::new(13)],
    };
    assert_eq!(stage.buy(1, 50, 1).await, held);
    let waiting = |order, position| Admission::AlreadyWaiting {
        order: OrderId::new(order),
        position,
    };
    assert_eq!(stage.buy(2, 1, 1).await, waiting(101, 1));
    assert_eq!(stage.buy(3, 40, 1).await, waiting(140, 40));
    let replayed = Admission::Replayed {
        order: OrderId::new(14),
        first: PlaceAtFirst::Waitlisted,
    };
    assert_eq!(stage.attempt(&keyed(4, 60, 1, "used")).await, replayed);
    assert_eq!(
        stage.buy(5, 70, 1).await,
        waitlisted(5, 41),
        "while anyone waits"
    );
    assert!(!stage.hot.gate.promote(VOUCHER).await.unwrap());
    let last = stage.decisions().await.pop();
    assert!(matches!(last, Some(Decision::Promoted(claim)) if claim.order.get() == 101));
    let place = stage
        .hot
        .gate
        .place(VOUCHER, BuyerId::new(51))
        .await
        .unwrap();
    assert!(place.is_some(), "promoted before the load");
}

/// Stands for: reloading the stock counter from the database while messages are in flight (hole 1).
#[tokio::test]
async fn a_snapshot_that_lacks_decisions_in_flight_opens_nothing() {
    let stage = Stage::selling(5, |_| {}).await;
    stage.batch(&[attempt(1, 1, 1), attempt(2, 2, 1)]).await;
    let (token, loader) = (token("a"), &stage.hot.loader);
    assert_eq!(begin(&stage, &token).await, begun(2));
    let behind = loader.open(VOUCHER, &token, &opening(5, 1)).await.unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(2)));
    let (holders, seats) = ([claim(8, 8, 1)], [seat(1, 9, 9)]);
    let again = loader.append_again(VOUCHER, &token, &holders, &seats);
    assert_eq!(again.await.unwrap(), LoadStep::Done(Sequence::new(4)));
    let again = loader.append_again(VOUCHER, &token, &holders, &seats);
    assert_eq!(
        again.await.unwrap(),
        LoadStep::Done(Sequence::new(4)),
        "in the index"
    );
    let behind = loader.open(VOUCHER, &token, &opening(5, 3)).await.unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(4)));
    assert_eq!(begin(&stage, &token).await, begun(4));
    let behind = loader.open(VOUCHER, &token, &opening(5, 3)).await.unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(4)));
    assert_eq!(
        loader.open(VOUCHER, &token, &opening(2, 4)).await.unwrap(),
        Opened::Opened
    );
    let joined = stage.decisions().await.pop();
    let expected = Decision::Joined {
        claim: claim(9, 9, 1),
        ticket: Ticket::new(1),
    };
    assert_eq!(joined, Some(expected));
}

#[tokio::test]
async fn a_new_epoch_ends_every_load() {
    let stage = Stage::bare().await;
    let (token, loader) = (token("a"), &stage.hot.loader);
    begin(&stage, &token).await;
    loader
        .begin_epoch(PARTITION, Epoch::new(2), Sequence::new(0))
        .await
        .unwrap();
    assert_eq!(
        loader.open(VOUCHER, &token, &opening(5, 0)).await.unwrap(),
        Opened::NotMine
    );
    assert_eq!(
        stage.admitted(1, 1).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    let other = self::token("b");
    assert!(matches!(
        begin(&stage, &other).await,
        LoadBegun::Begun { .. }
    ));
}

#[tokio::test]
async fn survivors_are_told_with_their_keys_page_by_page() {
    let stage = Stage::selling(1_500, |terms| {
        terms.per_buyer_limit = 3;
        terms.waitlist_capacity = 2_000;
    })
    .await;
    let mut expected = Vec::new();
    for batch in 0..30 {
        let attempts: Vec<_> = (1..=50)
            .map(|n| keyed(batch * 50 + n, batch * 50 + n, 1, "k"))
            .collect();
        stage.batch(&attempts).await;
        expected.extend(attempts.iter().map(|it| Claim::of(VOUCHER, it)));
    }
    let mut seats = Vec::new();
    for batch in 0..30 {
        let first = 2_000 + batch * 50;
        let attempts: Vec<_> = (1..=50).map(|n| attempt(first + n, first + n, 2)).collect();
        stage.batch(&attempts).await;
        seats.extend((1..=50).map(|n| Seat {
            ticket: Ticket::new(1_500 + batch * 50 + n),
            quantity: 2,
            ..seat(0, first + n, first + n)
        }));
    }
    stage.hot.loader.unload(VOUCHER).await.unwrap();
    assert_eq!(
        stage.admitted(1, 1).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    let (mut holders, mut found_seats, mut pages, mut cursor) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        let page = stage.hot.loader.survivors(VOUCHER, cursor).await.unwrap();
        assert!(page.holders.len() + page.seats.len() <= 2_000);
        holders.extend(page.holders);
        found_seats.extend(page.seats);
        pages += 1;
        let Some(next) = page.next else { break };
        cursor = next;
    }
    assert!(pages > 2, "{pages} pages");
    holders.sort_by_key(|claim| claim.order);
    holders.dedup();
    assert_eq!(holders, expected);
    found_seats.sort_by_key(|seat| seat.ticket);
    found_seats.dedup();
    assert_eq!(found_seats, seats);
    let nothing = stage
        .hot
        .loader
        .survivors(VoucherId::new(9), 0)
        .await
        .unwrap();
    assert_eq!((nothing.holders, nothing.seats), (vec![], vec![]));
}

#[tokio::test]
async fn remembered_grants_are_taken_recorded_as_lost_or_left_alone() {
    let stage = Stage::selling(2, |terms| terms.waitlist_capacity = 5).await;
    stage.batch(&[attempt(1, 1, 1)]).await;
    let offer = |claims: Vec<Claim>| {
        let loader = stage.hot.loader.clone();
        async move { loader.offer(VOUCHER, &claims).await.unwrap() }
    };
    let claims = vec![
        claim(1, 1, 1),
        claim(2, 2, 1),
        claim(3, 3, 1),
        claim(4, 1, 1),
    ];
    assert_eq!(offer(claims.clone()).await, Offered::Taken);
    assert_eq!(offer(claims).await, Offered::Taken, "repeatable");
    let decisions = stage.decisions().await;
    let expected = [
        Decision::Granted(claim(1, 1, 1)),
        Decision::Granted(claim(2, 2, 1)),
        Decision::Lost(claim(3, 3, 1)),
        Decision::Lost(claim(4, 1, 1)),
    ];
    assert_eq!(decisions, expected);
    let (_, pulse) = stage.batch(&[]).await;
    assert_eq!(pulse.free, 0);
    let token = token("a");
    assert_eq!(begin(&stage, &token).await, begun(4));
    assert_eq!(
        offer(vec![claim(5, 5, 1), claim(2, 2, 1)]).await,
        Offered::Taken
    );
    let last = stage.decisions().await.pop();
    assert_eq!(
        last,
        Some(Decision::Granted(claim(5, 5, 1))),
        "whatever the stock, while loading"
    );
    let behind = stage
        .hot
        .loader
        .open(VOUCHER, &token, &opening(0, 4))
        .await
        .unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(5)));
    stage.hot.loader.abandon(VOUCHER, &token).await.unwrap();
    assert_eq!(offer(vec![claim(6, 6, 1)]).await, Offered::NotLoaded);
    let elsewhere = VoucherId::new(8);
    let missing = stage
        .hot
        .loader
        .offer(elsewhere, &[claim(6, 6, 1)])
        .await
        .unwrap();
    assert_eq!(missing, Offered::PartitionMissing);
}

#[tokio::test]
async fn a_thousand_claims_make_entries_that_a_reader_has_room_for() {
    let stage = Stage::bare().await;
    let token = token("a");
    begin(&stage, &token).await;
    let claims: Vec<_> = (1..=1_000).map(|n| claim(n, n, 1)).collect();
    let step = stage
        .hot
        .loader
        .append_again(VOUCHER, &token, &claims, &[])
        .await
        .unwrap();
    assert_eq!(step, LoadStep::Done(Sequence::new(1_000)));
    let entries = stage.entries(EntryId::START).await;
    let longest = entries
        .iter()
        .map(|it| it.body.as_ref().map_or(0, |it| it.decisions.len()))
        .max();
    assert_eq!((entries.len(), longest), (8, Some(128)));
    assert_eq!(stage.decisions().await.len(), 1_000);
    assert_eq!(
        stage.raw::<i64>(&format!("HLEN {}", key("decided"))).await,
        1_000
    );
}

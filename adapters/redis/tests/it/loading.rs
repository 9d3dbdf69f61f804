//! The loading protocol.

use std::time::Duration;

use seckill_application::ports::{
    Admitted, EpochBegun, Holder, KeyUse, LoadBegun, LoadChunk, LoadStep, LoadToken, NotLoaded,
    OpenSale, Opened, PartitionState, Place, PlaceReply,
};
use seckill_domain::{
    Admission, BuyerId, Claim, Decision, Epoch, GateVersion, Held, OrderId, PartitionId,
    PlaceAtFirst, Remembered, Seat, Sequence, Ticket,
};

use crate::stage::{
    EPOCH, PARTITION, Stage, VOUCHER, attempt, granted, keyed, pause, terms, waitlisted,
};

const TTL: Duration = Duration::from_secs(10);

pub(crate) fn token(name: &str) -> LoadToken {
    LoadToken(name.to_owned())
}

pub(crate) fn claim(order: u64, buyer: u64, quantity: u32) -> Claim {
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

pub(crate) fn seat(ticket: u64, order: u64, buyer: u64) -> Seat {
    Seat {
        ticket: Ticket::new(ticket),
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity: 1,
        key: None,
    }
}

pub(crate) fn opening(free: u32, applied: u64) -> OpenSale {
    OpenSale {
        terms: terms(free),
        free,
        version: GateVersion::new(4),
        applied: Sequence::new(applied),
    }
}

pub(crate) async fn begin(stage: &Stage, token: &LoadToken) -> LoadBegun {
    stage
        .hot
        .loader
        .begin_load(VOUCHER, token, TTL)
        .await
        .unwrap()
}

pub(crate) fn begun(sequence: u64) -> LoadBegun {
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
        loader.load(VOUCHER, &b, &chunk, 0).await.unwrap(),
        loader
            .append_again(VOUCHER, &b, &[claim(9, 9, 1)], &[])
            .await
            .unwrap(),
    ] {
        assert_eq!(not_mine, LoadStep::NotMine);
    }
    assert_eq!(
        loader.open(VOUCHER, &b, &opening(5, 1), 0).await.unwrap(),
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
    loader.load(VOUCHER, &slow, &chunk, 0).await.unwrap();
    pause(80).await;
    assert_eq!(
        stage.admitted(2, 2).await,
        Admitted::NotLoaded(NotLoaded::Voucher)
    );
    assert_eq!(begin(&stage, &quick).await, begun(0));
    assert_eq!(
        loader
            .open(VOUCHER, &slow, &opening(9, 0), 0)
            .await
            .unwrap(),
        Opened::NotMine
    );
    assert_eq!(
        loader
            .open(VOUCHER, &quick, &opening(2, 0), 0)
            .await
            .unwrap(),
        Opened::Opened
    );
    assert_eq!(
        stage.buy(2, 1, 1).await,
        granted(2),
        "what the slow one loaded is not there"
    );
    assert_eq!(
        loader
            .open(VOUCHER, &slow, &opening(9, 0), 0)
            .await
            .unwrap(),
        Opened::NotMine
    );
    let again = loader
        .open(VOUCHER, &quick, &opening(2, 0), 0)
        .await
        .unwrap();
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
        waitlisted(5, 41, 1_001),
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
    let promoted = PlaceReply::At(Place::Promoted {
        order: OrderId::new(12),
        length: 40,
    });
    assert_eq!(place, promoted, "before the load");
}

/// Stands for: reloading the stock counter from the database while messages are in flight (hole 1).
#[tokio::test]
async fn a_snapshot_that_lacks_decisions_in_flight_opens_nothing() {
    let stage = Stage::selling(5, |_| {}).await;
    stage.batch(&[attempt(1, 1, 1), attempt(2, 2, 1)]).await;
    let (token, loader) = (token("a"), &stage.hot.loader);
    assert_eq!(begin(&stage, &token).await, begun(2));
    let behind = loader
        .open(VOUCHER, &token, &opening(5, 1), 0)
        .await
        .unwrap();
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
    let behind = loader
        .open(VOUCHER, &token, &opening(5, 3), 0)
        .await
        .unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(4)));
    assert_eq!(begin(&stage, &token).await, begun(4));
    let behind = loader
        .open(VOUCHER, &token, &opening(5, 3), 0)
        .await
        .unwrap();
    assert_eq!(behind, Opened::Behind(Sequence::new(4)));
    assert_eq!(
        loader
            .open(VOUCHER, &token, &opening(2, 4), 0)
            .await
            .unwrap(),
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
        loader
            .open(VOUCHER, &token, &opening(5, 0), 0)
            .await
            .unwrap(),
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

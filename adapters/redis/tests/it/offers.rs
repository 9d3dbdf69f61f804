//! Places that are offered again, and turns that come twice.

use seckill_application::ports::{LeaveReply, LoadChunk, LoadStep, Offered};
use seckill_domain::{BuyerId, Decision, GateChange, GateUpdate, GateVersion, OrderId, Seat};

use crate::loading::{begin, opening, seat, token};
use crate::stage::{Stage, VOUCHER, attempt, terms};

async fn offer(stage: &Stage, seats: &[Seat]) -> Offered {
    stage.hot.loader.offer(VOUCHER, &[], seats).await.unwrap()
}

/// The orders that get a unit each, when one after the other comes free.
async fn served(stage: &Stage, from: u64, units: u64) -> Vec<u64> {
    let before = stage.decisions().await.len();
    for version in from..from + units {
        let update = GateUpdate {
            voucher: VOUCHER,
            version: GateVersion::new(version),
            changes: vec![GateChange::AddUnits { units: 1 }],
        };
        stage.hot.gate.follow(&update).await.unwrap();
    }
    let mut orders = Vec::new();
    for decision in &stage.decisions().await[before..] {
        if let Decision::Promoted(claim) = decision {
            orders.push(claim.order.get());
        }
    }
    orders
}

#[tokio::test]
async fn a_place_is_given_back_with_its_turn() {
    let stage = Stage::selling(0, |terms| terms.waitlist_capacity = 4).await;
    stage.batch(&[attempt(1, 1, 1), attempt(2, 2, 1)]).await;
    let seats = [
        seat(20, 12, 12),
        seat(10, 11, 11),
        seat(5, 1, 1),
        seat(30, 13, 13),
    ];
    assert_eq!(offer(&stage, &seats).await, Offered::Taken);
    assert_eq!(offer(&stage, &seats).await, Offered::Taken, "repeatable");
    let lost = stage.decisions().await.pop().expect("a decision");
    assert!(
        matches!(&lost, Decision::Lost(claim) if claim.order.get() == 13),
        "the list is full: {lost:?}"
    );
    assert_eq!(stage.decisions().await.len(), 5);
    assert_eq!(served(&stage, 2, 4).await, [11, 12, 1, 2]);
}

/// Fault: a Redis that went back draws numbers again, and with them turns. Short orders are stored
/// whole, and long ones without what they begin with.
#[tokio::test]
async fn two_who_have_the_same_turn_are_both_served() {
    for before in [0, 385_896_408_255_299_580] {
        same_turn(before).await;
    }
}

async fn same_turn(before: u64) {
    let stage = Stage::bare().await;
    let terms = seckill_domain::SaleTerms {
        waitlist_capacity: 100,
        ..terms(10)
    };
    let of = |ticket, buyer| seat(ticket, before + buyer, buyer);
    let seats = vec![of(5, 1), of(6, 2), of(5, 3), of(5, 4)];
    let chunk = LoadChunk {
        seats,
        ..LoadChunk::default()
    };
    stage.load(terms, 0, &chunk).await;
    assert_eq!(offer(&stage, &[of(6, 5)]).await, Offered::Taken);
    for buyer in 1..=5 {
        let place = stage.hot.gate.place(VOUCHER, BuyerId::new(buyer)).await;
        let place = format!("{:?}", place.unwrap());
        let order = format!("OrderId({})", before + buyer);
        assert!(place.contains(&order), "{place}");
    }
    let order = OrderId::new(before + 5);
    let found = stage.hot.gate.find_order(order).await.unwrap();
    assert_eq!(found.expect("known").position, Some(5));
    let left = stage.hot.gate.leave(VOUCHER, BuyerId::new(1)).await;
    assert_eq!(left.unwrap(), LeaveReply::Left(OrderId::new(before + 1)));
    let survivors = stage.hot.loader.survivors(VOUCHER, 1 << 63).await.unwrap();
    let mut survive: Vec<(u64, u64, u64)> = survivors
        .seats
        .iter()
        .map(|seat| {
            (
                seat.ticket.get(),
                seat.order.get() - before,
                seat.buyer.get(),
            )
        })
        .collect();
    survive.sort_unstable();
    assert_eq!(survive, [(5, 3, 3), (5, 4, 4), (6, 2, 2), (6, 5, 5)]);
    let served = served(&stage, 2, 4).await;
    let mut served: Vec<u64> = served.iter().map(|order| order - before).collect();
    served[..2].sort_unstable();
    served[2..].sort_unstable();
    assert_eq!(served, [3, 4, 2, 5], "by turn");
    let (_, pulse) = stage.batch(&[]).await;
    assert_eq!((pulse.free, pulse.waiting), (0, 0));
}

#[tokio::test]
async fn while_it_is_loading_a_place_is_appended_with_its_turn() {
    let stage = Stage::selling(0, |terms| terms.waitlist_capacity = 1).await;
    let token = token("a");
    begin(&stage, &token).await;
    let seats = [seat(20, 12, 12), seat(10, 11, 11)];
    assert_eq!(offer(&stage, &seats).await, Offered::Taken);
    let tickets: Vec<_> = stage
        .decisions()
        .await
        .into_iter()
        .map(|decision| match decision {
            Decision::Joined { claim, ticket } => (claim.order.get(), ticket.get()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tickets, [(12, 20), (11, 10)]);
    let loader = &stage.hot.loader;
    let chunk = LoadChunk {
        seats: seats.to_vec(),
        ..LoadChunk::default()
    };
    let step = loader.load(VOUCHER, &token, &chunk, 0).await.unwrap();
    let LoadStep::Done(sequence) = step else {
        panic!("{step:?}");
    };
    let opened = loader
        .open(VOUCHER, &token, &opening(0, sequence.get()), 1)
        .await;
    opened.unwrap();
    assert_eq!(
        stage.hot.gate.facts(&[VOUCHER]).await.unwrap()[0]
            .expect("loaded")
            .pulse
            .waiting,
        2
    );
}

//! Reads of the gate.

use seckill_application::ports::{EntryId, NotLoaded, Place, PlaceReply};
use seckill_domain::{
    AdjustmentId, BuyerId, GateChange, GateUpdate, GateVersion, OrderId, PlaceAtFirst, Sequence,
    VoucherId,
};

use crate::stage::{EPOCH, PARTITION, Stage, VOUCHER, attempt, keyed};

fn free_one(order: u64, buyer: u64) -> GateUpdate {
    GateUpdate {
        voucher: VOUCHER,
        version: GateVersion::new(2),
        changes: vec![GateChange::Release {
            order: OrderId::new(order),
            buyer: BuyerId::new(buyer),
            quantity: 1,
        }],
    }
}

#[tokio::test]
async fn a_place_is_told_until_it_is_served() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 10).await;
    let attempts: Vec<_> = (1..=4).map(|n| attempt(n, n, 1)).collect();
    stage.batch(&attempts).await;
    let place = |buyer| {
        let gate = stage.hot.gate.clone();
        async move { gate.place(VOUCHER, BuyerId::new(buyer)).await.unwrap() }
    };
    assert_eq!(place(1).await, PlaceReply::Nowhere);
    let waiting = |order, position, length| {
        let order = OrderId::new(order);
        PlaceReply::At(Place::Waiting {
            order,
            position,
            length,
        })
    };
    assert_eq!(place(3).await, waiting(3, 2, 3));
    stage.hot.gate.follow(&free_one(1, 1)).await.unwrap();
    assert_eq!(place(3).await, waiting(3, 1, 2));
    let promoted = Place::Promoted {
        order: OrderId::new(2),
        length: 2,
    };
    assert_eq!(place(2).await, PlaceReply::At(promoted));
    let unknown = stage
        .hot
        .gate
        .place(VoucherId::new(9), BuyerId::new(1))
        .await;
    assert_eq!(unknown.unwrap(), PlaceReply::NotLoaded(NotLoaded::Voucher));
}

#[tokio::test]
async fn an_order_is_found_without_knowing_its_voucher() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 10).await;
    // The other partition has nothing, and does not even live.
    stage.batch(&[keyed(1, 1, 1, "k"), attempt(2, 2, 1)]).await;
    let find = |order| {
        let gate = stage.hot.gate.clone();
        async move { gate.find_order(OrderId::new(order)).await.unwrap() }
    };
    let held = find(1).await.expect("known");
    assert_eq!(
        (held.first, held.holds_units),
        (PlaceAtFirst::Granted, true)
    );
    assert_eq!((held.claim.voucher, held.claim.buyer.get()), (VOUCHER, 1));
    assert_eq!((held.claim.key, held.position), (None, None));
    let entry = &stage.entries(EntryId::START).await[0];
    assert_eq!(held.decided_at, entry.id.written_at());
    let waits = find(2).await.expect("known");
    assert_eq!(
        (waits.first, waits.holds_units),
        (PlaceAtFirst::Waitlisted, false)
    );
    assert_eq!(waits.position, Some(1));
    assert_eq!(find(3).await, None);
    stage.hot.gate.follow(&free_one(1, 1)).await.unwrap();
    let released = find(1).await.expect("known");
    assert!(!released.holds_units);
    let promoted = find(2).await.expect("known");
    assert_eq!((promoted.holds_units, promoted.position), (true, None));
    assert_eq!(promoted.first, PlaceAtFirst::Waitlisted);
}

#[tokio::test]
async fn an_order_is_the_ledgers_once_its_last_decision_is_applied() {
    let stage = Stage::selling(1, |terms| terms.waitlist_capacity = 10).await;
    // One entry of three decisions.
    let attempts: Vec<_> = (1..=3).map(|n| attempt(n, n, 1)).collect();
    stage.batch(&attempts).await;
    let applied = async |numbered: u64| {
        let ack = stage
            .hot
            .stream
            .ack(PARTITION, EPOCH, &[], Sequence::new(numbered));
        ack.await.unwrap();
        let mut of = Vec::new();
        for order in 1..=3 {
            let found = stage.hot.gate.find_order(OrderId::new(order)).await;
            of.push(found.unwrap().expect("known").applied);
        }
        of
    };
    assert_eq!(applied(0).await, [false, false, false]);
    assert_eq!(applied(1).await, [true, false, false]);
    assert_eq!(applied(3).await, [true, true, true]);
    stage.hot.gate.follow(&free_one(1, 1)).await.unwrap();
    assert_eq!(applied(3).await, [true, false, true], "promoted since");
    assert_eq!(applied(4).await, [true, true, true]);
}

#[tokio::test]
async fn facts_are_told_for_many_at_once() {
    let stage = Stage::selling(3, |terms| terms.waitlist_capacity = 2).await;
    stage.buy(1, 1, 1).await;
    let asked = [VoucherId::new(1), VOUCHER, VoucherId::new(2), VOUCHER];
    let facts = stage.hot.gate.facts(&asked).await.unwrap();
    assert_eq!(facts.len(), 4);
    assert_eq!((facts[0], facts[2]), (None, None));
    let sale = facts[1].expect("loaded");
    assert_eq!(facts[3], Some(sale));
    assert_eq!((sale.pulse.free, sale.pulse.waiting), (2, 0));
    assert!(sale.pulse.waitlist_open);
    let expected = seckill_domain::SaleTerms {
        waitlist_capacity: 2,
        ..crate::stage::terms(3)
    };
    assert_eq!(sale.terms, expected);
}

#[tokio::test]
async fn a_tally_counts_what_stands_after_an_entry() {
    let stage = Stage::selling(10, |terms| {
        terms.per_buyer_limit = 3;
        terms.waitlist_capacity = 10;
    })
    .await;
    stage.batch(&[attempt(1, 1, 2), attempt(2, 2, 3)]).await;
    let first = stage.entries(EntryId::START).await[0].id;
    let gate = &stage.hot.gate;
    gate.withdraw(VOUCHER, 4, AdjustmentId::new(1))
        .await
        .unwrap();
    stage.batch(&[attempt(3, 3, 2)]).await;
    let tally = gate
        .tally(VOUCHER, EntryId::START)
        .await
        .unwrap()
        .expect("loaded");
    assert_eq!(
        (tally.free, tally.sequence.get(), tally.units_after),
        (1, 4, 9)
    );
    assert_eq!((tally.epoch.get(), tally.version.get()), (1, 1));
    let tally = gate.tally(VOUCHER, first).await.unwrap().expect("loaded");
    assert_eq!(tally.units_after, 4, "joining takes nothing");
    assert_eq!(gate.tally(VoucherId::new(9), first).await.unwrap(), None);
}

#[tokio::test]
async fn a_tally_that_would_take_too_long_is_refused() {
    let stage = Stage::selling(0, |_| {}).await;
    let lines = vec!["granted 9 1 1 1 -"; 101].join("\n");
    for _ in 0..200 {
        let entry = ["XADD", &crate::stage::key("stream"), "*", "d", &lines];
        stage.command::<String>(&entry).await;
    }
    let fault = stage.hot.gate.tally(VOUCHER, EntryId::START).await;
    assert!(fault.expect_err("too many").is_retryable());
}

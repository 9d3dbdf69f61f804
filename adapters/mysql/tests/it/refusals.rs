//! What cannot be applied, and whom it must not block.

use seckill_application::ports::{
    AdmissionBatch, BatchItem, EntryId, NewVoucher, ParkReason, Verdict,
};
use seckill_domain::{
    AdjustmentId, Claim, Decision, OrderId, OrderStatus, RejectReason, VoucherId,
};

use crate::fixture::{Fixture, PARTITION, entry, number, terms, unreadable};

fn parked(reason: ParkReason) -> Verdict {
    Verdict::Parked(reason)
}

#[tokio::test]
async fn a_decision_that_comes_again_is_already_there() {
    let mut fixture = Fixture::new(10, 2).await;
    fixture
        .apply(vec![fixture.granted(1, 1, 1), fixture.joined(2, 2, 1, 2)])
        .await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(1, 1, 1),
            fixture.joined(2, 2, 1, 2),
            fixture.granted(3, 3, 1),
        ])
        .await;
    let there = Verdict::AlreadyThere;
    assert_eq!(verdicts, [there, there, Verdict::Confirmed]);
    assert_eq!(fixture.voucher().await.stock_units, 8);
    assert_eq!(fixture.held_by(1).await, 1);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_grant_of_an_order_that_has_gone_on_takes_nothing() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    fixture.cancel(1).await;
    let verdicts = fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::AlreadyThere]);
    assert_eq!(
        fixture.order(1).await.unwrap().status(),
        OrderStatus::Cancelled
    );
    assert_eq!(fixture.voucher().await.stock_units, 10);
}

#[tokio::test]
async fn an_order_id_of_somebody_else_is_parked() {
    let mut fixture = Fixture::new(10, 2).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(1, 2, 1),
            fixture.granted(1, 1, 2),
            fixture.granted(3, 3, 1),
        ])
        .await;
    let bad = parked(ParkReason::BadValues);
    assert_eq!(verdicts, [bad, bad, Verdict::Confirmed]);
    assert_eq!(fixture.order(1).await.unwrap().buyer.get(), 1);
    let sum = "SELECT CAST(SUM(units) AS SIGNED) FROM parked_messages WHERE state = 'parked'";
    assert_eq!(
        fixture.number(sum).await,
        3,
        "what it took is accounted for"
    );
    assert_eq!(fixture.voucher().await.stock_units, 5);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_unknown_voucher_and_a_draft_park_their_orders_alone() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let draft = NewVoucher {
        terms: terms(1),
        total_units: 5,
    };
    let draft = unit.insert_voucher(&draft).await.unwrap().id;
    unit.commit().await.unwrap();
    let of = |voucher, order| {
        Decision::Granted(Claim {
            voucher,
            ..fixture.claim(order, order, 1)
        })
    };
    let decisions = vec![
        fixture.granted(1, 1, 1),
        of(VoucherId::new(999), 2),
        of(draft, 3),
        fixture.granted(4, 4, 1),
    ];
    let verdicts = fixture.apply(decisions).await;
    let unknown = parked(ParkReason::UnknownVoucher);
    assert_eq!(
        verdicts,
        [Verdict::Confirmed, unknown, unknown, Verdict::Confirmed]
    );
    let ids = [1, 2, 3, 4, 5].map(OrderId::new);
    let mut stages = fixture.ports.ledger.stages(&ids).await.unwrap();
    stages.sort_unstable();
    let pending = OrderStatus::PendingPayment;
    let queued = OrderStatus::Queued;
    assert_eq!(
        stages,
        [pending, queued, queued, pending]
            .into_iter()
            .zip(ids)
            .map(|(status, id)| (id, status))
            .collect::<Vec<_>>()
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_unreadable_entry_is_parked_and_blocks_nobody() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut batch = fixture.batch(vec![fixture.granted(1, 1, 1), fixture.granted(2, 2, 1)]);
    let strange = EntryId {
        millis: entry(fixture.head.applied.next()).millis,
        counter: 1,
    };
    batch.items.insert(1, unreadable(strange));
    let verdicts = fixture.apply_batch(&batch).await;
    let bad = parked(ParkReason::Unreadable);
    assert_eq!(verdicts, [Verdict::Confirmed, bad, Verdict::Confirmed]);
    assert_eq!(fixture.head.applied.get(), 2);
    assert!(
        fixture
            .ports
            .admissions
            .has_applied(PARTITION, &batch.items)
            .await
            .unwrap()
    );
    let mut connection = fixture.database.connect().await;
    let kept = "SELECT COUNT(*) FROM parked_messages WHERE payload LIKE '%knows%'";
    assert_eq!(number(&mut connection, kept).await, 1);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_unreadable_entry_alone_moves_the_entry_and_not_the_sequence() {
    let mut fixture = Fixture::new(10, 1).await;
    let strange = EntryId {
        millis: 5,
        counter: 5,
    };
    let batch = AdmissionBatch {
        partition: PARTITION,
        head: fixture.head,
        items: vec![unreadable(strange)],
        up_to: strange,
    };
    fixture.apply_batch(&batch).await;
    assert_eq!(
        (fixture.head.applied.get(), fixture.head.entry),
        (0, strange)
    );
    let verdicts = fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
}

#[tokio::test]
async fn values_that_the_database_refuses_are_parked_and_block_nobody() {
    let mut fixture = Fixture::new(1_000, 1_000).await;
    let mut decisions: Vec<Decision> = (1..=40).map(|n| fixture.granted(n, n, 1)).collect();
    // No row can hold these: no units, and an amount beyond 64 bits.
    decisions[7] = fixture.granted(8, 8, 0);
    decisions[30] = fixture.joined(31, 31, u32::MAX, 31);
    let mut meddler = fixture.database.connect().await;
    let dear = "UPDATE vouchers SET price_minor = 9000000000000000000";
    crate::fixture::run(&mut meddler, dear).await;
    let verdicts = fixture.apply(decisions).await;
    for (index, verdict) in verdicts.iter().enumerate() {
        if index == 7 || index == 30 {
            assert_eq!(*verdict, parked(ParkReason::BadValues));
        } else {
            assert_eq!(*verdict, Verdict::Confirmed, "{index}");
        }
    }
    assert_eq!(fixture.voucher().await.stock_units, 962);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_split_batch_keeps_entries_of_several_decisions_whole() {
    let mut fixture = Fixture::new(1_000, 1_000).await;
    let decisions: Vec<Decision> = (1..=9)
        .map(|n| fixture.joined(n, n, if n == 5 { u32::MAX } else { 1 }, n))
        .collect();
    let mut meddler = fixture.database.connect().await;
    let dear = "UPDATE vouchers SET price_minor = 9000000000000000000";
    crate::fixture::run(&mut meddler, dear).await;
    let mut batch = fixture.batch(decisions);
    // Two entries: the first of four decisions, the second of five.
    let (first, second) = (entry(fixture.head.applied), batch.up_to);
    for (index, item) in batch.items.iter_mut().enumerate() {
        if let BatchItem::Decision { entry, .. } = item {
            *entry = if index < 4 { first } else { second };
        }
    }
    let verdicts = fixture.apply_batch(&batch).await;
    assert_eq!(verdicts[4], parked(ParkReason::BadValues));
    assert_eq!(fixture.head.entry, second);
    assert_eq!(fixture.head.applied.get(), 9);
}

#[tokio::test]
async fn a_withdrawal_takes_units_out_of_total_and_stock_once() {
    let mut fixture = Fixture::new(10, 1).await;
    let adjustment = fixture.record(-4).await;
    let voucher = fixture.voucher;
    let withdrawn = |units| Decision::Withdrawn {
        voucher,
        units,
        adjustment,
    };
    let decisions = vec![
        fixture.granted(1, 1, 1),
        withdrawn(4),
        fixture.granted(2, 2, 1),
    ];
    let batch = fixture.batch(decisions);
    let verdicts = fixture.apply_batch(&batch).await;
    assert_eq!(verdicts, [Verdict::Confirmed; 3]);
    assert!(
        fixture
            .ports
            .admissions
            .has_applied(PARTITION, &batch.items)
            .await
            .unwrap()
    );
    let again = withdrawn(4);
    let wrong = withdrawn(3);
    let unknown = Decision::Withdrawn {
        voucher: fixture.voucher,
        units: 1,
        adjustment: AdjustmentId::new(4_711),
    };
    let verdicts = fixture.apply(vec![again, wrong, unknown]).await;
    let bad = parked(ParkReason::BadValues);
    assert_eq!(verdicts, [Verdict::AlreadyThere, bad, bad]);
    let voucher = fixture.voucher().await;
    assert_eq!(
        (voucher.total_units, voucher.stock_units),
        (6, 0),
        "4 are parked"
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_withdrawal_beyond_the_stock_is_refused() {
    let mut fixture = Fixture::new(3, 3).await;
    let adjustment = fixture.record(-2).await;
    let voucher = fixture.voucher;
    let withdrawn = Decision::Withdrawn {
        voucher,
        units: 2,
        adjustment,
    };
    let verdicts = fixture
        .apply(vec![fixture.granted(1, 1, 2), withdrawn])
        .await;
    let refused = Verdict::Rejected(RejectReason::NoStock);
    assert_eq!(verdicts, [Verdict::Confirmed, refused]);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn another_decision_with_a_known_number_was_not_applied() {
    let mut fixture = Fixture::new(10, 3).await;
    let decisions = vec![
        fixture.granted(1, 1, 1),
        fixture.joined(2, 2, 1, 2),
        fixture.promoted(2, 2, 1),
        Decision::Lost(fixture.claim(4, 4, 1)),
    ];
    let batch = fixture.batch(decisions.clone());
    fixture.apply_batch(&batch).await;
    let ask = async |at: usize, decision: Decision| {
        let mut items = batch.items.clone();
        if let BatchItem::Decision { decision: said, .. } = &mut items[at] {
            *said = decision;
        }
        let admissions = &fixture.ports.admissions;
        admissions.has_applied(PARTITION, &items).await.unwrap()
    };
    for (at, decision) in decisions.iter().enumerate() {
        assert!(ask(at, decision.clone()).await, "{at}");
    }
    assert!(!ask(0, fixture.granted(9, 1, 1)).await, "another order");
    assert!(!ask(0, fixture.granted(1, 9, 1)).await, "another buyer");
    assert!(!ask(0, fixture.granted(1, 1, 2)).await, "another quantity");
    assert!(!ask(0, fixture.joined(1, 1, 1, 1)).await, "another kind");
    assert!(!ask(3, fixture.granted(4, 4, 1)).await, "lost, not granted");
    let left = fixture.left(2, 2, seckill_domain::LeftReason::Withdrawn);
    assert!(!ask(2, left).await, "promoted, not left");
    assert!(!ask(3, fixture.promoted(2, 2, 1)).await, "a later number");
    assert!(
        ask(1, fixture.promoted(2, 2, 1)).await,
        "an earlier one that said the same"
    );
}

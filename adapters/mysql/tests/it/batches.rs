//! What a batch does when everything in it is news.

use std::time::Duration;

use seckill_application::ports::{AdmissionBatch, Applied, EntryId, Verdict};
use seckill_domain::{Claim, Decision, OrderId, OrderStatus, RejectReason, Stage, Timestamp};

use crate::fixture::{Fixture, PARTITION, PRICE, WINDOW, batch, entry, publish};

#[tokio::test]
async fn a_grant_becomes_an_order_that_waits_for_payment() {
    let mut fixture = Fixture::new(10, 2).await;
    let claim = Claim {
        key: Some("tap-1".parse().unwrap()),
        ..fixture.claim(7, 42, 2)
    };
    let before = now(&fixture).await;
    let verdicts = fixture.apply(vec![Decision::Granted(claim)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);

    let order = fixture.order(7).await.unwrap();
    assert_eq!(order.stage, Stage::PendingPayment);
    assert_eq!((order.buyer.get(), order.quantity), (42, 2));
    assert_eq!(order.amount.minor, 2 * PRICE);
    assert_eq!(order.amount.currency.as_str(), "CNY");
    assert_eq!(order.key.unwrap().as_str(), "tap-1");
    assert_eq!(
        order.created_at,
        entry(fixture.head.applied).written_at(),
        "when the gate decided"
    );
    let end = order.expires_at.unwrap();
    assert!(before.plus(WINDOW) <= end, "by the database's clock");
    assert!(end <= now(&fixture).await.plus(WINDOW));
    assert_eq!(fixture.voucher().await.stock_units, 8);
    assert_eq!(fixture.held_by(42).await, 2);
    fixture.assert_sound().await;
}

async fn now(fixture: &Fixture) -> seckill_domain::Timestamp {
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    unit.now().await.unwrap()
}

#[tokio::test]
async fn ids_use_all_64_bits() {
    let mut fixture = Fixture::new(10, 1).await;
    let verdicts = fixture
        .apply(vec![
            fixture.granted(u64::MAX, u64::MAX - 1, 1),
            fixture.granted((1 << 53) + 1, (1 << 53) + 3, 1),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed; 2]);
    let order = fixture.order(u64::MAX).await.unwrap();
    assert_eq!(order.buyer.get(), u64::MAX - 1);
    let order = fixture.order((1 << 53) + 1).await.unwrap();
    assert_eq!(order.buyer.get(), (1 << 53) + 3);
}

#[tokio::test]
async fn a_batch_may_be_of_many_vouchers_and_kinds() {
    let mut fixture = Fixture::new(10, 3).await;
    let other = publish(&fixture.ports, 5, 1).await.id;
    let of_other = Claim {
        voucher: other,
        ..fixture.claim(3, 1, 1)
    };
    let verdicts = fixture
        .apply(vec![
            fixture.granted(1, 1, 1),
            fixture.granted(2, 1, 2),
            Decision::Granted(of_other),
            fixture.joined(4, 2, 1, 4),
            Decision::Lost(fixture.claim(5, 3, 1)),
            fixture.joined(6, 4, 2, 6),
            fixture.promoted(6, 4, 2),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed; 7]);
    assert_eq!(fixture.voucher().await.stock_units, 5);
    assert_eq!(fixture.held_by(1).await, 4, "3 of one and 1 of the other");
    let lost = Stage::Rejected {
        reason: RejectReason::Lost,
    };
    assert_eq!(fixture.order(5).await.unwrap().stage, lost);
    assert_eq!(fixture.order(4).await.unwrap().stage, Stage::Waiting);
    assert_eq!(fixture.order(6).await.unwrap().stage, Stage::PendingPayment);
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 0);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn an_empty_batch_moves_the_position_only() {
    let mut fixture = Fixture::new(10, 1).await;
    let up_to = EntryId {
        millis: 77,
        counter: 3,
    };
    let empty = AdmissionBatch {
        up_to,
        ..batch(fixture.head, Vec::new())
    };
    fixture.apply_batch(&empty).await;
    assert_eq!(fixture.head.entry, up_to);
    assert_eq!(fixture.head.applied.get(), 0);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_stale_and_changes_nothing() {
    let mut fixture = Fixture::new(10, 1).await;
    let batch = fixture.batch(vec![fixture.granted(1, 1, 1), fixture.granted(2, 2, 1)]);
    fixture.apply_batch(&batch).await;
    let again = fixture.ports.admissions.apply(&batch).await.unwrap();
    assert_eq!(again, Applied::Stale(fixture.head));
    assert_eq!(fixture.voucher().await.stock_units, 8);
    let admissions = &fixture.ports.admissions;
    assert!(
        admissions
            .has_applied(PARTITION, &batch.items)
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn batches_with_gaps_are_not_applied() {
    let fixture = Fixture::new(10, 1).await;
    let mut ahead = fixture.head;
    ahead.applied = ahead.applied.next();
    let gap = AdmissionBatch {
        head: fixture.head,
        ..batch(ahead, vec![fixture.granted(1, 1, 1)])
    };
    let fault = fixture.ports.admissions.apply(&gap).await.unwrap_err();
    assert!(!fault.is_retryable());
    assert!(fixture.order(1).await.is_none());
}

#[tokio::test]
async fn concurrent_copies_of_a_batch_are_applied_once() {
    let fixture = Fixture::new(10, 1).await;
    let batch = fixture.batch((1..=5).map(|n| fixture.granted(n, n, 1)).collect());
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (admissions, batch) = (fixture.ports.admissions.clone(), batch.clone());
            tokio::spawn(async move { admissions.apply(&batch).await })
        })
        .collect();
    let mut committed = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(Applied::Committed { .. }) => committed += 1,
            Ok(Applied::Stale(head)) => assert_eq!(head.applied.get(), 5),
            Err(fault) => assert!(fault.is_retryable(), "{}", fault.chain()),
        }
    }
    assert_eq!(committed, 1);
    assert_eq!(fixture.voucher().await.stock_units, 5);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn the_writer_never_judges_window_or_status() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let mut voucher = unit.lock_voucher(fixture.voucher).await.unwrap().unwrap();
    voucher.close().unwrap();
    unit.save_voucher(&voucher, true).await.unwrap();
    unit.commit().await.unwrap();
    let verdicts = fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
}

#[tokio::test]
async fn an_order_expires_by_the_window_of_its_voucher() {
    let fixture = Fixture::new(10, 1).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let new = seckill_application::ports::NewVoucher {
        terms: seckill_domain::VoucherTerms {
            payment_window: Duration::from_secs(1),
            ..crate::fixture::terms(1)
        },
        total_units: 1,
    };
    let mut voucher = unit.insert_voucher(&new).await.unwrap();
    voucher.publish(unit.now().await.unwrap()).unwrap();
    unit.save_voucher(&voucher, true).await.unwrap();
    unit.commit().await.unwrap();
    let claim = Claim {
        voucher: voucher.id,
        ..fixture.claim(9, 9, 1)
    };
    let batch = batch(fixture.head, vec![Decision::Granted(claim)]);
    fixture.ports.admissions.apply(&batch).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let due = unit.lock_overdue_orders(100).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].id, OrderId::new(9));
    assert_eq!(due[0].status(), OrderStatus::PendingPayment);
}

/// Stands for: the server is in a zone of its own, and windows are hours off.
#[tokio::test]
async fn times_are_the_same_whatever_zone_the_server_is_in() {
    let mut fixture = Fixture::new(10, 1).await;
    if let Some(zone) = crate::server::zone() {
        let mut root = crate::server::root().await;
        let set: String = sqlx::query_scalar("SELECT @@global.time_zone")
            .fetch_one(&mut root)
            .await
            .unwrap();
        assert_eq!(set, zone);
    }
    let machine = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let machine = Timestamp::from_millis(machine.as_millis().try_into().unwrap());
    let near = machine.plus(WINDOW);
    let ledger = now(&fixture).await;
    let apart = ledger.as_millis().abs_diff(machine.as_millis());
    assert!(apart < 60_000, "{apart} ms apart");

    // A window comes back as it was stored, and an order's end is where it should be.
    let stored = fixture.voucher().await.terms.window;
    assert_eq!(stored, crate::fixture::terms(1).window);
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let end = fixture.order(1).await.unwrap().expires_at.unwrap();
    let apart = end.as_millis().abs_diff(near.as_millis());
    assert!(apart < 60_000, "{apart} ms apart");
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    assert_eq!(unit.lock_overdue_orders(100).await.unwrap(), []);
}

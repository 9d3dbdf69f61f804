//! Locks, broken connections, callers that go away.

use std::time::Duration;

use seckill_application::Effect;
use seckill_application::ports::{Applied, Release};
use seckill_domain::{OrderId, OrderStatus, Stage};
use seckill_mysql::{LedgerConfig, MySqlLedger};
use sqlx::Connection;

use crate::fixture::{Fixture, PARTITION, number, run};
use crate::server::root;

#[tokio::test]
async fn a_lock_that_does_not_come_free_is_a_fault_and_never_a_verdict() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, "SELECT * FROM voucher_stock FOR UPDATE").await;
    let batch = fixture.batch(vec![fixture.granted(1, 1, 1)]);
    let fault = fixture.ports.admissions.apply(&batch).await.unwrap_err();
    assert!(fault.is_retryable());
    assert_eq!(fault.effect(), Effect::None);
    assert_eq!(fixture.ledger.meters().counts().lock_wait_timeouts, 1);
    assert!(
        fixture.order(1).await.is_none(),
        "nothing of the batch is left"
    );
    run(&mut meddler, "ROLLBACK").await;
    fixture.apply_batch(&batch).await;
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_deadlock_is_a_fault_and_the_batch_can_be_tried_again() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture
        .apply(vec![fixture.granted(1, 1, 1), fixture.joined(2, 2, 1, 2)])
        .await;
    let batch = fixture.batch(vec![fixture.promoted(2, 2, 1)]);
    let mut deadlocks = 0;
    for _ in 0..10 {
        // Takes the rows in the wrong order: the voucher first, then the order.
        let mut meddler = fixture.database.connect().await;
        run(&mut meddler, "BEGIN").await;
        run(&mut meddler, "SELECT * FROM voucher_stock FOR UPDATE").await;
        let (admissions, copy) = (fixture.ports.admissions.clone(), batch.clone());
        let writer = tokio::spawn(async move { admissions.apply(&copy).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        // A heavy transaction is the one that is spared.
        let locked = sqlx::query("UPDATE orders SET payment_id = 'x' WHERE id = 2")
            .execute(&mut meddler)
            .await;
        run(&mut meddler, "ROLLBACK").await;
        match writer.await.unwrap() {
            Ok(Applied::Committed { .. }) => break,
            Ok(Applied::Stale(head)) => panic!("stale: {head:?}"),
            Err(fault) => {
                assert!(locked.is_ok());
                assert!(fault.is_retryable());
                assert_eq!(fault.effect(), Effect::None);
                deadlocks += 1;
            }
        }
    }
    assert_eq!(fixture.ledger.meters().counts().deadlocks, deadlocks);
    fixture.head = fixture.ports.admissions.head(PARTITION).await.unwrap();
    if fixture.head == batch.head {
        fixture.apply_batch(&batch).await;
    }
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_unit_of_work_that_met_an_error_cannot_be_committed() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, "SELECT * FROM voucher_stock FOR UPDATE").await;
    let mut unit = fixture.ports.ledger.begin().await.unwrap();
    let mut order = unit.lock_order(OrderId::new(1)).await.unwrap().unwrap();
    order.stage = Stage::Cancelled;
    let orders = [order];
    unit.save_orders(OrderStatus::PendingPayment, &orders)
        .await
        .unwrap();
    let fault = unit
        .release(fixture.voucher, &[Release::of(&orders[0])])
        .await
        .unwrap_err();
    assert!(fault.is_retryable());
    assert!(
        unit.commit().await.is_err(),
        "half of the work must not stand"
    );
    run(&mut meddler, "ROLLBACK").await;
    let order = fixture.order(1).await.unwrap();
    assert_eq!(order.stage, Stage::PendingPayment);
}

#[tokio::test]
async fn callers_who_go_away_leave_no_broken_connection_and_no_half_batch() {
    let mut fixture = Fixture::new(100_000, 1).await;
    let mut next = 1;
    for round in 0..150u64 {
        let decisions: Vec<_> = (next..next + 20)
            .map(|n| fixture.granted(n, n, 1))
            .collect();
        let batch = fixture.batch(decisions);
        let admissions = fixture.ports.admissions.clone();
        let patience = Duration::from_micros(40 * round);
        let applied = tokio::time::timeout(patience, admissions.apply(&batch)).await;
        let ledger = fixture.ports.ledger.clone();
        let glance = tokio::time::timeout(patience / 4, async move {
            let mut unit = ledger.begin().await.unwrap();
            unit.lock_order(OrderId::new(1)).await.unwrap();
            unit.now().await.unwrap();
        });
        let _ = glance.await;
        let head = settled_head(&fixture).await;
        if applied.is_ok() {
            assert_eq!(head.applied.get(), next + 19);
        }
        let written = head.applied.get() - (next - 1);
        assert!(written == 0 || written == 20, "a batch is there or not");
        next = head.applied.get() + 1;
        fixture.head = head;
    }
    let verdicts = fixture.apply(vec![fixture.granted(next, next, 1)]).await;
    assert_eq!(verdicts, [seckill_application::ports::Verdict::Confirmed]);
    let orders = fixture.number("SELECT COUNT(*) FROM orders").await;
    assert_eq!(orders, i64::try_from(next).unwrap());
    fixture.assert_sound().await;
    println!("{:?}", fixture.ledger.meters().counts());
}

/// The position once the server has ended what was abandoned.
pub(crate) async fn settled_head(fixture: &Fixture) -> seckill_application::ports::PartitionHead {
    for _ in 0..100 {
        // Waits for the row's lock.
        if let Ok(head) = fixture.ports.admissions.take_over(PARTITION).await {
            return head;
        }
    }
    panic!("the lock of an abandoned batch is never given back");
}

#[tokio::test]
async fn connections_that_the_server_has_ended_are_passed_over() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(fixture.ports.ledger.begin().await.unwrap());
    }
    drop(others);
    fixture.ports.ledger.ping().await.unwrap();
    let mut root = root().await;
    kill_sessions(&mut root, &fixture.database.name).await;
    for _ in 0..6 {
        fixture.ports.ledger.ping().await.unwrap();
        drop(fixture.ports.ledger.begin().await.unwrap());
    }
    let verdicts = fixture.apply(vec![fixture.granted(2, 2, 1)]).await;
    assert_eq!(verdicts.len(), 1);
}

async fn kill_sessions(root: &mut sqlx::MySqlConnection, database: &str) {
    let ids: Vec<u64> = sqlx::query_scalar(
        "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist WHERE db = ?",
    )
    .bind(database)
    .fetch_all(&mut *root)
    .await
    .unwrap();
    for id in ids {
        let kill = sqlx::AssertSqlSafe(format!("KILL {id}"));
        let _ = sqlx::raw_sql(kill).execute(&mut *root).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_connection_that_dies_in_the_middle_is_a_fault_and_nothing_is_written() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, "SELECT * FROM voucher_stock FOR UPDATE").await;
    let batch = fixture.batch(vec![fixture.granted(1, 1, 1)]);
    let (admissions, copy) = (fixture.ports.admissions.clone(), batch.clone());
    let writer = tokio::spawn(async move { admissions.apply(&copy).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let me = number(&mut meddler, "SELECT CAST(CONNECTION_ID() AS SIGNED)").await;
    let mut root = root().await;
    let waiting: Vec<u64> = sqlx::query_scalar(
        "SELECT CAST(id AS UNSIGNED) FROM information_schema.processlist \
         WHERE db = ? AND id <> ? AND info LIKE '%voucher_stock%'",
    )
    .bind(&fixture.database.name)
    .bind(me)
    .fetch_all(&mut root)
    .await
    .unwrap();
    assert_eq!(waiting.len(), 1, "the writer waits for the voucher");
    let kill = sqlx::AssertSqlSafe(format!("KILL {}", waiting[0]));
    sqlx::raw_sql(kill).execute(&mut root).await.unwrap();
    let fault = writer.await.unwrap().unwrap_err();
    assert!(fault.is_retryable(), "{}", fault.chain());
    assert_eq!(fault.effect(), Effect::None);
    meddler.close().await.unwrap();
    assert!(fixture.order(1).await.is_none());
    fixture.apply_batch(&batch).await;
    fixture.assert_sound().await;
}

/// Everybody wants one row; who only reads does not wait for that.
#[tokio::test]
async fn units_of_work_that_queue_leave_connections_to_reads() {
    let fixture = Fixture::new(10, 1).await;
    let config = LedgerConfig::new(&fixture.database.url);
    let hurried = MySqlLedger::connect(config).await.unwrap();
    let ledger = hurried.ports().ledger;
    let voucher = fixture.voucher;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, "SELECT * FROM vouchers FOR UPDATE").await;
    let units: Vec<_> = (0..40)
        .map(|_| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut unit = ledger.begin().await?;
                unit.lock_voucher(voucher)
                    .await
                    .map(|found| found.is_some())
            })
        })
        .collect();
    let (mut crowded, mut served) = (0, 0);
    let mut queue = std::pin::pin!(async {
        let mut told = Vec::new();
        for unit in units {
            told.push(unit.await);
        }
        told
    });
    tokio::select! {
        biased;
        _ = &mut queue => panic!("the row is locked"),
        () = tokio::time::sleep(Duration::from_millis(500)) => {}
    }
    for _ in 0..30 {
        let found = ledger.voucher(voucher).await;
        assert!(found.expect("a connection is free").is_some());
    }
    // Who waits for a connection gives up before those who wait for the row.
    tokio::time::sleep(Duration::from_secs(1)).await;
    run(&mut meddler, "ROLLBACK").await;
    for told in queue.as_mut().await {
        match told.unwrap() {
            Ok(found) => served += usize::from(found),
            Err(fault) => {
                assert!(fault.is_retryable());
                assert_eq!(fault.effect(), Effect::None);
                crowded += 1;
            }
        }
    }
    assert!(
        served >= 10 && crowded >= 10,
        "{served} and {crowded} of 40"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_in_time() {
    let started = std::time::Instant::now();
    let config = LedgerConfig::new("mysql://nobody:secret@127.0.0.1:1/none");
    assert!(!format!("{config:?}").contains("secret"));
    let Err(fault) = MySqlLedger::connect(config).await else {
        panic!("nobody is there");
    };
    assert!(fault.is_retryable());
    assert_eq!(fault.effect(), Effect::None);
    assert!(!fault.chain().contains("secret"));
    assert!(started.elapsed() < Duration::from_secs(3));
    let Err(fault) = MySqlLedger::connect(LedgerConfig::new("mysql://:secret@[")).await else {
        panic!("that is no address");
    };
    assert!(!fault.is_retryable());
    assert!(!fault.chain().contains("secret"));
}

/// Expiry and the writer work on the same voucher at the same time; the schema keeps the counters
/// apart from what foreign keys lock, so they queue and do not deadlock.
#[tokio::test]
async fn the_writer_and_the_sweep_get_along() {
    let mut fixture = Fixture::new(100_000, 1).await;
    let voucher = fixture.voucher;
    let ledger = fixture.ports.ledger.clone();
    let sweeper = tokio::spawn(async move {
        let mut swept = 0;
        for _ in 0..60 {
            let mut unit = ledger.begin().await.unwrap();
            let mut due = unit.lock_overdue_orders(40).await.unwrap();
            for order in &mut due {
                order.stage = Stage::Expired;
            }
            if due.is_empty() {
                drop(unit);
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            unit.save_orders(OrderStatus::PendingPayment, &due)
                .await
                .unwrap();
            let releases: Vec<Release> = due.iter().map(Release::of).collect();
            unit.release(voucher, &releases).await.unwrap();
            unit.commit().await.unwrap();
            swept += due.len();
        }
        swept
    });
    let mut meddler = fixture.database.connect().await;
    for round in 0..40u64 {
        let decisions = (round * 50 + 1..=round * 50 + 50)
            .map(|n| fixture.granted(n, n, 1))
            .collect();
        fixture.apply(decisions).await;
        let overdue = format!(
            "UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE id > {} AND id <= {}",
            round * 50,
            round * 50 + 30
        );
        run(&mut meddler, &overdue).await;
    }
    let swept = sweeper.await.unwrap();
    assert!(swept > 100, "{swept}");
    let counts = fixture.ledger.meters().counts();
    assert_eq!((counts.deadlocks, counts.lock_wait_timeouts), (0, 0));
    fixture.assert_sound().await;
}

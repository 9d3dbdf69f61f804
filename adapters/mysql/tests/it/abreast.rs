//! Large batches of grants, whose halves are written at the same time.

use std::time::Duration;

use seckill_application::ports::{
    AdmissionBatch, Applied, BatchItem, EntryId, PartitionHead, Verdict,
};
use seckill_application::{Effect, Fault};
use seckill_domain::{Claim, Decision, RejectReason};
use seckill_mysql::{LedgerConfig, MySqlLedger, StatementEdit};
use sqlx::MySqlConnection;

use crate::contention::settled_head;
use crate::fixture::{Fixture, PARTITION, entry, number, publish, run};
use crate::swallow::Swallowing;

/// Items of a batch that is written in halves, and the half of them.
const LARGE: u64 = 600;
const HALF: u64 = LARGE / 2;

/// An order for each of so many buyers, of the same number.
fn grants(fixture: &Fixture, orders: std::ops::RangeInclusive<u64>) -> Vec<Decision> {
    orders.map(|n| fixture.granted(n, n, 1)).collect()
}

fn abreast(fixture: &Fixture) -> u64 {
    fixture.ledger.meters().counts().batches_abreast
}

async fn orders(fixture: &Fixture) -> i64 {
    fixture.number("SELECT COUNT(*) FROM orders").await
}

#[tokio::test]
async fn a_large_batch_of_grants_is_written_in_halves() {
    let fixture = Fixture::new(1_000, 1).await;
    let batch = fixture.batch(grants(&fixture, 1..=LARGE));
    let applied = fixture.ports.admissions.apply(&batch).await.unwrap();
    let Applied::Committed {
        verdicts,
        head,
        due,
    } = applied
    else {
        panic!("{applied:?}");
    };
    assert_eq!(abreast(&fixture), 1);
    assert_eq!(verdicts, [Verdict::Confirmed; 600]);
    assert_eq!(
        head,
        fixture.ports.admissions.head(PARTITION).await.unwrap()
    );
    assert_eq!((head.applied.get(), head.entry), (LARGE, batch.up_to));
    let mut ends: Vec<u64> = due.iter().map(|(order, _)| order.get()).collect();
    ends.sort_unstable();
    assert_eq!(ends, (1..=LARGE).collect::<Vec<_>>());
    assert_eq!(fixture.voucher().await.stock_units, 400);
    let told = "SELECT COUNT(DISTINCT order_id) FROM event_outbox e JOIN event_batches b \
         ON e.id BETWEEN b.first_id AND b.last_id AND b.written_by = e.written_by";
    assert_eq!(fixture.number(told).await, 600, "an event of each");
    fixture.assert_sound().await;
}

/// Negative control: the same batch with one that is not a grant, or with a buyer of both halves.
#[tokio::test]
async fn other_batches_are_written_in_one_piece() {
    let mut fixture = Fixture::new(2_000, 2).await;
    let small = grants(&fixture, 1..=300);
    let mut with_a_waiter = grants(&fixture, 1_001..=1_000 + LARGE);
    with_a_waiter.push(fixture.joined(1_999, 1_999, 1, 1));
    let mut with_one_twice = grants(&fixture, 2_001..=2_000 + LARGE);
    with_one_twice.push(fixture.granted(2_999, 2_001, 1));
    for decisions in [small, with_a_waiter, with_one_twice] {
        let verdicts = fixture.apply(decisions).await;
        assert!(verdicts.iter().all(|it| *it == Verdict::Confirmed));
    }
    assert_eq!(abreast(&fixture), 0);
    assert_eq!(fixture.held_by(2_001).await, 2);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_half_that_is_refused_is_looked_at_closely() {
    let mut fixture = Fixture::new(900, 1).await;
    let (known, late) = (7, 593);
    let verdicts = fixture.apply(vec![fixture.granted(known, known, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    // A repeat in the first half.
    let verdicts = fixture.apply(grants(&fixture, 1..=LARGE)).await;
    assert_eq!(verdicts[6], Verdict::AlreadyThere);
    let confirmed = verdicts.iter().filter(|it| **it == Verdict::Confirmed);
    assert_eq!(confirmed.count() as u64, LARGE - 1);
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 1);
    // In the second half one too many for the buyer, and at last one too many for the stock.
    let mut more = grants(&fixture, 1_001..=1_000 + LARGE);
    let again = Claim {
        order: seckill_domain::OrderId::new(5_000),
        ..fixture.claim(0, late, 1)
    };
    more[598] = Decision::Granted(again);
    let verdicts = fixture.apply(more).await;
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 2);
    let (first, second) = verdicts.split_at(300);
    assert!(first.iter().all(|it| *it == Verdict::Confirmed));
    let rejected = Verdict::Rejected(RejectReason::NoStock);
    assert!(second[..298].iter().all(|it| *it == rejected));
    assert!(matches!(second[298], Verdict::Rejected(_)));
    assert_eq!(fixture.voucher().await.stock_units, 0);
    assert_eq!(abreast(&fixture), 0);
    fixture.assert_sound().await;
}

/// The payment windows of two vouchers, in more than one statement of either half.
#[tokio::test]
async fn every_order_is_due_when_its_row_says() {
    let fixture = Fixture::new(1_000, 1).await;
    let other = publish(&fixture.ports, 1_000, 1).await.id;
    let mut meddler = fixture.database.connect().await;
    let shorter = format!("UPDATE vouchers SET payment_window_s = 60 WHERE id = {other}");
    run(&mut meddler, &shorter).await;
    let long_key = || Some("k".repeat(64).parse().unwrap());
    let grants = (1..=LARGE).map(|n| {
        let claim = fixture.claim(n, n, 1);
        Decision::Granted(Claim {
            voucher: if n % 3 == 0 { other } else { claim.voucher },
            key: long_key(),
            ..claim
        })
    });
    let batch = fixture.batch(grants.collect());
    let applied = fixture.ports.admissions.apply(&batch).await.unwrap();
    let Applied::Committed { due, .. } = applied else {
        panic!("{applied:?}");
    };
    assert_eq!(abreast(&fixture), 1);
    assert_eq!(due.len() as u64, LARGE);
    for (order, end) in due {
        let written = fixture.order(order.get()).await.unwrap();
        assert_eq!(written.expires_at, Some(end), "{order}");
    }
}

/// A writer with a higher fence comes in between: it finds the first half, whose last entry is whole,
/// and the second leaves nothing behind.
#[tokio::test]
async fn whoever_is_fenced_between_the_halves_writes_the_first_alone() {
    let fixture = Fixture::new(1_000, 1).await;
    let batch = in_entries_of_128(&fixture);
    let (applied, taken) = fenced_between(&fixture, &fixture.ledger, &batch).await;
    assert_eq!((taken.applied.get(), taken.entry), (256, of_128(256)));
    assert_eq!(applied, Applied::Stale(taken));
    assert_eq!(orders(&fixture).await, 256);
    let rest = AdmissionBatch {
        head: taken,
        items: batch.items[256..].to_vec(),
        ..batch
    };
    let applied = fixture.ports.admissions.apply(&rest).await.unwrap();
    assert!(matches!(applied, Applied::Committed { .. }));
    assert_eq!(orders(&fixture).await, 600);
    fixture.assert_sound().await;
}

/// Negative control: a position that moves for anybody.
#[tokio::test]
async fn without_the_fence_the_second_half_is_written_as_well() {
    let fixture = Fixture::new(1_000, 1).await;
    let config = LedgerConfig {
        statement_edits: vec![StatementEdit {
            find: "AND fence = ? AND epoch = ?",
            replace: "AND (fence = ? OR TRUE) AND epoch = ?",
        }],
        ..LedgerConfig::new(fixture.database.url.clone())
    };
    let unfenced = MySqlLedger::connect(config).await.unwrap();
    let batch = in_entries_of_128(&fixture);
    let (applied, taken) = fenced_between(&fixture, &unfenced, &batch).await;
    assert_eq!(taken.applied.get(), 256);
    assert!(matches!(applied, Applied::Committed { .. }), "{applied:?}");
    assert_eq!(orders(&fixture).await, 600);
}

fn in_entries_of_128(fixture: &Fixture) -> AdmissionBatch {
    let mut batch = fixture.batch(grants(fixture, 1..=LARGE));
    for item in &mut batch.items {
        let BatchItem::Decision {
            entry, sequence, ..
        } = item
        else {
            panic!("a grant");
        };
        *entry = of_128(sequence.get());
    }
    batch.up_to = of_128(LARGE);
    batch
}

/// The entry of a decision, if each has 128.
fn of_128(sequence: u64) -> EntryId {
    EntryId {
        millis: 1_790_000_000_000 + sequence.div_ceil(128),
        counter: 0,
    }
}

/// Has this ledger apply a batch, and another writer draw a fence between the halves.
async fn fenced_between(
    fixture: &Fixture,
    ledger: &MySqlLedger,
    batch: &AdmissionBatch,
) -> (Applied, PartitionHead) {
    let mut meddler = holding(fixture, "SELECT * FROM voucher_stock FOR UPDATE").await;
    let writer = applying(ledger, batch);
    // The first half has the position's lock.
    lock_waits(fixture, 1).await;
    let admissions = fixture.ports.admissions.clone();
    let other = tokio::spawn(async move { admissions.take_over(PARTITION).await });
    lock_waits(fixture, 2).await;
    run(&mut meddler, "ROLLBACK").await;
    let taken = other.await.unwrap().unwrap();
    (writer.await.unwrap().unwrap(), taken)
}

/// A batch that is being applied.
fn applying(
    ledger: &MySqlLedger,
    batch: &AdmissionBatch,
) -> tokio::task::JoinHandle<Result<Applied, Fault>> {
    let (admissions, batch) = (ledger.ports().admissions, batch.clone());
    tokio::spawn(async move { admissions.apply(&batch).await })
}

/// Somebody who has locked rows until he rolls back.
async fn holding(fixture: &Fixture, rows: &str) -> MySqlConnection {
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, rows).await;
    meddler
}

/// Locks what a buyer holds of the voucher, and nothing beside it.
fn lock_of(fixture: &Fixture, buyer: u64) -> String {
    let voucher = fixture.voucher;
    format!("SELECT * FROM holdings WHERE voucher_id = {voucher} AND user_id = {buyer} FOR UPDATE")
}

/// Waits until so many transactions wait for a lock. The server looks again for whoever has not asked
/// for 100 ms.
async fn lock_waits(fixture: &Fixture, count: i64) {
    let waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX t \
         JOIN information_schema.PROCESSLIST p ON p.id = t.trx_mysql_thread_id \
         WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()";
    for _ in 0..60 {
        if fixture.number(waits).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    panic!("never {count} that wait: {}", fixture.number(waits).await);
}

/// Somebody has a row that the first half needs, and waits for one that the second has. The database
/// sees no deadlock: the second waits for the first outside of it.
#[tokio::test]
async fn the_second_half_lets_go_of_what_the_first_waits_behind() {
    let mut fixture = Fixture::new(2_000, 2).await;
    let (early, late) = (1, LARGE);
    let before = vec![
        fixture.granted(9_001, early, 1),
        fixture.granted(9_002, late, 1),
    ];
    fixture.apply(before).await;
    let batch = fixture.batch(grants(&fixture, 1..=LARGE));
    let mut meddler = holding(&fixture, &lock_of(&fixture, early)).await;
    let writer = applying(&fixture.ledger, &batch);
    let mut onlooker = fixture.database.connect().await;
    run(
        &mut onlooker,
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    )
    .await;
    let units = format!("SELECT CAST(units AS SIGNED) FROM holdings WHERE user_id = {late}");
    for _ in 0..5_000 {
        if number(&mut onlooker, &units).await == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    run(&mut meddler, &lock_of(&fixture, late)).await;
    run(&mut meddler, "ROLLBACK").await;
    let applied = writer.await.unwrap().unwrap();
    let Applied::Committed { verdicts, .. } = applied else {
        panic!("{applied:?}");
    };
    assert!(verdicts.iter().all(|it| *it == Verdict::Confirmed));
    let counts = fixture.ledger.meters().counts();
    assert_eq!((counts.lock_wait_timeouts, counts.deadlocks), (0, 0));
    assert_eq!(counts.batches_abreast, 0, "one after the other");
    fixture.assert_sound().await;
}

/// A lock that the second half waits for in vain: what the first has committed is told all the same.
#[tokio::test]
async fn a_half_that_meets_a_lock_is_written_after_the_other() {
    let mut fixture = Fixture::new(2_000, 2).await;
    fixture.apply(vec![fixture.granted(9_001, LARGE, 1)]).await;
    let batch = fixture.batch(grants(&fixture, 1..=LARGE));
    let mut meddler = holding(&fixture, &lock_of(&fixture, LARGE)).await;
    let writer = applying(&fixture.ledger, &batch);
    while fixture.ledger.meters().counts().lock_wait_timeouts == 0 {
        assert!(!writer.is_finished(), "{:?}", writer.await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(orders(&fixture).await, 301, "the first half is there");
    run(&mut meddler, "ROLLBACK").await;
    let applied = writer.await.unwrap().unwrap();
    let Applied::Committed { verdicts, due, .. } = applied else {
        panic!("{applied:?}");
    };
    assert!(verdicts.iter().all(|it| *it == Verdict::Confirmed));
    assert_eq!((verdicts.len() as u64, due.len() as u64), (LARGE, LARGE));
    assert_eq!(abreast(&fixture), 0);
    fixture.assert_sound().await;
}

/// There are three connections to be had: one to see whether the server is there, one for reads, one
/// for writing.
#[tokio::test]
async fn a_half_that_has_no_connection_is_written_after_the_other() {
    let mut fixture = Fixture::new(1_000, 1).await;
    let way = Swallowing::of(&fixture.database, 3, Duration::from_secs(1)).await;
    let batch = fixture.batch(grants(&fixture, 1..=LARGE));
    let applied = way.ledger.ports().admissions.apply(&batch).await.unwrap();
    let Applied::Committed { due, head, .. } = applied else {
        panic!("{applied:?}");
    };
    assert_eq!((due.len() as u64, head.applied.get()), (LARGE, LARGE));
    assert_eq!(way.ledger.meters().counts().batches_abreast, 0);
    fixture.head = head;
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_first_half_whose_commit_is_not_answered_is_there_and_the_second_is_not() {
    let mut fixture = Fixture::new(1_000, 1).await;
    let way = Swallowing::connect(&fixture.database).await;
    let batch = fixture.batch(grants(&fixture, 1..=LARGE));
    way.arm();
    let fault = way.ledger.ports().admissions.apply(&batch).await;
    assert_eq!(fault.unwrap_err().effect(), Effect::Unknown);
    fixture.head = fixture.ports.admissions.head(PARTITION).await.unwrap();
    assert_eq!(fixture.head.applied.get(), HALF);
    assert_eq!(fixture.head.entry, entry(fixture.head.applied));
    let verdicts = fixture.apply(grants(&fixture, HALF + 1..=LARGE)).await;
    assert!(verdicts.iter().all(|it| *it == Verdict::Confirmed));
    assert_eq!(orders(&fixture).await, 600);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn callers_who_go_away_leave_whole_halves() {
    let mut fixture = Fixture::new(100_000, 1).await;
    let (mut next, mut halves) = (1, 0);
    for round in 0..80u64 {
        let batch = fixture.batch(grants(&fixture, next..=next + LARGE - 1));
        let admissions = fixture.ports.admissions.clone();
        let patience = Duration::from_micros(600 * round);
        let _ = tokio::time::timeout(patience, admissions.apply(&batch)).await;
        fixture.head = settled_head(&fixture).await;
        let written = fixture.head.applied.get() + 1 - next;
        assert!([0, HALF, LARGE].contains(&written), "{written}");
        halves += u64::from(written == HALF);
        assert_eq!(
            fixture.head.entry == entry(fixture.head.applied),
            fixture.head.applied.get() > 0
        );
        next += written;
    }
    let verdicts = fixture.apply(grants(&fixture, next..=next)).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    assert_eq!(orders(&fixture).await, i64::try_from(next).unwrap());
    fixture.assert_sound().await;
    println!(
        "{halves} times the first half alone: {:?}",
        fixture.ledger.meters().counts()
    );
}

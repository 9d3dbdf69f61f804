//! Large batches of grants, whose halves are written at the same time.

use std::time::Duration;

use seckill_application::ports::{AdmissionBatch, Applied, BatchItem, EntryId, Verdict};
use seckill_domain::{Claim, Decision, RejectReason};

use crate::fixture::{Fixture, PARTITION, entry, number, run};

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
    assert_eq!(verdicts, [Verdict::Confirmed; LARGE as usize]);
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
    let mut fixture = Fixture::new(LARGE as u32 + HALF as u32, 1).await;
    let (known, late) = (7, LARGE - 7);
    let verdicts = fixture.apply(vec![fixture.granted(known, known, 1)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    // A repeat in the first half.
    let verdicts = fixture.apply(grants(&fixture, 1..=LARGE)).await;
    assert_eq!(verdicts[known as usize - 1], Verdict::AlreadyThere);
    let confirmed = verdicts.iter().filter(|it| **it == Verdict::Confirmed);
    assert_eq!(confirmed.count() as u64, LARGE - 1);
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 1);
    // In the second half one too many for the buyer, and at last one too many for the stock.
    let mut more = grants(&fixture, 1_001..=1_000 + LARGE);
    let again = Claim {
        order: seckill_domain::OrderId::new(5_000),
        ..fixture.claim(0, late, 1)
    };
    more[LARGE as usize - 2] = Decision::Granted(again);
    let verdicts = fixture.apply(more).await;
    assert_eq!(fixture.ledger.meters().counts().batches_reexamined, 2);
    let of = |at: u64| verdicts[at as usize];
    assert!((0..HALF).all(|at| of(at) == Verdict::Confirmed));
    let rejected = Verdict::Rejected(RejectReason::NoStock);
    assert!((HALF..LARGE - 2).all(|at| of(at) == rejected));
    assert!(matches!(of(LARGE - 2), Verdict::Rejected(_)));
    assert_eq!(fixture.voucher().await.stock_units, 0);
    assert_eq!(abreast(&fixture), 0);
    fixture.assert_sound().await;
}

/// A writer with a higher fence comes in between: it finds the first half, whose last entry is whole,
/// and the second leaves nothing behind.
#[tokio::test]
async fn whoever_is_fenced_between_the_halves_writes_the_first_alone() {
    let fixture = Fixture::new(1_000, 1).await;
    let mut batch = fixture.batch(grants(&fixture, 1..=LARGE));
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
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, "SELECT * FROM voucher_stock FOR UPDATE").await;
    let (admissions, copy) = (fixture.ports.admissions.clone(), batch.clone());
    let writer = tokio::spawn(async move { admissions.apply(&copy).await });
    // The first half has the position's lock.
    lock_waits(&fixture, 1).await;
    let admissions = fixture.ports.admissions.clone();
    let other = tokio::spawn(async move { admissions.take_over(PARTITION).await });
    lock_waits(&fixture, 2).await;
    run(&mut meddler, "ROLLBACK").await;
    let taken = other.await.unwrap().unwrap();
    assert_eq!((taken.applied.get(), taken.entry), (256, of_128(256)));
    let applied = writer.await.unwrap().unwrap();
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

/// Waits until so many transactions wait for a lock. The server looks again for whoever has not asked
/// for 100 ms.
async fn lock_waits(fixture: &Fixture, count: i64) {
    let waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX t \
         JOIN information_schema.PROCESSLIST p ON p.id = t.trx_mysql_thread_id \
         WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()";
    for _ in 0..15 {
        if fixture.number(waits).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    panic!("never {count} that wait: {}", fixture.number(waits).await);
}

/// The entry of a decision, if each has 128.
fn of_128(sequence: u64) -> EntryId {
    EntryId {
        millis: 1_790_000_000_000 + sequence.div_ceil(128),
        counter: 0,
    }
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
    let mut meddler = fixture.database.connect().await;
    let of = |buyer: u64| format!("voucher_id = {} AND user_id = {buyer}", fixture.voucher);
    let lock = |buyer: u64| format!("SELECT * FROM holdings WHERE {} FOR UPDATE", of(buyer));
    run(&mut meddler, "BEGIN").await;
    run(&mut meddler, &lock(early)).await;
    let (admissions, copy) = (fixture.ports.admissions.clone(), batch.clone());
    let writer = tokio::spawn(async move { admissions.apply(&copy).await });
    let mut onlooker = fixture.database.connect().await;
    run(
        &mut onlooker,
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    )
    .await;
    let units = format!(
        "SELECT CAST(units AS SIGNED) FROM holdings WHERE {}",
        of(late)
    );
    for _ in 0..5_000 {
        if number(&mut onlooker, &units).await == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    run(&mut meddler, &lock(late)).await;
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

#[tokio::test]
async fn callers_who_go_away_leave_whole_halves() {
    let mut fixture = Fixture::new(100_000, 1).await;
    let (mut next, mut halves) = (1, 0);
    for round in 0..80u64 {
        let batch = fixture.batch(grants(&fixture, next..=next + LARGE - 1));
        let admissions = fixture.ports.admissions.clone();
        let patience = Duration::from_micros(600 * round);
        let _ = tokio::time::timeout(patience, admissions.apply(&batch)).await;
        // Waits for the lock of whatever was abandoned.
        let mut head = fixture.ports.admissions.take_over(PARTITION).await;
        while head.is_err() {
            head = fixture.ports.admissions.take_over(PARTITION).await;
        }
        fixture.head = head.unwrap();
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

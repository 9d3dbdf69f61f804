//! The outbox of events, among transactions that are under way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{Event, EventId, EventKind, NewEvent, OrderId};

use crate::fixture::{Fixture, number, run};

const HOLD: Duration = Duration::from_mins(1);

fn relay(name: &str) -> LeaseOwner {
    LeaseOwner(name.to_owned())
}

fn about(fixture: &Fixture) -> NewEvent {
    NewEvent::of_voucher(fixture.voucher, EventKind::VoucherPaused)
}

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// A relay must not stand still behind a slow transaction, nor see what it may take back.
#[tokio::test]
async fn events_of_an_open_transaction_are_passed_over_and_come_later() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut slow = fixture.ports.ledger.begin().await.unwrap();
    slow.append_events(&[about(&fixture); 2]).await.unwrap();
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let outbox = &fixture.ports.events;
    let owner = relay("a");
    let claim = outbox.claim(&owner, 500, HOLD);
    let early = tokio::time::timeout(Duration::from_secs(2), claim).await;
    let early = early.expect("nobody waits").unwrap();
    assert_eq!(early.len(), 1);
    outbox.published(&ids(&early)).await.unwrap();
    slow.commit().await.unwrap();
    let late = outbox.claim(&relay("a"), 500, HOLD).await.unwrap();
    assert_eq!(late.len(), 2);
    assert!(late[1].id < early[0].id, "lower numbers that came later");
}

/// What one relay is claiming at this moment is not another's, and nobody waits for it.
#[tokio::test]
async fn rows_that_another_relay_has_locked_are_passed_over() {
    let mut fixture = Fixture::new(10, 1).await;
    for n in [1, 3] {
        let grants = vec![fixture.granted(n, n, 1), fixture.granted(n + 1, n + 1, 1)];
        fixture.apply(grants).await;
    }
    let mut other = fixture.database.connect().await;
    run(&mut other, "BEGIN").await;
    run(
        &mut other,
        "SELECT first_id FROM event_batches ORDER BY first_id LIMIT 1 FOR UPDATE",
    )
    .await;
    let outbox = &fixture.ports.events;
    let owner = relay("a");
    let claim = outbox.claim(&owner, 500, HOLD);
    let claimed = tokio::time::timeout(Duration::from_secs(2), claim).await;
    assert_eq!(claimed.expect("nobody waits").unwrap().len(), 2);
    run(&mut other, "ROLLBACK").await;
    let rest = outbox.claim(&relay("b"), 500, HOLD).await.unwrap();
    assert_eq!(rest.len(), 2);
}

/// Where numbers are drawn by several statements at once, the events of one lie among another's.
#[tokio::test]
async fn batches_that_lie_in_each_other_are_told_apart() {
    let fixture = Fixture::new(10, 1).await;
    let mut meddler = fixture.database.connect().await;
    for (writer, numbers) in [(7, [10, 12, 14]), (8, [11, 13, 15])] {
        for id in numbers {
            let event = format!(
                "INSERT INTO event_outbox (id, kind, voucher_id, published, created_at, written_by) \
                   VALUES ({id}, 'voucher_paused', 1, 1, UTC_TIMESTAMP(3), {writer})"
            );
            run(&mut meddler, &event).await;
        }
        let [first, _, last] = numbers;
        let batch = format!(
            "INSERT INTO event_batches (first_id, last_id, written_by, events) \
               VALUES ({first}, {last}, {writer}, 3)"
        );
        run(&mut meddler, &batch).await;
    }
    let outbox = &fixture.ports.events;
    let numbers = async |name: &str, max| {
        let events = outbox.claim(&relay(name), max, HOLD).await.unwrap();
        ids(&events)
            .into_iter()
            .map(EventId::get)
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers("a", 2).await, [10, 12]);
    assert_eq!(numbers("b", 3).await, [11, 13, 15]);
    assert_eq!(numbers("c", 3).await, [14]);
    outbox
        .published(&[10, 11, 12].map(EventId::new))
        .await
        .unwrap();
    assert_eq!(outbox.unpublished().await.unwrap(), 3);
    assert_eq!(
        numbers("a", 500).await,
        [0; 0],
        "the others are claimed still"
    );
    assert_eq!(numbers("b", 500).await, [13, 15]);
    assert_eq!(numbers("c", 500).await, [14]);
}

/// Two versions of the service may write side by side.
#[tokio::test]
async fn what_the_version_before_has_written_is_told_too() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut before = fixture.database.connect().await;
    for kind in ["voucher_paused", "voucher_resumed"] {
        let event = format!(
            "INSERT INTO event_outbox (kind, voucher_id, created_at) \
               VALUES ('{kind}', 1, UTC_TIMESTAMP(3))"
        );
        run(&mut before, &event).await;
    }
    let outbox = &fixture.ports.events;
    assert_eq!(outbox.unpublished().await.unwrap(), 3);
    let first = outbox.claim(&relay("a"), 2, HOLD).await.unwrap();
    assert_eq!(first.len(), 2);
    let second = outbox.claim(&relay("b"), 2, HOLD).await.unwrap();
    assert_eq!(second.len(), 1);
    outbox.published(&ids(&first)).await.unwrap();
    outbox.published(&ids(&second)).await.unwrap();
    assert_eq!(outbox.unpublished().await.unwrap(), 0);
    let kept = "SELECT COUNT(*) FROM event_outbox WHERE published = 1";
    assert_eq!(fixture.number(kept).await, 3);
}

/// What nobody was told of is kept, however old.
#[tokio::test]
async fn what_waits_to_be_told_is_not_removed() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let outbox = &fixture.ports.events;
    assert_eq!(outbox.prune(Duration::ZERO).await.unwrap(), 0);
    let events = outbox.claim(&relay("a"), 500, HOLD).await.unwrap();
    outbox.published(&ids(&events)).await.unwrap();
    assert_eq!(outbox.prune(Duration::ZERO).await.unwrap(), 1);
}

/// A batch whose events are gone is in nobody's way.
#[tokio::test]
async fn a_batch_without_events_goes() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "DELETE FROM event_outbox").await;
    let outbox = &fixture.ports.events;
    assert_eq!(outbox.claim(&relay("a"), 500, HOLD).await.unwrap(), []);
    assert_eq!(outbox.unpublished().await.unwrap(), 0);
}

#[tokio::test]
async fn many_relays_and_a_writer_at_once_lose_nothing_and_keep_each_orders_order() {
    const ORDERS: u64 = 1_200;
    let mut fixture = Fixture::new(2_000, 1).await;
    let done = Arc::new(AtomicBool::new(false));
    let relays: Vec<_> = (0..4)
        .map(|number| {
            let outbox = fixture.ports.events.clone();
            let done = done.clone();
            tokio::spawn(async move { publish_all(&*outbox, number, &done).await })
        })
        .collect();
    for first in (1..=ORDERS).step_by(60) {
        let mut decisions = Vec::new();
        for n in first..first + 60 {
            decisions.push(fixture.joined(n, n, 1, n));
            decisions.push(fixture.promoted(n, n, 1));
        }
        fixture.apply(decisions).await;
    }
    done.store(true, Relaxed);
    let mut seen: HashMap<OrderId, HashSet<EventId>> = HashMap::new();
    let mut total = 0;
    for relay in relays {
        for event in relay.await.unwrap() {
            let (order, _) = event.what.order.unwrap();
            assert!(
                seen.entry(order).or_default().insert(event.id),
                "an event for two relays"
            );
            total += 1;
        }
    }
    assert_eq!(total, 2 * ORDERS, "every step of every order");
    assert_eq!(fixture.ports.events.unpublished().await.unwrap(), 0);
    let twisted = "SELECT COUNT(*) FROM event_outbox w JOIN event_outbox p USING (order_id) \
         WHERE w.kind = 'waiting' AND p.kind = 'promoted' AND w.id > p.id";
    assert_eq!(fixture.number(twisted).await, 0);
}

/// Claims and publishes until the writer is done and nothing is left. What another relay is claiming
/// at this moment is passed over, so that an empty answer does not say that.
async fn publish_all(outbox: &dyn EventOutbox, number: usize, done: &AtomicBool) -> Vec<Event> {
    let owner = relay(&format!("relay-{number}"));
    let mut all = Vec::new();
    loop {
        let last = done.load(Relaxed);
        let events = match outbox.claim(&owner, 50, HOLD).await {
            Ok(events) => events,
            Err(fault) if fault.is_retryable() => continue,
            Err(fault) => panic!("{}", fault.chain()),
        };
        if events.is_empty() && last && outbox.unpublished().await.unwrap() == 0 {
            return all;
        }
        outbox.published(&ids(&events)).await.unwrap();
        all.extend(events);
    }
}

/// Telling is not paid for event by event: what was told is not written again, and a claim reads
/// what it claims alone.
#[tokio::test]
async fn a_thousand_events_are_claimed_and_told_by_the_batch() {
    let mut fixture = Fixture::new(2_000, 1).await;
    let grants = (1..=1_000).map(|n| fixture.granted(n, n, 1)).collect();
    fixture.apply(grants).await;
    let outbox = &fixture.ports.events;
    let batches = "SELECT COUNT(*) FROM event_batches";
    assert!(fixture.number(batches).await < 10);
    while let events @ [_, ..] = &*outbox.claim(&relay("a"), 500, HOLD).await.unwrap() {
        outbox.published(&ids(events)).await.unwrap();
    }
    assert_eq!(fixture.number(batches).await, 0);
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "FLUSH STATUS").await;
    for sql in [
        "SELECT e.id FROM event_outbox e FORCE INDEX (event_outbox_by_state) \
           WHERE e.published = 0 ORDER BY e.id LIMIT 500 FOR UPDATE SKIP LOCKED",
        "SELECT first_id FROM event_batches \
           WHERE claimed_until IS NULL OR claimed_until <= UTC_TIMESTAMP(3) OR claimed_by = 'a' \
           ORDER BY first_id LIMIT 500 FOR UPDATE SKIP LOCKED",
    ] {
        run(&mut meddler, sql).await;
    }
    let read = "SELECT CAST(SUM(variable_value) AS SIGNED) FROM ";
    let of = "WHERE variable_name IN ('Handler_read_next', 'Handler_read_rnd_next', \
              'Handler_read_key', 'Sort_rows')";
    let version = fixture.ledger.describe().await.unwrap().version;
    let table = if version.contains("MariaDB") {
        "information_schema.session_status"
    } else {
        "performance_schema.session_status"
    };
    let rows = number(&mut meddler, &format!("{read} {table} {of}")).await;
    assert!(rows < 100, "{rows} rows were read for nothing");
}

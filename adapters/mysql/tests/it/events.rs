//! The outbox of events, among transactions that are under way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seckill_application::ports::{EventOutbox, LeaseOwner};
use seckill_domain::{Event, EventId, OrderId};

use crate::fixture::{Fixture, number, run};

const HOLD: Duration = Duration::from_mins(1);

fn relay(name: &str) -> LeaseOwner {
    LeaseOwner(name.to_owned())
}

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// A relay must not stand still behind a slow transaction, nor see what it may take back.
#[tokio::test]
async fn events_of_an_open_transaction_are_passed_over_and_come_later() {
    let mut fixture = Fixture::new(10, 1).await;
    let mut slow = fixture.database.connect().await;
    run(&mut slow, "BEGIN").await;
    run(
        &mut slow,
        "INSERT INTO event_outbox (kind, voucher_id, created_at) \
           VALUES ('voucher_paused', 1, UTC_TIMESTAMP(3))",
    )
    .await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let outbox = &fixture.ports.events;
    let owner = relay("a");
    let claim = outbox.claim(&owner, 500, HOLD);
    let early = tokio::time::timeout(Duration::from_secs(2), claim).await;
    let early = early.expect("nobody waits").unwrap();
    assert_eq!(early.len(), 1);
    outbox.published(&ids(&early)).await.unwrap();
    run(&mut slow, "COMMIT").await;
    let late = outbox.claim(&relay("a"), 500, HOLD).await.unwrap();
    assert_eq!(late.len(), 1);
    assert!(late[0].id < early[0].id, "a lower number that came later");
}

/// What one relay is claiming at this moment is not another's, and nobody waits for it.
#[tokio::test]
async fn rows_that_another_relay_has_locked_are_passed_over() {
    let mut fixture = Fixture::new(10, 1).await;
    let grants = (1..=4).map(|n| fixture.granted(n, n, 1)).collect();
    fixture.apply(grants).await;
    let mut other = fixture.database.connect().await;
    run(&mut other, "BEGIN").await;
    run(
        &mut other,
        "SELECT id FROM event_outbox ORDER BY id LIMIT 2 FOR UPDATE",
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

/// Polling a large outbox reads what is waiting, and not what was published.
#[tokio::test]
async fn a_claim_reads_unpublished_rows_alone() {
    let mut fixture = Fixture::new(2_000, 1).await;
    let grants = (1..=1_000).map(|n| fixture.granted(n, n, 1)).collect();
    fixture.apply(grants).await;
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "UPDATE event_outbox SET published = 1").await;
    fixture.apply(vec![fixture.granted(2_000, 2_000, 1)]).await;
    run(&mut meddler, "FLUSH STATUS").await;
    let free = "SELECT e.id, e.created_at FROM event_outbox e \
           FORCE INDEX (event_outbox_by_state) \
         WHERE e.published = 0 AND (e.claimed_until IS NULL \
           OR e.claimed_until <= UTC_TIMESTAMP(3) OR e.claimed_by = 'a') \
         ORDER BY e.id LIMIT 500 FOR UPDATE SKIP LOCKED";
    run(&mut meddler, free).await;
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
    assert!(rows < 100, "{rows} rows were read for one event");
}

//! What it costs when many payment windows end together.

use std::collections::BTreeMap;
use std::time::Instant;

use seckill_application::ports::{LedgerPorts, Release};
use seckill_domain::{NewEvent, OrderStatus, Transition, VoucherId};

use crate::cost::{between, statements, sum};
use crate::fixture::{Fixture, run};
use crate::server::root;

const BATCH: usize = 500;

/// Expires one batch, as the use case does. Returns how many orders there were.
async fn sweep(ports: &LedgerPorts) -> usize {
    let mut unit = ports.ledger.begin().await.unwrap();
    let mut orders = unit.lock_overdue_orders(BATCH).await.unwrap();
    if orders.is_empty() {
        return 0;
    }
    let now = unit.now().await.unwrap();
    for order in &mut orders {
        assert_eq!(order.expire(now), Ok(Transition::Applied));
    }
    let from = OrderStatus::PendingPayment;
    let saved = unit.save_orders(from, &orders).await.unwrap();
    assert_eq!(saved, orders.len());
    let mut releases: BTreeMap<VoucherId, Vec<Release>> = BTreeMap::new();
    for order in &orders {
        let release = Release::of(order);
        releases.entry(order.voucher).or_default().push(release);
    }
    for (voucher, releases) in releases {
        unit.release(voucher, &releases).await.unwrap();
    }
    let events: Vec<NewEvent> = orders.iter().map(NewEvent::of_order).collect();
    unit.append_events(&events).await.unwrap();
    unit.commit().await.unwrap();
    orders.len()
}

#[tokio::test]
async fn orders_that_are_due_together_expire_in_a_few_statements_a_batch() {
    // More for a measurement: 100000.
    let asked = std::env::var("SECKILL_TEST_DUE").ok();
    let due: u64 = asked.map_or(4_000, |due| due.parse().unwrap());
    let mut fixture = Fixture::new(u32::try_from(due).unwrap(), 1).await;
    let started = Instant::now();
    for first in (1..=due).step_by(1_000) {
        let last = (first + 999).min(due);
        let grants = (first..=last).map(|n| fixture.granted(n, n, 1));
        let grants = grants.collect();
        fixture.apply(grants).await;
    }
    println!("{due} orders were written in {:?}", started.elapsed());
    let mut meddler = fixture.database.connect().await;
    run(
        &mut meddler,
        "UPDATE orders SET expires_at = UTC_TIMESTAMP(3)",
    )
    .await;
    let mut root = root().await;
    let before = statements(&mut root, &fixture.database.name).await;
    let started = Instant::now();
    let (mut expired, mut batches) = (0, 0);
    loop {
        match sweep(&fixture.ports).await {
            0 => break,
            some => expired += some as u64,
        }
        batches += 1;
    }
    let took = started.elapsed();
    let after = statements(&mut root, &fixture.database.name).await;
    let ran = between(&before, &after);
    println!(
        "{expired} orders in {batches} transactions, {} statements, {took:?}: {ran:?}",
        sum(&ran)
    );
    assert_eq!(expired, due);
    assert_eq!(batches, due.div_ceil(BATCH as u64));
    let each = sum(&ran).unsigned_abs() / (batches + 1);
    assert!(each <= 20, "{each} statements for {BATCH} orders");
    assert_eq!(u64::from(fixture.voucher().await.stock_units), due);
    let events = "SELECT COUNT(*) FROM event_outbox WHERE kind = 'expired'";
    assert_eq!(fixture.number(events).await.unsigned_abs(), due);
    fixture.assert_sound().await;
}

//! Who writes orders, and since when.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Gate, Offer, Site, audit, buyer, buyers, crowd, eventually};

use crate::on_own_stores;

on_own_stores!(
    what_was_bought_before_the_first_writer_came_is_written,
    a_writer_that_takes_longer_than_its_lease_keeps_it,
);

/// Stands for: readers are set up at the end of the stream, and what was sold before the first one
/// came is delivered to nobody.
async fn what_was_bought_before_the_first_writer_came_is_written(site: Site) {
    let site = site.with("SECKILL_ROLE", "api");
    let door = site.start().await;
    let shop = door.shop();
    let voucher = shop.sell(&Offer::of(50)).await;
    let answers = crowd(buyers(30), 8, async |who| {
        (who, shop.buy(voucher, who).await)
    })
    .await;
    let ledger = site.ledger().await;
    assert!(ledger.orders(voucher).await.is_empty(), "nobody writes");
    let (who, answer) = &answers[0];
    let seen = shop.order(answer.expect_granted(), *who).await;
    assert_eq!(seen.order_status(), OrderStatus::Queued);

    let worker = site.with("SECKILL_ROLE", "worker").start().await;
    for (who, answer) in &answers {
        let seen = shop.settled(answer.expect_granted(), *who).await;
        assert_eq!(seen.order_status(), OrderStatus::PendingPayment);
    }
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.live_orders(voucher), 30);
    drop(worker);
}

const LEASE: Duration = Duration::from_secs(1);

/// Who has the lease of the one partition.
async fn writer(gate: &Gate) -> Option<String> {
    let keys = gate.keys_of_type("hash").await;
    let lease = keys
        .into_iter()
        .find(|key| key.ends_with(":lease:writer:0"))?;
    gate.run(redis::cmd("HGET").arg(lease).arg("owner")).await
}

/// Under which names the one partition is read.
async fn readers(gate: &Gate) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for stream in gate.keys_of_type("stream").await {
        for group in gate.groups(&stream).await {
            all.extend(gate.readers(&stream, &group.name).await);
        }
    }
    all
}

/// Stands for: a lock with a fixed lease runs out while its owner works, and another one begins the
/// same work; a lock that is renewed for ever by nobody; one consumer name for every process.
async fn a_writer_that_takes_longer_than_its_lease_keeps_it(site: Site) {
    let lease_ms = LEASE.as_millis().to_string();
    let site = site
        .with("SECKILL_PARTITIONS", "1")
        .with("SECKILL_LEASE_TTL_MS", &lease_ms);
    let (one, other) = (site.start().await, site.start().await);
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let shop = one.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let first = writer(&gate).await;
    assert!(first.is_some(), "somebody wrote that order");
    // Each process reads under a name of its own, and the one that has the lease is who reads.
    assert_eq!(readers(&gate).await, first.iter().cloned().collect());
    let fences = ledger.fences().await;

    // The batch hangs in the database, while the other process asks for the lease again and again.
    let held = ledger.hold_writers().await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let begun = Instant::now();
    while begun.elapsed() < LEASE * 5 / 2 {
        assert_eq!(writer(&gate).await, first);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    held.release().await;
    shop.settled(order, me).await;
    shop.buy_settled(voucher, buyer()).await;
    assert_eq!(ledger.fences().await, fences, "nobody else has begun");

    // It is renewed by its owner alone, and the next one has another name.
    one.kill();
    other.kill();
    let last = site.start().await;
    let limit = Duration::from_secs(20);
    eventually("the lease is taken over", limit, async || {
        match writer(&gate).await {
            Some(next) if Some(&next) != first.as_ref() => Ok(()),
            still => Err(format!("{still:?}")),
        }
    })
    .await;
    last.shop().buy_settled(voucher, buyer()).await;
    assert!(ledger.fences().await > fences);
    // A lease this short may be lost once more on a busy machine: who has it then reads as well.
    eventually("who has the lease reads", limit, async || {
        let (now, reading) = (writer(&gate).await, readers(&gate).await);
        let reads = now.as_ref().is_some_and(|now| reading.contains(now));
        reads.then_some(()).ok_or(format!("{now:?}, {reading:?}"))
    })
    .await;
}

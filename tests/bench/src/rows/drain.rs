//! How fast orders reach the ledger: G7 and G8.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::admission::PLENTY;
use crate::book::Book;
use crate::lab::{Drain, Lab};
use crate::load::Plan;
use crate::published;
use crate::site::Told;

/// Orders that wait for the one-by-one consumer: more than it takes in a run.
const ONE_BY_ONE: u64 = 20_000;
const FIRST_WITHIN: Duration = Duration::from_secs(30);
const BACKLOG: usize = 100_000;

/// Sells `count` units with the worker away, then calls it and watches.
pub(super) async fn drained(lab: &mut Lab, count: Option<usize>) -> anyhow::Result<Drain> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.send_worker_away().await?;
    let plan = match count {
        // Until the buyers are used up.
        Some(_) => Plan::closed(lab.site.address, 256, Duration::from_mins(2)),
        None => lab.closed(256),
    };
    let requests = match count {
        Some(count) => lab.crowd.purchases(&offer.id, count)?,
        None => lab.purchases(&offer, &plan)?,
    };
    let burst = lab.send(plan, requests).await?;
    let drain = lab.drain(&offer).await?;
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    Ok(drain)
}

pub(super) async fn backlog(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let ours = drained(lab, None).await?;
    lab.site.send_worker_away().await?;
    let theirs = one_by_one(lab).await?;
    book.pair("G7", ours.per_s, theirs);
    book.cost("drain of a backlog", ours.cost);
    Ok(())
}

/// Orders per second of the published consumer, with nothing else going on.
async fn one_by_one(lab: &mut Lab) -> anyhow::Result<f64> {
    let database = lab.empty_database("published").await?;
    published::put_on_sale(&mut lab.redis, &database, PLENTY).await?;
    fill(&mut lab.redis).await?;
    let mut consumer = lab.published(None, Some("published")).await?;
    let count = async || -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("SELECT COUNT(*) FROM orders")
            .fetch_one(&database)
            .await?)
    };
    // Its first orders are the start of the clock.
    let called = Instant::now();
    while count().await? == 0 {
        anyhow::ensure!(
            called.elapsed() < FIRST_WITHIN,
            "the published consumer has not begun"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (begun, from) = (Instant::now(), count().await?);
    tokio::time::sleep(lab.lasts).await;
    let (took, upto) = (begun.elapsed(), count().await?);
    consumer.kill().await?;
    anyhow::ensure!(
        upto < i64::try_from(ONE_BY_ONE)?,
        "the published consumer had nothing left to do"
    );
    check_published(&mut lab.redis, &database).await?;
    database.close().await;
    Ok((upto - from) as f64 / took.as_secs_f64())
}

async fn fill(redis: &mut MultiplexedConnection) -> anyhow::Result<()> {
    for chunk in 0..ONE_BY_ONE / 1_000 {
        let mut add = redis::pipe();
        for order in chunk * 1_000..(chunk + 1) * 1_000 {
            // Spread over the index, as real users are.
            let user = order.wrapping_mul(2_654_435_761) % 1_000_000_007;
            add.cmd("XADD").arg(published::STREAM).arg("*");
            add.arg("userId")
                .arg(user)
                .arg("voucherId")
                .arg(published::VOUCHER);
            add.arg("id").arg(order + 1).ignore();
        }
        add.query_async::<()>(redis).await?;
    }
    Ok(())
}

/// Every unit that left the database's stock has an order.
pub(super) async fn check_published(
    redis: &mut MultiplexedConnection,
    database: &sqlx::MySqlPool,
) -> anyhow::Result<i64> {
    let select = "SELECT (SELECT COUNT(*) FROM orders), ? - (SELECT stock FROM vouchers)";
    let select = sqlx::query_as::<_, (i64, i64)>(select).bind(i64::try_from(PLENTY)?);
    let (orders, taken) = select.fetch_one(database).await?;
    anyhow::ensure!(
        orders == taken,
        "the published consumer: {orders} orders, {taken} taken"
    );
    let mut unlink = redis::cmd("UNLINK");
    unlink.arg(&[published::STOCK, published::BUYERS, published::STREAM]);
    unlink.query_async::<()>(redis).await?;
    Ok(orders)
}

pub(super) async fn together(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let (partition, before) = lab.site.decided(&offer).await?;
    let burst = lab.burst(&offer, lab.closed(64)).await?;
    let took = burst.outcome.took.as_secs_f64();
    let applied = lab.site.applied(partition).await?.saturating_sub(before);
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    book.pair("G8a", applied as f64 / took, burst.outcome.granted_per_s());
    book.cost("whole system, 64 connections", burst.cost);

    let drain = drained(lab, Some(BACKLOG)).await?;
    book.value("G8b", BACKLOG as f64 / drain.per_s);
    book.cost("drain of 100,000", drain.cost);
    Ok(())
}

//! References side by side: the script in batches (G6), and the published design (G18).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::admission::PLENTY;
use super::drain::check_published;
use crate::book::Book;
use crate::lab::Lab;
use crate::load::Plan;
use crate::published;
use crate::servers::free_port;
use crate::site::{Offer, Told};

const BATCH: u32 = 32;

pub(super) async fn batching(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    lab.site.send_worker_away().await?;
    let (batched, single) = (lab.raw(32, BATCH).await?, lab.raw(32, 1).await?);
    book.pair("G6a", batched.orders_per_s, single.orders_per_s);
    let (batched, single) = (lab.raw(512 / BATCH, BATCH).await?, lab.raw(512, 1).await?);
    book.pair("G6b", batched.orders_per_s, single.orders_per_s);
    book.aside(
        "script, 32 a call, 16 connections: Redis us per order",
        batched.redis_us,
    );
    book.aside(
        "script, 1 a call, 512 connections: Redis us per order",
        single.redis_us,
    );
    Ok(())
}

pub(super) async fn whole(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let requests = lab.purchases(&offer, &lab.closed(64))?;
    let begun = Instant::now();
    let ours = lab.send(lab.closed(64), requests).await?;
    lab.site.drained(&offer).await?;
    let our_drain = ours.outcome.granted as f64 / begun.elapsed().as_secs_f64();
    lab.site.check(&offer, Told::from(&ours.outcome)).await?;

    lab.site.send_worker_away().await?;
    let database = lab.empty_database("published").await?;
    published::put_on_sale(&mut lab.redis, &database, PLENTY).await?;
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut process = lab.published(Some(listen), Some("published")).await?;
    let plan = Plan::closed(listen, 64, lab.lasts);
    let offer = Offer {
        id: published::VOUCHER.to_string(),
        units: PLENTY,
    };
    let requests = lab.purchases(&offer, &plan)?;
    let processes = [
        ("app", process.pid()),
        ("redis", lab.servers.redis.pid()),
        ("mysql", lab.servers.mysql.pid()),
    ];
    let begun = Instant::now();
    let theirs = lab.send_to(plan, requests, &processes).await?;
    // Some time without any load, which is to its advantage.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let consumed: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM orders")
        .fetch_one(&database)
        .await?;
    let their_drain = consumed as f64 / begun.elapsed().as_secs_f64();
    process.kill().await?;

    let mut left = redis::pipe();
    left.cmd("GET")
        .arg(published::STOCK)
        .cmd("SCARD")
        .arg(published::BUYERS);
    left.cmd("XLEN").arg(published::STREAM);
    let (stock, buyers, entries): (u64, u64, u64) = left.query_async(&mut lab.redis).await?;
    let granted = theirs.outcome.granted;
    anyhow::ensure!(
        PLENTY - stock == buyers && buyers == entries && entries >= granted,
        "the published design: {granted} granted, {entries} sent, {buyers} buyers, {stock} left"
    );
    check_published(&mut lab.redis, &database).await?;
    database.close().await;

    book.pair(
        "G18a",
        ours.outcome.granted_per_s(),
        theirs.outcome.granted_per_s(),
    );
    book.pair("G18b", our_drain, their_drain);
    book.cost("whole system, 64 connections", ours.cost);
    book.cost("published design, 64 connections", theirs.cost);
    Ok(())
}

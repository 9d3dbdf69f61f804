//! A worker that is killed, and a Redis that comes back: G16.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::admission::PLENTY;
use crate::book::Book;
use crate::client::ask;
use crate::lab::Lab;
use crate::load::Plan;
use crate::site::Told;

const PENDING: usize = 10_000;
/// The default of `SECKILL_LEASE_TTL_MS`.
const LEASE: Duration = Duration::from_secs(10);

pub(super) async fn restarts(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    killed_worker(lab, book).await?;
    restarted_redis(lab, book).await
}

/// The database is frozen while 10,000 orders come, so that the worker has read and cannot finish;
/// then the worker is killed, and another one comes.
async fn killed_worker(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let requests = lab.crowd.purchases(&offer.id, PENDING)?;
    lab.servers.mysql.freeze(true)?;
    let plan = Plan::closed(lab.site.address, 256, Duration::from_mins(1));
    let burst = lab.send(plan, requests).await;
    if let Some(mut worker) = lab.site.worker.take() {
        worker.kill().await?;
    }
    lab.servers.mysql.freeze(false)?;
    let burst = burst?;
    let begun = Instant::now();
    lab.site.call_worker().await?;
    lab.site.drained(&offer).await?;
    let took = begun.elapsed();
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    book.value("G16a", took.saturating_sub(LEASE).as_secs_f64());
    Ok(())
}

async fn restarted_redis(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let requests = lab.crowd.purchases(&offer.id, PENDING)?;
    let plan = Plan::closed(lab.site.address, 256, Duration::from_mins(1));
    let burst = lab.send(plan, requests).await?;
    let begun = Instant::now();
    let load = lab.restart_redis().await?;
    let buy = format!("POST /v1/vouchers/{}/purchases", offer.id);
    let mut told = Told::from(&burst.outcome);
    loop {
        let token = lab.crowd.token()?;
        let (status, _) = ask(lab.site.address, &buy, Some(&token), None).await?;
        if status == 202 {
            told.granted += 1;
            break;
        }
        told.unknown += 1;
        ensure!(
            begun.elapsed() < Duration::from_mins(1),
            "still not open: {status}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let reopened = begun.elapsed().as_secs_f64();
    lab.site.check(&offer, told).await?;
    book.value("G16b", (reopened - 1.5 * load.as_secs_f64()).max(0.0));
    book.aside("Redis restart: its own load, s", load.as_secs_f64());
    book.aside("Redis restart: until a purchase, s", reopened);
    Ok(())
}

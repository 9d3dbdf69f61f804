//! How many purchases a second: G1 to G5, and G17. The worker is away meanwhile, as on a machine of
//! its own; the stream keeps what was decided, and the check afterwards drains it.

use anyhow::ensure;

use crate::book::Book;
use crate::lab::{Burst, Lab};
use crate::load::{Plan, Requests};
use crate::site::Told;

/// More than any run sells.
pub(super) const PLENTY: u64 = 10_000_000;

/// A burst of new buyers with the worker away, checked.
pub(super) async fn admitted(lab: &mut Lab, plan: Plan) -> anyhow::Result<Burst> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.send_worker_away().await?;
    let burst = lab.burst(&offer, plan).await?;
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    let (outcome, statuses) = (&burst.outcome, &burst.outcome.statuses);
    ensure!(
        outcome.granted == outcome.sent,
        "not all were granted: {statuses:?}"
    );
    Ok(burst)
}

/// A closed loop of the cheapest answer that passes the same layers: no token, no store.
pub(super) async fn static_replies(lab: &mut Lab, book: &mut Book) -> anyhow::Result<Burst> {
    lab.site.send_worker_away().await?;
    let burst = lab.send(lab.closed(64), Requests::get("/livez")).await?;
    book.cost("static reply, 64 connections", burst.cost.clone());
    Ok(burst)
}

pub(super) async fn narrow(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let ours = admitted(lab, lab.closed(64)).await?;
    lab.site.send_worker_away().await?;
    let raw = lab.raw(64, 1).await?;
    let fixed = static_replies(lab, book).await?;
    book.pair("G1", ours.outcome.granted_per_s(), raw.orders_per_s);
    book.pair("G3", ours.cost.us["redis"], raw.redis_us);
    book.pair("G4", ours.cost.us["app"], fixed.cost.us["app"]);
    book.cost("purchase, 64 connections", ours.cost);
    book.aside(
        "raw EVALSHA, 64 connections: generator, cores",
        raw.generator_cores,
    );
    book.aside(
        "raw EVALSHA, 64 connections: Redis us per order",
        raw.redis_us,
    );
    Ok(())
}

pub(super) async fn wide(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let ours = admitted(lab, lab.closed(256)).await?;
    lab.site.send_worker_away().await?;
    let raw = lab.raw(256, 1).await?;
    book.pair("G2", ours.outcome.granted_per_s(), raw.orders_per_s);
    book.aside(
        "raw EVALSHA, 256 connections: Redis us per order",
        raw.redis_us,
    );
    book.cost("purchase, 256 connections", ours.cost);
    let churn = admitted(lab, lab.closed(64).churning()).await?;
    book.cost("purchase, a connection each, 64 at once", churn.cost);
    Ok(())
}

pub(super) async fn durability(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let always = admitted(lab, lab.closed(64)).await?;
    lab.fsync("everysec").await?;
    let everysec = admitted(lab, lab.closed(64)).await;
    // Whatever happened: the next run has it on.
    lab.fsync("always").await?;
    let everysec = everysec?;
    book.pair(
        "G5",
        always.outcome.granted_per_s(),
        everysec.outcome.granted_per_s(),
    );
    book.cost("purchase, 64 connections, fsync always", always.cost);
    book.cost("purchase, 64 connections, fsync everysec", everysec.cost);
    Ok(())
}

/// How many tokens the product certainly remembers.
const REMEMBERED: usize = 80_000;

pub(super) async fn overhead(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    // The same tokens on one voucher after the other: never seen, then remembered. What was seen
    // once is remembered from the next time on, most of it.
    let mut offers = Vec::new();
    for _ in 0..4 {
        offers.push(lab.site.sell(PLENTY, 0).await?);
    }
    lab.site.send_worker_away().await?;
    let plan = lab.closed(64);
    let requests = lab.crowd.purchases(&offers[0].id, REMEMBERED)?;
    let mut runs = Vec::new();
    for offer in &offers {
        runs.push(lab.send(plan, requests.again_for(&offer.id)).await?);
    }
    for (offer, run) in offers.iter().zip(&runs) {
        lab.site.check(offer, Told::from(&run.outcome)).await?;
    }
    let (Some(unseen), Some(seen)) = (runs.first(), runs.last()) else {
        anyhow::bail!("nothing was sent");
    };
    book.pair(
        "G17a",
        unseen.outcome.granted_per_s(),
        seen.outcome.granted_per_s(),
    );

    lab.renew(&[("SECKILL_LOG", "info")]).await?;
    let info = admitted(lab, lab.closed(64)).await?;
    lab.renew(&[("SECKILL_LOG", "off")]).await?;
    let off = admitted(lab, lab.closed(64)).await?;
    book.pair(
        "G17b",
        info.outcome.granted_per_s(),
        off.outcome.granted_per_s(),
    );
    lab.renew(&[]).await
}

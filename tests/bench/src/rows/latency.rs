//! How long a purchase takes, measured by a fixed schedule: G9, G10, G14 and G19. The whole system is
//! at work.

use std::time::{Duration, Instant};

use seckill_domain::PartitionId;
use tokio::sync::watch;

use super::admission::PLENTY;
use crate::book::Book;
use crate::lab::{Burst, Lab};
use crate::load::Plan;
use crate::site::Told;

const IDLE_PER_S: f64 = 100.0;
const STEADY_PER_S: f64 = 2_000.0;
const CONNECTIONS: usize = 256;
/// More than the product works on at once (512 per core), so that it is the product that has to turn
/// somebody away; fewer than the number from which on it does not keep connections.
const MANY_CONNECTIONS: usize = 7_000;
/// How often the positions of gate and ledger are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(4);

/// A burst of new buyers with the worker at work, checked.
async fn served(lab: &mut Lab, plan: Plan) -> anyhow::Result<Burst> {
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let burst = lab.burst(&offer, plan).await?;
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    Ok(burst)
}

/// The same below capacity: almost nobody is turned away, or the latency is that of refusals.
async fn served_all(lab: &mut Lab, plan: Plan) -> anyhow::Result<Burst> {
    let burst = served(lab, plan).await?;
    granted_almost_all(&burst)?;
    Ok(burst)
}

fn granted_almost_all(burst: &Burst) -> anyhow::Result<()> {
    let outcome = &burst.outcome;
    anyhow::ensure!(
        outcome.granted as f64 > 0.99 * outcome.sent as f64,
        "not all were granted: {:?}",
        outcome.statuses
    );
    Ok(())
}

/// What the whole system can do: purchases a second in a closed loop.
async fn capacity(lab: &mut Lab, book: &mut Book) -> anyhow::Result<f64> {
    let closed = served(lab, lab.closed(64)).await?;
    let capacity = closed.outcome.granted_per_s();
    book.cost("whole system, 64 connections", closed.cost);
    Ok(capacity)
}

pub(super) async fn half_load(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let capacity = capacity(lab, book).await?;
    let idle = served_all(lab, lab.open(16, IDLE_PER_S)).await?;
    let half = served_all(lab, lab.open(CONNECTIONS, capacity / 2.0)).await?;
    let p99 = half.outcome.latency_ms(99.0);
    book.pair("G9a", p99, idle.outcome.latency_ms(50.0));
    book.value("G9b", p99);
    book.aside("p50 at 50 % of capacity, ms", half.outcome.latency_ms(50.0));
    book.aside(
        "p99.9 at 50 % of capacity, ms",
        half.outcome.latency_ms(99.9),
    );
    book.cost("whole system, open loop at 50 %", half.cost);
    Ok(())
}

pub(super) async fn overload(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let capacity = capacity(lab, book).await?;
    let most = served(lab, lab.open(CONNECTIONS, capacity * 0.8)).await?;
    let full = served(lab, lab.open(MANY_CONNECTIONS, capacity)).await?;
    let twice = served(lab, lab.open(MANY_CONNECTIONS, capacity * 2.0)).await?;
    book.pair(
        "G10a",
        twice.outcome.granted_per_s(),
        full.outcome.granted_per_s(),
    );
    book.pair(
        "G10b",
        twice.outcome.accepted_ms(99.0),
        most.outcome.accepted_ms(99.0),
    );
    book.aside("2x offered: turned away with 503, share", {
        twice.outcome.of_status(503) as f64 / twice.outcome.sent as f64
    });
    book.aside("2x offered: requests sent per second of schedule", {
        twice.outcome.sent as f64 / lab.lasts.as_secs_f64()
    });
    book.cost("whole system, 2x offered", twice.cost);
    Ok(())
}

pub(super) async fn confirmation(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let capacity = capacity(lab, book).await?;
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.call_worker().await?;
    let plan = lab.open(CONNECTIONS, capacity / 2.0);
    let requests = lab.purchases(&offer, &plan)?;
    let (partition, _) = lab.site.decided(&offer).await?;
    let (stop, stopped) = watch::channel(false);
    let applied = tokio::spawn(applied_curve(lab.site.database.clone(), partition, stopped));
    let (burst, decided) = {
        let sent = lab.send(plan, requests);
        let mut sent = std::pin::pin!(sent);
        let mut curve = Vec::new();
        let mut decisions = lab.site.decisions(&offer)?;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let burst = loop {
            tokio::select! {
                burst = &mut sent => break burst?,
                _ = looks.tick() => curve.push((Instant::now(), decisions.last().await?)),
            }
        };
        (burst, curve)
    };
    lab.site.drained(&offer).await?;
    stop.send_replace(true);
    let applied = applied.await??;
    lab.site.check(&offer, Told::from(&burst.outcome)).await?;
    granted_almost_all(&burst)?;
    let lag = lag_p99(&decided, &applied);
    book.value("G14", lag.as_secs_f64() * 1_000.0);
    Ok(())
}

type Curve = Vec<(Instant, u64)>;

async fn applied_curve(
    database: sqlx::MySqlPool,
    partition: PartitionId,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<Curve> {
    let mut curve = Vec::new();
    while !*stopped.borrow() {
        let select = "SELECT applied_seq FROM partitions WHERE partition_id = ?";
        let select = sqlx::query_scalar(select).bind(partition.get());
        let applied: u64 = select.fetch_one(&database).await?;
        curve.push((Instant::now(), applied));
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(curve)
}

/// How long decisions waited for the ledger: the horizontal distance of the two curves, at the
/// decision that 99 % of all were faster than. Exact to the distance of two looks.
fn lag_p99(decided: &[(Instant, u64)], applied: &[(Instant, u64)]) -> Duration {
    let (mut lags, mut at, mut before) = (Vec::new(), 0, decided.first().map_or(0, |it| it.1));
    for (when, seq) in decided {
        while at < applied.len() && applied[at].1 < *seq {
            at += 1;
        }
        let Some((seen, _)) = applied.get(at) else {
            break;
        };
        lags.push((seen.saturating_duration_since(*when), seq - before));
        before = *seq;
    }
    lags.sort();
    let all: u64 = lags.iter().map(|(_, count)| count).sum();
    let mut above = all / 100;
    for (lag, count) in lags.iter().rev() {
        if *count > above {
            return *lag;
        }
        above -= count;
    }
    Duration::ZERO
}

pub(super) async fn steady(lab: &mut Lab, book: &mut Book) -> anyhow::Result<()> {
    let burst = served_all(lab, lab.open(CONNECTIONS, STEADY_PER_S)).await?;
    book.value("G19a", burst.outcome.latency_ms(50.0));
    book.aside("p99 at 2,000/s, ms", burst.outcome.latency_ms(99.0));
    book.cost("whole system, 2,000/s", burst.cost);

    // The request path alone: no worker, and what happens without any request is taken off. One
    // order waits for the ledger from the start: that is asked after whether one waits or thousands.
    let offer = lab.site.sell(PLENTY, 0).await?;
    lab.site.send_worker_away().await?;
    let one = lab.crowd.purchases(&offer.id, 1)?;
    let first = lab.send(lab.closed(1), one).await?;
    let plan = lab.open(CONNECTIONS, STEADY_PER_S);
    let requests = lab.purchases(&offer, &plan)?;
    let from = calls(lab).await?;
    tokio::time::sleep(lab.lasts).await;
    let idle = calls(lab).await?;
    let burst = lab.send(plan, requests).await?;
    let upto = calls(lab).await?;
    let told = Told::from(&first.outcome) + Told::from(&burst.outcome);
    lab.site.check(&offer, told).await?;
    // To a thousandth: two equal times differ by a round of upkeep, and what is on the path comes
    // once in 32 purchases at least, the most of one batch.
    let per_purchase = |from: u64, idle: u64, upto: u64| {
        let more = (upto - idle).saturating_sub(idle - from);
        (more as f64 / burst.outcome.sent as f64 * 1_000.0).round() / 1_000.0
    };
    book.value("G19b", per_purchase(from.0, idle.0, upto.0));
    book.value("G19c", per_purchase(from.1, idle.1, upto.1));
    Ok(())
}

/// Statements of the database, and script calls of Redis.
async fn calls(lab: &mut Lab) -> anyhow::Result<(u64, u64)> {
    Ok((lab.statements().await?, lab.script_calls().await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_the_distance_of_the_curves() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let decided: Curve = (0..1_000).map(|ms| (at(ms), ms)).collect();
        let applied: Curve = (0..1_100)
            .map(|ms| (at(ms), ms.saturating_sub(40)))
            .collect();
        assert_eq!(lag_p99(&decided, &applied), Duration::from_millis(40));
    }
}

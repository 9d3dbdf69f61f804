//! Redis or MySQL dies under load and comes back.

use std::sync::Arc;
use std::time::Duration;

use seckill_tests::harness::{
    Call, Event, HeldWriters, History, Load, Offer, Pace, Process, Purchase, Site, Told, audit,
    eventually,
};
use seckill_tests::matrix::Row;

use crate::on_own_servers;

on_own_servers!(
    redis_killed_and_restarted_loses_nothing,
    mysql_killed_for_ten_seconds_loses_nothing,
    a_redis_that_takes_no_writes_is_not_ready,
);

/// Nothing is granted later than this after the gate was lost.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);
/// Purchases must be granted again this soon after the neighbour answers.
const GRANTED_WITHIN: Duration = Duration::from_secs(5);

async fn sold(load: &Load, more: usize) {
    let goal = load.granted() + more;
    eventually("people buy", Duration::from_secs(30), async || {
        let granted = load.granted();
        (granted >= goal)
            .then_some(())
            .ok_or(format!("{granted} of {goal}"))
    })
    .await;
}

/// How long after `since` the first grant was answered that was asked for after it.
fn first_grant(events: &[Event], since: Duration) -> Duration {
    let granted = |event: &&Event| matches!(&event.told, Told::Purchase(answer) if answer.granted().is_some());
    events
        .iter()
        .filter(|event| event.begun >= since)
        .find(granted)
        .map_or(Duration::MAX, |event| event.ended.saturating_sub(since))
}

/// From this on the gate grants nothing: the last grant that was answered after `since`, as long after
/// it as it was; and how many buyers who came after it were told to come back.
fn closed(events: &[Event], since: Duration) -> (Duration, usize) {
    let after = || events.iter().filter(|event| event.ended >= since);
    let told = |event: &Event, is_it: fn(&Purchase) -> bool| matches!(&event.told, Told::Purchase(answer) if is_it(answer));
    let granted = after().filter(|event| told(event, |answer| answer.granted().is_some()));
    let last = granted.map(|event| event.ended.saturating_sub(since)).max();
    let put_off = after()
        .filter(|event| event.begun >= since)
        .filter(|event| told(event, |answer| answer.code() == "unavailable"));
    (last.unwrap_or_default(), put_off.count())
}

/// Says what the checks of `/readyz` see, until it is this.
async fn until_ready(process: &Process, status: u16, word: &str) {
    let shop = process.shop();
    eventually("readiness is told", Duration::from_secs(10), async || {
        let reply = shop.ask(Call::get("/readyz")).await;
        let said = reply.status == status && reply.text.contains(word);
        said.then_some(()).ok_or(reply.text)
    })
    .await;
}

/// Holds the writers until so many orders are in flight.
async fn piled_up(site: &Site, orders: i64) -> (HeldWriters, i64) {
    let held = site.ledger().await.hold_writers().await;
    let gate = site.gate().await;
    let enough = Duration::from_secs(30);
    let in_flight = eventually("orders are in flight", enough, async || {
        let in_flight = gate.in_flight().await;
        (in_flight >= orders)
            .then_some(in_flight)
            .ok_or(format!("{in_flight} of {orders}"))
    })
    .await;
    (held, in_flight)
}

async fn redis_killed_and_restarted_loses_nothing(site: Site) {
    let mut row = Row::begin();
    let process = site.start().await;
    let history = Arc::new(History::default());
    let voucher = process.shop().sell(&Offer::of(20_000)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 16);
    let redis = &site.servers().redis;
    for _ in 0..2 {
        sold(&load, 100).await;
        let (held, in_flight) = piled_up(&site, 20).await;
        let before = Pace::between(&history.events(), Duration::ZERO, history.now());
        redis.kill().await;
        let killed = history.now();
        row.struck("SIGKILL of Redis", in_flight);
        held.release().await;
        until_ready(&process, 503, "gate").await;
        eventually("buyers are put off", GRANTED_WITHIN, async || {
            let (_, put_off) = closed(&history.events(), killed);
            (put_off >= 16).then_some(()).ok_or(put_off.to_string())
        })
        .await;
        let (after, _) = closed(&history.events(), killed);
        assert!(after <= CLOSED_WITHIN, "granted {after:?} after the loss");
        redis.start().await;
        let since = history.now();
        sold(&load, 50).await;
        let after = first_grant(&history.events(), since);
        assert!(after <= GRANTED_WITHIN, "granted again after {after:?}");
        let now = Pace::between(&history.events(), since, history.now());
        let again = after.as_millis();
        row.tell(format!("{before}; granted again after {again} ms, {now}"));
    }
    until_ready(&process, 200, "\"ready\"").await;
    load.stop().await;
    let ledger = site.ledger().await;
    let verdict = audit(&process.shop(), &history, &[voucher], Some(&ledger)).await;
    row.held(&verdict);
}

async fn mysql_killed_for_ten_seconds_loses_nothing(site: Site) {
    let mut row = Row::begin();
    let process = site.start().await;
    let history = Arc::new(History::default());
    let voucher = process.shop().sell(&Offer::of(20_000)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 4);
    let mysql = &site.servers().mysql;
    sold(&load, 50).await;
    mysql.kill().await;
    let down = tokio::time::Instant::now();
    until_ready(&process, 200, "degraded").await;
    // Admission needs no database.
    sold(&load, 50).await;
    let in_flight = site.gate().await.in_flight().await;
    row.struck("the database is away for ten seconds", in_flight);
    tokio::time::sleep_until(down + Duration::from_secs(10)).await;
    mysql.start().await;
    let since = history.now();
    sold(&load, 50).await;
    let after = first_grant(&history.events(), since);
    assert!(after <= GRANTED_WITHIN, "granted again after {after:?}");
    load.stop().await;
    let ledger = site.ledger().await;
    let verdict = audit(&process.shop(), &history, &[voucher], Some(&ledger)).await;
    row.held(&verdict);
    until_ready(&process, 200, "\"ready\"").await;
}

/// It answers every question, and can grant nothing.
async fn a_redis_that_takes_no_writes_is_not_ready(site: Site) {
    let process = site.start().await;
    let gate = site.gate().await;
    let set = async |setting: &str, value: &str| {
        let mut config = redis::cmd("CONFIG");
        gate.run::<()>(config.arg("SET").arg(setting).arg(value))
            .await;
    };
    for (setting, refuses, takes) in [("maxmemory", "1", "0"), ("min-replicas-to-write", "1", "0")]
    {
        until_ready(&process, 200, "ready").await;
        set(setting, refuses).await;
        until_ready(&process, 503, "\"gate\":\"down\"").await;
        set(setting, takes).await;
    }
    until_ready(&process, 200, "ready").await;
    gate.run::<()>(redis::cmd("REPLICAOF").arg("127.0.0.1").arg("1"))
        .await;
    until_ready(&process, 503, "\"gate\":\"down\"").await;
    gate.run::<()>(redis::cmd("REPLICAOF").arg("NO").arg("ONE"))
        .await;
    until_ready(&process, 200, "ready").await;
}

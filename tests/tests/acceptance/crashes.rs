//! Processes of the service that die, or are asked to stop, with work in flight.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::VoucherId;
use seckill_tests::harness::{History, Load, Offer, Shop, Site, audit, buyer, eventually};
use seckill_tests::matrix::Row;

use crate::{PROGRAM, on_own_stores};

on_own_stores!(
    a_killed_process_loses_nothing,
    a_frozen_writer_is_replaced,
    a_stopped_process_finishes_its_work,
    a_rolling_restart_fails_nobody,
);

/// Orders that must be in flight when the fault strikes.
const IN_FLIGHT: i64 = 50;

async fn until_in_flight(shop: &Shop, voucher: VoucherId) {
    let what = "enough orders are in flight";
    eventually(what, Duration::from_secs(30), async || {
        let tally = shop.balance(voucher).await.tally;
        if tally.in_flight >= IN_FLIGHT {
            return Ok(());
        }
        Err(format!("{tally:?}"))
    })
    .await;
}

/// SIGKILL under load, twice, each time with orders that only Redis knows.
async fn a_killed_process_loses_nothing(site: Site) {
    let mut process = site.start().await;
    let history = Arc::new(History::default());
    let voucher = process.shop().sell(&Offer::of(100_000)).await;
    let ledger = site.ledger().await;
    let load = Load::start(&[process.shop()], &history, voucher, 16);
    for _ in 0..2 {
        let held = ledger.hold_writers().await;
        until_in_flight(&process.shop(), voucher).await;
        process.kill();
        held.release().await;
        process = site.start().await;
        load.aim_at(&[process.shop()]);
        let before = load.granted();
        eventually("it sells again", Duration::from_secs(20), async || {
            (load.granted() > before).then_some(()).ok_or(String::new())
        })
        .await;
    }
    load.stop().await;
    let verdict = audit(&process.shop(), &history, &[voucher], Some(&ledger)).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert!(verdict.granted.len() >= 50, "{}", verdict.granted.len());
}

/// A process is paused for longer than its leases last, and comes back: the other one has taken
/// over, and what the first one had in its hands changes nothing.
async fn a_frozen_writer_is_replaced(site: Site) {
    let mut row = Row::begin();
    let (one, other) = (site.start().await, site.start().await);
    let history = Arc::new(History::default());
    let voucher = one.shop().sell(&Offer::of(100_000)).await;
    let load = Load::start(&[one.shop(), other.shop()], &history, voucher, 8);
    let busy = async |at_least: usize| {
        eventually("it sells", Duration::from_secs(20), async || {
            let sold = load.granted();
            (sold >= at_least).then_some(()).ok_or(format!("{sold}"))
        })
        .await;
    };
    busy(50).await;
    let gate = site.gate().await;
    let in_flight = eventually(
        "something is in flight",
        Duration::from_secs(20),
        async || {
            let in_flight = gate.in_flight().await;
            (in_flight > 0).then_some(in_flight).ok_or(String::new())
        },
    )
    .await;
    one.freeze();
    row.struck("SIGSTOP beyond every lease", in_flight);
    load.aim_at(&[other.shop()]);
    // Every lease of the frozen one runs out, and everything that was granted reaches the ledger.
    let sold = load.granted();
    busy(sold + 50).await;
    let watched = other.shop().writing(&Arc::default());
    let told = history.granted();
    for (order, who) in told.iter().rev().take(50) {
        watched.settled(*order, *who).await;
    }
    one.thaw();
    load.aim_at(&[one.shop(), other.shop()]);
    let sold = load.granted();
    busy(sold + 50).await;
    load.stop().await;
    let ledger = site.ledger().await;
    let verdict = audit(&one.shop(), &history, &[voucher], Some(&ledger)).await;
    row.held(&verdict);
}

/// SIGTERM under load: it ends by itself, with success, soon, and nothing it accepted is lost.
async fn a_stopped_process_finishes_its_work(site: Site) {
    let mut row = Row::begin();
    let process = site.start().await;
    let history = Arc::new(History::default());
    let voucher = process.shop().sell(&Offer::of(100_000)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 16);
    eventually("it sells", Duration::from_secs(20), async || {
        (load.granted() >= 100).then_some(()).ok_or(String::new())
    })
    .await;
    let held = site.ledger().await.hold_writers().await;
    until_in_flight(&process.shop(), voucher).await;
    row.struck("SIGTERM", site.gate().await.in_flight().await);
    let (status, took) = process.stop_amid(held).await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    load.stop().await;

    // The writer had finished, and had given its lease back: another process need not wait for it.
    let next = site.start().await;
    let order = next.shop().buy(voucher, buyer()).await;
    order.expect_granted();
    let ledger = site.ledger().await;
    let verdict = audit(&next.shop(), &history, &[voucher], Some(&ledger)).await;
    row.held(&verdict);
}

/// One process after the other is stopped and replaced while people buy.
async fn a_rolling_restart_fails_nobody(site: Site) {
    let mut row = Row::begin();
    let (one, other) = (site.start().await, site.start().await);
    let history = Arc::new(History::default());
    let voucher = one.shop().sell(&Offer::of(100_000)).await;
    let load = Load::start(&[one.shop(), other.shop()], &history, voucher, 8);
    let mut running = vec![one, other];
    for _ in 0..2 {
        let next = site.start().await;
        let old = running.remove(0);
        running.push(next);
        // As a load balancer does: first no new calls, then the signal.
        let shops: Vec<Shop> = running
            .iter()
            .map(seckill_tests::harness::Process::shop)
            .collect();
        load.aim_at(&shops);
        let held = site.ledger().await.hold_writers().await;
        until_in_flight(&shops[0], voucher).await;
        row.struck(
            "SIGTERM of each process",
            site.gate().await.in_flight().await,
        );
        let (status, _) = old.stop_amid(held).await;
        assert_eq!(status.code(), Some(0), "{status}");
    }
    let sold = load.granted();
    eventually("it still sells", Duration::from_secs(20), async || {
        (load.granted() > sold).then_some(()).ok_or(String::new())
    })
    .await;
    load.stop().await;
    let lost = history
        .events()
        .iter()
        .filter(|event| matches!(event.told, seckill_tests::harness::Told::Nothing))
        .count();
    assert_eq!(lost, 0, "calls that were accepted and not answered");
    let ledger = site.ledger().await;
    let shop = running[0].shop();
    let verdict = audit(&shop, &history, &[voucher], Some(&ledger)).await;
    nothing_is_pending(&site).await;
    row.held(&verdict);
}

/// Those who went have left nothing behind that only they would ever acknowledge.
async fn nothing_is_pending(site: &Site) {
    let gate = site.gate().await;
    for stream in gate.keys_of_type("stream").await {
        eventually("nothing is pending", Duration::from_secs(10), async || {
            let groups = gate.groups(&stream).await;
            let none = groups.iter().all(|group| group.pending == 0);
            none.then_some(()).ok_or(format!("{groups:?}"))
        })
        .await;
    }
}

/// In memory nothing is left to be checked afterwards, but it stops as orderly.
#[tokio::test]
async fn a_process_in_memory_stops_when_asked() {
    let site = Site::memory(PROGRAM);
    let process = site.start().await;
    let history = Arc::new(History::default());
    let voucher = process.shop().sell(&Offer::of(100_000)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 16);
    eventually("it sells", Duration::from_secs(20), async || {
        (load.granted() >= 100).then_some(()).ok_or(String::new())
    })
    .await;
    let (status, took) = process.stop().await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    load.stop().await;
}

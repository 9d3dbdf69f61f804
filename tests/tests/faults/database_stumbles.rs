//! The database dies, blocks, or chooses a victim, with a batch half written (F19 to F21).

use std::time::Duration;

use seckill_tests::harness::Fate;

use crate::scene::{Scene, held, refused, until};

/// Decisions that may be ahead of the ledger, by a setting.
const BACKLOG: i64 = 150;

/// For how many seconds the database is away; a minute in a long run.
const AWAY_S: &str = "SECKILL_TEST_AWAY_S";

/// The database is away for long: purchases go on until the backlog is full, then they are refused;
/// nobody storms the database while it is away, or when it comes back.
#[tokio::test]
async fn f19_the_database_is_away_until_the_backlog_is_full() {
    /// Connections that a process may have at once, by this setting.
    const CONNECTIONS: u64 = 8;
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let scene = scene
        .with("SECKILL_BACKLOG_MAX", &BACKLOG.to_string())
        .with("SECKILL_LEDGER_CONNECTIONS", &CONNECTIONS.to_string());
    let away = std::env::var(AWAY_S).map_or(4, |seconds| seconds.parse().expect("seconds"));
    // Whoever pays or gives up tries to connect as well, and gives that up when it takes too long: more
    // attempts are counted then than there are connections at a time.
    let sale = scene.selling(20_000, 8).await;
    let mysql = &scene.site.servers().mysql;
    mysql.kill().await;
    let down = tokio::time::Instant::now();
    let reached = scene.mysql.reached();
    let sold = sale.load.granted();
    refused(&scene.history).await;
    let in_flight = scene.in_flight().await;
    row.struck("SIGKILL of the database", in_flight);
    assert!(in_flight >= BACKLOG, "{in_flight} in flight");
    assert!(sale.load.granted() >= sold + 50, "it hardly went on");
    tokio::time::sleep_until(down + Duration::from_secs(away)).await;
    mysql.start().await;
    sale.sells(50).await;
    let demand = sale.demand;
    let verdict = sale.judged(&scene).await;
    // While nobody was there, whoever tried was turned away and tried again after a while. A busy
    // machine sees late that one was given up.
    let most = scene.mysql.most_open();
    assert!(most <= 4 * CONNECTIONS, "{most} connections at once");
    let reached = scene.mysql.reached() - reached;
    assert!(
        reached <= 2 * CONNECTIONS,
        "{reached} connections at its return"
    );
    held(&scene, row, &verdict, demand);
}

/// The same without that limit: nothing but the limit keeps what only Redis has from growing. All of
/// it reaches the ledger in the end.
#[tokio::test]
async fn f19_without_a_limit_more_and_more_is_in_flight() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.busy(20_000, 16).await;
    let mysql = &scene.site.servers().mysql;
    mysql.kill().await;
    let beyond = until("more is in flight than the limit lets in", async || {
        let in_flight = scene.in_flight().await;
        (in_flight > BACKLOG + BACKLOG / 2)
            .then_some(in_flight)
            .ok_or(format!("{in_flight}"))
    })
    .await;
    row.struck("SIGKILL of the database, and no limit", beyond);
    mysql.start().await;
    sale.sells(50).await;
    sale.ends(&scene, row).await;
}

/// SIGKILL of the database just when it has been told to commit: whether it did is found out.
#[tokio::test]
async fn f20_the_database_dies_in_a_commit() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.busy(20_000, 16).await;
    let mysql = &scene.site.servers().mysql;
    // Told and not heard; about to be told; and whatever it is doing just then.
    for (turn, fate) in [Fate::Unanswered, Fate::Held, Fate::Unanswered]
        .into_iter()
        .enumerate()
    {
        let trap = scene.mysql.trap_nth(&["BEGIN", "COMMIT"], 3 + turn, fate);
        trap.sprung().await;
        let in_flight = scene.in_flight().await;
        mysql.kill().await;
        row.struck("SIGKILL in COMMIT", in_flight);
        drop(trap);
        mysql.start().await;
        sale.sells(30).await;
    }
    sale.ends(&scene, row).await;
}

/// Somebody holds the voucher's row for longer than a statement waits (1205), and then somebody
/// makes the writer the victim of a deadlock (1213). Each time the whole batch is done again.
#[tokio::test]
async fn f21_lock_waits_and_deadlocks() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    // Whoever gives up an order waits for the same row, and would be taken for the writer.
    let sale = scene.selling(20_000, 8).await;
    let shop = sale.process.shop();
    let ledger = scene.ledger().await;
    for (by, reason) in [
        ("the voucher's row is held", "lock_wait"),
        ("a deadlock", "deadlock"),
    ] {
        let meter = format!("seckill_database_retries_total{{reason=\"{reason}\"}}");
        let before = shop.metric(&meter).await;
        let mut row_held = ledger.hold_voucher(sale.voucher).await;
        let piled_up = async || {
            let in_flight = scene.in_flight().await;
            (in_flight >= 20).then_some(in_flight).ok_or(String::new())
        };
        row.struck(by, until("orders pile up", piled_up).await);
        if reason == "deadlock" {
            // Only a writer that has got that far holds what the other one wants.
            until("the writer waits for the voucher's row", async || {
                let waits = ledger.lock_waits().await;
                (waits > 0).then_some(()).ok_or(String::new())
            })
            .await;
            row_held.provoke_deadlock().await;
        }
        until("the batch is to be tried again", async || {
            let now = shop.metric(&meter).await;
            (now > before).then_some(()).ok_or(format!("{now:?}"))
        })
        .await;
        row_held.release().await;
        sale.sells(20).await;
    }
    sale.ends(&scene, row).await;
}

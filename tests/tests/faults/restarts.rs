//! Everything is replaced during a sale, in an orderly way (F31).

use seckill_tests::harness::{HeldWriters, Load, Process};
use seckill_tests::matrix::Row;

use crate::scene::{Sale, Scene, held, sells};

/// With orders in flight, one component after the other is asked to stop (SIGTERM), and is there
/// again: Redis, the database, and each process of the service. Nobody who was told that he has a
/// unit loses it, and nothing is left behind that only those who went would ever acknowledge.
#[tokio::test]
async fn f31_every_component_is_restarted_in_turn() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let Sale {
        process,
        voucher,
        demand,
        load,
    } = scene.busy(20_000, 8).await;
    let servers = scene.site.servers();
    let hold = in_flight(&scene, &mut row, "SIGTERM of Redis").await;
    servers.redis.stop().await;
    hold.release().await;
    servers.redis.start().await;
    sells(&load, 30).await;
    let hold = in_flight(&scene, &mut row, "of the database").await;
    servers.mysql.stop().await;
    // Its lock has gone with the database.
    drop(hold);
    servers.mysql.start().await;
    sells(&load, 30).await;
    let mut running = vec![process, scene.start().await];
    for _ in 0..2 {
        let next = replaced(&scene, &mut row, &load, &mut running).await;
        running.push(next);
        sells(&load, 30).await;
    }
    load.stop().await;
    let verdict = scene.judged(&running[0], &[voucher]).await;
    assert_eq!(scene.pending().await, 0, "of those who went");
    held(&scene, row, &verdict, demand);
}

/// As a load balancer does: first no new calls, then the signal.
async fn replaced(
    scene: &Scene,
    row: &mut Row,
    load: &Load,
    running: &mut Vec<Process>,
) -> Process {
    let next = scene.start().await;
    let old = running.remove(0);
    let shops: Vec<_> = running.iter().chain([&next]).map(Process::shop).collect();
    load.aim_at(&shops);
    let hold = in_flight(scene, row, "of each process").await;
    let (status, _) = old.stop_amid(hold).await;
    assert_eq!(status.code(), Some(0), "{status}");
    next
}

/// Orders in flight, which stay so until the writers are let go on.
async fn in_flight(scene: &Scene, row: &mut Row, by: &str) -> HeldWriters {
    let ledger = scene.ledger().await;
    let held = scene.pile_up(&ledger, 10).await;
    row.struck(by, scene.in_flight().await);
    held
}

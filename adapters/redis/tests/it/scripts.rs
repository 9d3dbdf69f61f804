//! The scripts themselves.

use std::process::Command;

use seckill_domain::Admission;

use crate::stage::{Stage, attempt, granted, pause};

/// Stands for: SCRIPT FLUSH under load (F15).
#[tokio::test]
async fn scripts_that_redis_forgets_are_sent_again() {
    let stage = Stage::selling(400, |_| {}).await;
    let flushes = async {
        for _ in 0..20 {
            stage.raw::<String>("SCRIPT FLUSH").await;
            pause(5).await;
        }
    };
    let buys = async {
        let mut won = 0;
        for n in 1..=400 {
            let admission = stage.buy(n, n, 1).await;
            won += usize::from(matches!(admission, Admission::Granted { .. }));
        }
        won
    };
    let ((), won) = futures::join!(flushes, buys);
    assert_eq!(won, 400);
    assert_eq!(stage.decisions().await.len(), 400);
}

/// Stands for: keys built inside the script, without a common hash tag (hole 17).
#[tokio::test]
async fn one_node_of_a_cluster_runs_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = folder.path().join("nodes.conf");
    let nodes = nodes.to_str().expect("a path");
    let server = ["--cluster-enabled", "yes", "--cluster-config-file", nodes];
    let stage = crate::stage::Server::start(&server).await;
    let client = redis::Client::open(stage.url()).expect("a URL");
    let mut raw = client
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    redis::cmd("CLUSTER")
        .arg(&["ADDSLOTSRANGE", "0", "16383"])
        .query_async::<()>(&mut raw)
        .await
        .expect("all slots");
    for _ in 0..100 {
        let info: String = redis::cmd("CLUSTER")
            .arg("INFO")
            .query_async(&mut raw)
            .await
            .unwrap();
        if info.contains("cluster_state:ok") {
            break;
        }
        pause(50).await;
    }
    let stage = Stage::over(stage, |_| {}).await;
    stage.open(crate::stage::terms(1), 1).await;
    assert_eq!(stage.buy(1, 1, 1).await, granted(1));
    let (admissions, _) = stage.batch(&[attempt(2, 2, 1)]).await;
    assert_eq!(admissions, [Admission::SoldOut]);
}

#[test]
fn luacheck_finds_nothing() {
    let lua = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua");
    let checked = Command::new("luacheck")
        .args([
            "--std",
            "lua51",
            "--globals",
            "redis",
            "KEYS",
            "ARGV",
            "--no-color",
            "--",
        ])
        .arg(lua)
        .output()
        .expect("luacheck runs; it is in the package lua-check");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
}

//! The scripts themselves.

use std::process::Command;
use std::time::Duration;

use seckill_application::ports::{
    EntryId, FollowReply, LeaseOwner, LeaveReply, LoadBegun, LoadStep, LoadToken, StreamReply,
};
use seckill_domain::{
    AdjustmentId, Admission, BuyerId, Claim, Epoch, GateChange, GateUpdate, GateVersion, OrderId,
    Sequence, Timestamp,
};

use crate::stage::{EPOCH, PARTITION, Stage, VOUCHER, attempt, granted, pause};

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
    let mut terms = crate::stage::terms(2);
    terms.waitlist_capacity = 2;
    stage.open(terms, 2).await;
    assert_eq!(stage.buy(1, 1, 1).await, granted(1));
    let attempts: Vec<_> = (2..=5).map(|n| attempt(n, n, 1)).collect();
    let (admissions, _) = stage.batch(&attempts).await;
    assert_eq!(admissions[0], granted(2));
    assert_eq!(admissions[3], Admission::SoldOut);
    every_step_at_the_gate(&stage).await;
    every_step_of_a_worker(&stage).await;
    every_step_of_a_loader(&stage).await;
}

/// Two hold a unit and two wait.
async fn every_step_at_the_gate(stage: &Stage) {
    let gate = &stage.hot.gate;
    let left = gate.leave(VOUCHER, BuyerId::new(4)).await.unwrap();
    assert_eq!(left, LeaveReply::Left(OrderId::new(4)));
    let freed = GateUpdate {
        voucher: VOUCHER,
        version: GateVersion::new(2),
        changes: vec![GateChange::Release {
            order: OrderId::new(1),
            buyer: BuyerId::new(1),
            quantity: 1,
        }],
    };
    let followed = gate.follow(&freed).await.unwrap();
    assert_eq!(followed, FollowReply::Applied { more: false });
    assert!(!gate.promote(VOUCHER).await.unwrap());
    let order = gate.find_order(OrderId::new(3)).await.unwrap();
    assert!(order.is_some_and(|order| order.holds_units), "promoted");
    gate.place(VOUCHER, BuyerId::new(3)).await.unwrap();
    assert!(gate.facts(&[VOUCHER]).await.unwrap()[0].is_some());
    let tally = gate.tally(VOUCHER, EntryId::START).await.unwrap();
    assert_eq!(tally.map(|tally| tally.units_after), Some(3));
    let found = gate.claimants(VOUCHER, &[BuyerId::new(2)]).await.unwrap();
    assert_eq!(found.map(|found| found[0].held.len()), Some(1));
    assert!(gate.holders(VOUCHER, 0).await.unwrap().is_some());
    assert!(gate.waiters(VOUCHER, 0).await.unwrap().is_some());
    gate.withdraw(VOUCHER, 1, AdjustmentId::new(1))
        .await
        .unwrap();
}

async fn every_step_of_a_worker(stage: &Stage) {
    let (stream, second) = (&stage.hot.stream, Duration::from_secs(1));
    let all = stage.entries(EntryId::START).await;
    let read = stream.read_new(PARTITION, EPOCH, "a", 10, Duration::ZERO);
    assert_eq!(read.await.unwrap(), StreamReply::Entries(all.clone()));
    let ids: Vec<EntryId> = all.iter().map(|entry| entry.id).collect();
    let end = *ids.last().expect("entries");
    let taken = stream.take_over(PARTITION, EPOCH, "b");
    assert_eq!(taken.await.unwrap(), ids.len());
    let backlog = stream.backlog(PARTITION).await.unwrap();
    let applied = Sequence::new(backlog.decisions);
    stream.ack(PARTITION, EPOCH, &ids, applied).await.unwrap();
    pause(20).await;
    let trimmed = stream.trim(PARTITION, EPOCH, end, Duration::ZERO).await;
    assert_eq!(trimmed.unwrap(), ids.len());

    let owner = LeaseOwner("a".to_owned());
    let leases = &stage.hot.leases;
    let lease = leases.acquire("x", &owner, second).await.unwrap();
    let lease = lease.expect("a free lease");
    assert!(leases.renew(&lease, second).await.unwrap());
    assert!(leases.release(&lease).await.unwrap());
    let (delays, due) = (&stage.hot.delays, [OrderId::new(3)]);
    let long_ago = Timestamp::from_millis(1);
    delays.schedule(&[(due[0], long_ago)]).await.unwrap();
    assert_eq!(delays.claim_due(10, second).await.unwrap(), due);
    delays.complete(&due).await.unwrap();
}

async fn every_step_of_a_loader(stage: &Stage) {
    let loader = &stage.hot.loader;
    let claim = Claim {
        order: OrderId::new(8),
        voucher: VOUCHER,
        buyer: BuyerId::new(8),
        quantity: 1,
        key: None,
    };
    let claims = std::slice::from_ref(&claim);
    loader.offer(VOUCHER, claims, &[]).await.unwrap();
    let token = LoadToken("a".to_owned());
    let begun = loader.begin_load(VOUCHER, &token, Duration::from_secs(5));
    assert!(matches!(begun.await.unwrap(), LoadBegun::Begun { .. }));
    loader.survivors(VOUCHER, 0).await.unwrap();
    let appended = loader.append_again(VOUCHER, &token, claims, &[]).await;
    assert!(matches!(appended.unwrap(), LoadStep::Done(_)));
    loader.abandon(VOUCHER, &token).await.unwrap();
    loader.unload(VOUCHER).await.unwrap();
    loader.partition(PARTITION).await.unwrap();
    let next = Epoch::new(EPOCH.get() + 1);
    let begun = loader.begin_epoch(PARTITION, next, Sequence::new(20));
    begun.await.unwrap();
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

//! Redis comes back with less than it had acknowledged (F9, F10).

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use seckill_domain::invariants::InvariantId;
use seckill_tests::harness::{Demand, Rule};
use seckill_tests::matrix::Row;

use crate::scene::{Sale, Scene, held_after_a_loss, noticed, until};

/// Fewer bytes than any record has.
const WITHIN_A_RECORD: u64 = 7;

/// The end of the append-only file, which Redis replays at its start.
struct Tail {
    path: PathBuf,
}

impl Tail {
    fn of(scene: &Scene) -> Self {
        let folder = scene.site.servers().redis.folder().join("appendonlydir");
        let files = std::fs::read_dir(&folder).expect("the folder of the file");
        let mut paths = files.map(|file| file.expect("a file").path());
        let is_tail = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
        let path = paths.find(is_tail).expect("the file of the last commands");
        Self { path }
    }

    fn length(&self) -> u64 {
        std::fs::metadata(&self.path).expect("the file").len()
    }

    fn cut_at(&self, length: u64) {
        let file: File = OpenOptions::new()
            .write(true)
            .open(&self.path)
            .expect("the file");
        file.set_len(length).expect("it can be cut");
        file.sync_all().expect("it is cut");
    }
}

/// Redis is killed, loses what `cut` cuts off, and starts. What was lost is of both kinds: orders
/// that the ledger has, and orders that nobody has but the process that answered them.
async fn loses(scene: &Scene, sale: &Sale, row: &mut Row, by: &str, cut: impl FnOnce(&Tail, u64)) {
    let tail = Tail::of(scene);
    let ledger = scene.ledger().await;
    let decided = scene.decided().await;
    let length = tail.length();
    sale.sells(20).await;
    // The ledger has some of what is lost.
    until("the ledger follows", async || {
        let applied = scene.decided().await - scene.in_flight().await;
        let follows = applied > decided;
        follows
            .then_some(())
            .ok_or(format!("{applied} of {decided}"))
    })
    .await;
    let held = scene.pile_up(&ledger, 30).await;
    let shop = sale.process.shop();
    sale.load.calm(true);
    let before = noticed(&shop).await;
    let in_flight = scene.in_flight().await;
    let redis = &scene.site.servers().redis;
    redis.kill().await;
    assert!(tail.length() > length + 1_000, "nothing was written");
    cut(&tail, length);
    redis.start().await;
    row.struck(by, in_flight);
    held.release().await;
    sale.sells(30).await;
    until("the loss is noticed", async || {
        let now = noticed(&shop).await;
        (now > before).then_some(()).ok_or(format!("{now}"))
    })
    .await;
    sale.load.calm(false);
    sale.sells(60).await;
}

/// `everysec`, and the last seconds of the file are gone. The process that answered lives: it offers
/// what it answered to the gate again, and no order is silently lost, nor sold twice.
#[tokio::test]
async fn f09_the_last_seconds_of_the_file_are_lost() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let mut everysec = redis::cmd("CONFIG");
    everysec.arg("SET").arg("appendfsync").arg("everysec");
    scene.gate().await.run::<()>(&everysec).await;
    let sale = scene.contested(8, Demand::of_all_kinds).await;
    let by = "SIGKILL of Redis, and its file is cut to where it was";
    loses(&scene, &sale, &mut row, by, |tail, length| {
        tail.cut_at(length);
    })
    .await;
    let demand = sale.demand;
    let verdict = sale.judged(&scene).await;
    held_after_a_loss(&scene, row, &verdict, demand);
}

/// The file ends in the middle of its last record, which Redis drops at its start.
#[tokio::test]
async fn f10_the_file_ends_in_the_middle_of_a_record() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.busy(5_000, 8).await;
    let by = "SIGKILL of Redis, and its file ends within a record";
    let shop = sale.process.shop();
    let epochs = async || shop.metric("seckill_epochs_begun_total").await;
    let before = epochs().await;
    // A transaction that is not whole is dropped as a whole, and each script call is one. What is
    // lost begins with what the ledger has: the gate's numbers are behind the ledger's.
    loses(&scene, &sale, &mut row, by, |tail, length| {
        tail.cut_at(length + WITHIN_A_RECORD);
    })
    .await;
    until("the partition begins a new epoch", async || {
        let now = epochs().await;
        (now > before).then_some(()).ok_or(format!("{now:?}"))
    })
    .await;
    let demand = sale.demand;
    let verdict = sale.judged(&scene).await;
    held_after_a_loss(&scene, row, &verdict, demand);
}

/// The same, and the process that answered dies as well: what it alone remembered is lost, and
/// nothing else. This is the documented exception, and what shows that the rows above hold by what
/// processes remember.
#[tokio::test]
async fn f09_the_process_dies_with_what_it_answered() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.selling(5_000, 8).await;
    let tail = Tail::of(&scene);
    let ledger = scene.ledger().await;
    let held = scene.pile_up(&ledger, 5).await;
    let length = tail.length();
    sale.sells(30).await;
    let in_flight = scene.in_flight().await;
    let redis = &scene.site.servers().redis;
    redis.kill().await;
    sale.process.kill();
    tail.cut_at(length);
    row.struck(
        "SIGKILL of Redis, whose file is cut, and of the process",
        in_flight,
    );
    held.release().await;
    redis.start().await;
    let next = scene.start().await;
    sale.load.aim_at(&[next.shop()]);
    sale.sells(30).await;
    sale.load.stop().await;
    let verdict = scene.judged(&next, &[sale.voucher]).await;
    let lost = &verdict.violations;
    let silent = Rule::Promise(InvariantId::NoSilentLoss);
    let all_silent = lost.iter().all(|found| found.broken == silent);
    assert!(!lost.is_empty() && all_silent, "{lost:?}");
    row.ended(&format!(
        "{} of {} answers lost",
        lost.len(),
        verdict.granted.len()
    ));
}

//! Redis comes back with less than it had acknowledged (F9, F10).

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use seckill_domain::VoucherId;
use seckill_tests::harness::{Load, Offer, Process, Shop};

use crate::row::Row;
use crate::scene::{Scene, sells, until};

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

struct Sale {
    process: Process,
    voucher: VoucherId,
    load: Load,
}

async fn busy(scene: &Scene) -> Sale {
    let process = scene.start().await;
    let voucher = process.shop().sell(&Offer::of(5_000)).await;
    let load = scene.load(&[&process], voucher, 8);
    sells(&load, 50).await;
    Sale {
        process,
        voucher,
        load,
    }
}

/// Redis is killed, loses what `cut` cuts off, and starts. What was lost is of both kinds: orders
/// that the ledger has, and orders that nobody has but the process that answered them.
async fn loses(scene: &Scene, sale: &Sale, row: &mut Row, by: &str, cut: impl FnOnce(&Tail, u64)) {
    let tail = Tail::of(scene);
    let ledger = scene.ledger().await;
    let length = tail.length();
    sells(&sale.load, 20).await;
    let held = scene.pile_up(&ledger, 30).await;
    let shop = sale.process.shop();
    let before = noticed(&shop).await;
    let in_flight = scene.in_flight().await;
    let redis = &scene.site.servers().redis;
    redis.kill().await;
    assert!(tail.length() > length + 1_000, "nothing was written");
    cut(&tail, length);
    redis.start().await;
    row.struck(by, in_flight);
    held.release().await;
    sells(&sale.load, 30).await;
    until("the loss is noticed", async || {
        let now = noticed(&shop).await;
        (now > before).then_some(()).ok_or(format!("{now}"))
    })
    .await;
    sells(&sale.load, 30).await;
}

/// How often a process noticed that Redis went back, or that it alone knows of an answer. What was
/// lost may be nothing that the ledger had: then the numbers go on, and only answers tell.
async fn noticed(shop: &Shop) -> f64 {
    let epochs = shop.metric("seckill_epochs_begun_total").await;
    let offered = shop.metric("seckill_answers_offered_total").await;
    epochs.expect("a metric") + offered.expect("a metric")
}

/// `everysec`, and the last seconds of the file are gone. The process that answered lives: it offers
/// what it answered to the gate again, and no order is silently lost, nor sold twice.
#[tokio::test]
async fn f09_the_last_seconds_of_the_file_are_lost() {
    let mut row = Row::begin();
    let Some(scene) = Scene::set().await else {
        return row.skipped("only memory was asked for");
    };
    let mut everysec = redis::cmd("CONFIG");
    everysec.arg("SET").arg("appendfsync").arg("everysec");
    scene.gate().await.run::<()>(&everysec).await;
    let sale = busy(&scene).await;
    let by = "SIGKILL of Redis, and its file is cut to where it was";
    loses(&scene, &sale, &mut row, by, |tail, length| {
        tail.cut_at(length);
    })
    .await;
    sale.load.stop().await;
    let verdict = scene.judged(&sale.process, &[sale.voucher]).await;
    row.held(&verdict);
}

/// The file ends in the middle of its last record, which Redis drops at its start.
#[tokio::test]
async fn f10_the_file_ends_in_the_middle_of_a_record() {
    let mut row = Row::begin();
    let Some(scene) = Scene::set().await else {
        return row.skipped("only memory was asked for");
    };
    let sale = busy(&scene).await;
    let by = "SIGKILL of Redis, and its file ends within a record";
    // A transaction that is not whole is dropped as a whole, and each script call is one.
    loses(&scene, &sale, &mut row, by, |tail, length| {
        tail.cut_at(length + (tail.length() - length) / 2);
    })
    .await;
    sale.load.stop().await;
    let verdict = scene.judged(&sale.process, &[sale.voucher]).await;
    row.held(&verdict);
}

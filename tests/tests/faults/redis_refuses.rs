//! Redis answers, and not what was asked for: no memory, no scripts, keys of the wrong type (F15 to
//! F17).

use std::collections::BTreeMap;
use std::time::Duration;

use seckill_domain::VoucherId;
use seckill_tests::harness::{Demand, Offer, Shop, Told, buyer, buyers};
use seckill_tests::matrix::Row;

use crate::scene::{Sale, Scene, held, insist, order_of, put_off, refused, sells};

/// The scripts are thrown out of Redis every 100 ms: whoever calls brings his along.
#[tokio::test]
async fn f15_scripts_are_flushed_ten_times_a_second() {
    const FLUSHES: usize = 30;
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.selling(20_000, 16).await;
    let sold = sale.load.granted();
    let mut in_flight = 0;
    for _ in 0..FLUSHES {
        let gate = scene.gate().await;
        gate.run::<()>(redis::cmd("SCRIPT").arg("FLUSH")).await;
        in_flight = gate.in_flight().await.max(in_flight);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let sold = sale.load.granted() - sold;
    assert!(sold > FLUSHES, "{sold} orders between {FLUSHES} flushes");
    row.struck("SCRIPT FLUSH, thirty times", in_flight);
    let events = scene.history.events();
    let lost = events.iter().filter(|event| event.told == Told::Nothing);
    let failed = put_off(&events) + lost.count();
    // A thousandth at most.
    assert!(
        failed * 1_000 <= events.len(),
        "{failed} of {}",
        events.len()
    );
    sale.ends(&scene, row).await;
}

/// Everything that the gate keeps of a voucher and its partition, as it is stored.
async fn contents(scene: &Scene, but: &str) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for name in scene.gate().await.keys().await.into_keys() {
        let is_kept = name.contains(":v") || name.ends_with(":meta") || name.contains(":stream:");
        if is_kept && name != but {
            let dump: Vec<u8> = scene.gate().await.run(redis::cmd("DUMP").arg(&name)).await;
            contents.insert(name, dump);
        }
    }
    contents
}

async fn one_key_becomes_a_text(
    scene: &Scene,
    shop: &Shop,
    voucher: VoucherId,
    key: &str,
    row: &mut Row,
) {
    let ledger = scene.ledger().await;
    let held = ledger.hold_writers().await;
    let people = buyers(5);
    let mut sold = Vec::new();
    for who in &people {
        sold.push((*who, shop.buy(voucher, *who).await.expect_granted()));
    }
    let last = key.rsplit(':').next().unwrap_or(key);
    // The name of a stream ends with its epoch.
    let is_stream = last.bytes().all(|byte| byte.is_ascii_digit());
    let what = if is_stream { "stream" } else { last };
    row.struck(
        &format!("a text in the place of {what}"),
        scene.in_flight().await,
    );
    scene
        .gate()
        .await
        .run::<()>(redis::cmd("SET").arg(key).arg("x"))
        .await;
    held.release().await;
    // Whoever holds a unit is told so, and whoever comes gets one: from a gate that was rebuilt.
    for (who, order) in sold {
        assert_eq!(
            order_of(&insist(shop, voucher, who, None).await),
            order,
            "{key}"
        );
    }
    let who = buyer();
    let order = insist(shop, voucher, who, None).await.expect_granted();
    shop.settled(order, who).await;
}

/// Each key of a voucher and its partition in turn has a value of the wrong type, with orders in
/// flight: nothing is half done, and the sale goes on.
#[tokio::test]
async fn f16_keys_of_the_wrong_type() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let process = scene.start().await;
    let shop = scene.shop(&process);
    let voucher = shop.sell(&Offer::of(200)).await;
    shop.buy_settled(voucher, buyer()).await;
    let [sale, holders] = scene
        .gate()
        .await
        .keys_of(voucher, ["sale", "holders"])
        .await;
    let keys = scene.gate().await.keys().await;
    let meta = keys.keys().find(|name| name.ends_with(":meta"));
    let meta = meta.expect("the partition's books").clone();
    for key in [sale, holders, meta] {
        one_key_becomes_a_text(&scene, &shop, voucher, &key, &mut row).await;
    }
    let stream = scene.gate().await.keys_of_type("stream").await.remove(0);
    one_key_becomes_a_text(&scene, &shop, voucher, &stream, &mut row).await;
    let verdict = scene.judged(&process, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 1 + 4 * 6);
    row.held(&verdict);
}

/// No memory for anything more, mid-sale. Nothing is half done: what was refused changed nothing.
#[tokio::test]
async fn f17_memory_is_used_up() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let Sale {
        process,
        voucher,
        load,
        ..
    } = scene.selling(20_000, 8).await;
    let ledger = scene.ledger().await;
    let stalled = scene.pile_up(&ledger, 20).await;
    row.struck("maxmemory", scene.in_flight().await);
    set_maxmemory(&scene, "1mb").await;
    refused(&scene.history).await;
    // With everybody gone, whoever comes is refused, and nothing at all is changed by it.
    load.stop().await;
    let before = contents(&scene, "").await;
    let answer = process.shop().buy(voucher, buyer()).await;
    assert_eq!(answer.code(), "unavailable", "{answer:?}");
    assert_eq!(contents(&scene, "").await, before);
    stalled.release().await;
    set_maxmemory(&scene, "0").await;
    let demand = Demand::of(voucher).of_all_kinds();
    let load = scene.load_of(&[&process], demand, 8);
    sells(&load, 70).await;
    load.stop().await;
    let verdict = scene.judged(&process, &[voucher]).await;
    held(&scene, row, &verdict, demand);
}

async fn set_maxmemory(scene: &Scene, bytes: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory").arg(bytes);
    scene.gate().await.run::<()>(&set).await;
}

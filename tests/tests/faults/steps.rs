//! A process dies, sleeps, or hears nothing, just between two steps of an order's way (F1 to F7).

use std::time::Duration;

use futures::future::join_all;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{Fate, Ledger, Offer, Process, Shop, buyer, buyers};

use crate::scene::{LEASE, Scene, insist, order_of, until};

/// A process that has sold one unit: its scripts are loaded, and its statements prepared.
async fn in_business(scene: &Scene) -> (Process, Shop, VoucherId) {
    let process = scene.start().await;
    let shop = scene.shop(&process);
    let voucher = shop.sell(&Offer::of(20)).await;
    shop.buy_settled(voucher, buyer()).await;
    scene.drained().await;
    (process, shop, voucher)
}

async fn has(ledger: &Ledger, voucher: VoucherId, order: OrderId) -> bool {
    ledger.orders(voucher).await.contains_key(&order)
}

/// SIGKILL after the script has decided and before anybody was told. Whoever asks again, with a key
/// or without, gets the order that was decided then, and no second unit.
#[tokio::test]
async fn f01_killed_between_script_and_answer() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let (mut process, mut shop, voucher) = in_business(&scene).await;
    let ledger = scene.ledger().await;
    for key in [None, Some("once")] {
        let who = buyer();
        let held = ledger.hold_writers().await;
        let trap = scene.redis.trap(&[&who.to_string()], Fate::Unanswered);
        let asking = {
            let shop = shop.clone();
            tokio::spawn(async move { shop.try_buy(voucher, who, 1, key).await })
        };
        trap.sprung().await;
        row.struck(
            "SIGKILL, the script's reply being swallowed",
            scene.in_flight().await,
        );
        process.kill();
        let told = asking.await.unwrap();
        assert!(told.is_err(), "{told:?}");
        held.release().await;
        process = scene.start().await;
        shop = scene.shop(&process);
        let first = order_of(&insist(&shop, voucher, who, key).await);
        let again = order_of(&insist(&shop, voucher, who, key).await);
        assert_eq!(first, again);
    }
    let verdict = scene.judged(&process, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 3);
    row.held(&verdict);
}

/// The script's reply is swallowed, and five more clicks of the same buyer come while the first is
/// still waited for: one order, one unit, whatever each of them is told.
#[tokio::test]
async fn f02_swallowed_reply_and_five_retries_at_once() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let scene = scene.with("SECKILL_REDIS_TIMEOUT_MS", "500");
    let (process, shop, voucher) = in_business(&scene).await;
    let ledger = scene.ledger().await;
    for key in [None, Some("once")] {
        let who = buyer();
        let held = ledger.hold_writers().await;
        let trap = scene.redis.trap(&[&who.to_string()], Fate::Unanswered);
        let first = {
            let shop = shop.clone();
            tokio::spawn(async move { insist(&shop, voucher, who, key).await })
        };
        trap.sprung().await;
        row.struck("the script's reply is swallowed", scene.in_flight().await);
        let retries = (0..5).map(|_| insist(&shop, voucher, who, key));
        let mut answers = join_all(retries).await;
        answers.push(first.await.unwrap());
        held.release().await;
        let orders: Vec<OrderId> = answers.iter().map(order_of).collect();
        assert!(
            orders.iter().all(|order| *order == orders[0]),
            "{answers:?}"
        );
    }
    let verdict = scene.judged(&process, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 3);
    row.held(&verdict);
}

/// SIGKILL of the writer with entries delivered to it and nothing begun in the ledger: another one
/// takes them over as soon as the lease is free.
#[tokio::test]
async fn f03_killed_between_read_and_begin() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let (process, shop, voucher) = in_business(&scene).await;
    // It has no lease, and wants one.
    let next = scene.start().await;
    let ledger = scene.ledger().await;
    scene.mysql.hold();
    let who = buyer();
    let order = shop.buy(voucher, who).await.expect_granted();
    until("the entry is delivered", async || {
        let pending = scene.pending().await;
        (pending > 0).then_some(()).ok_or(String::new())
    })
    .await;
    assert!(!has(&ledger, voucher, order).await);
    row.struck("SIGKILL after XREADGROUP", scene.pending().await);
    process.kill();
    let died = scene.history.now();
    scene.mysql.cut();
    scene.mysql.release();
    scene.shop(&next).settled(order, who).await;
    let taken_over = scene.history.now().saturating_sub(died);
    assert!(
        taken_over <= LEASE + Duration::from_secs(3),
        "{taken_over:?}"
    );
    let verdict = scene.judged(&next, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 2);
    row.held(&verdict);
}

/// The transaction of a batch is complete but for its commit.
#[tokio::test]
async fn f04_killed_between_insert_and_commit() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let (process, shop, voucher) = in_business(&scene).await;
    let ledger = scene.ledger().await;
    let who = buyer();
    let trap = scene.mysql.trap(&[&who.to_string(), "COMMIT"], Fate::Held);
    let order = shop.buy(voucher, who).await.expect_granted();
    trap.sprung().await;
    assert!(!has(&ledger, voucher, order).await, "it is visible");
    row.struck("SIGKILL before COMMIT", scene.in_flight().await);
    process.kill();
    scene.mysql.cut();
    let next = scene.start().await;
    scene.shop(&next).settled(order, who).await;
    let verdict = scene.judged(&next, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 2);
    row.held(&verdict);
}

/// A process hears nothing of its commit, and goes on by itself.
#[tokio::test]
async fn f05_commit_answered_into_nowhere() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let scene = scene.with("SECKILL_LEDGER_TIMEOUT_MS", "500");
    let (process, shop, voucher) = in_business(&scene).await;
    let ledger = scene.ledger().await;
    // Nothing is heard; the reply breaks off; and the server seems to have said its last word, while
    // it still hears.
    let ways = [
        (Fate::Unanswered, false),
        (Fate::Broken { after: 3 }, false),
        (Fate::Unanswered, true),
    ];
    for (fate, half_closed) in ways {
        let who = buyer();
        let trap = scene.mysql.trap(&[&who.to_string(), "COMMIT"], fate);
        let order = shop.buy(voucher, who).await.expect_granted();
        trap.sprung().await;
        assert!(has(&ledger, voucher, order).await, "it was not committed");
        row.struck("the reply to COMMIT is swallowed", scene.pending().await);
        if half_closed {
            scene.mysql.half_close();
            row.struck("the connections are half closed", scene.pending().await);
        }
        scene.drained().await;
        shop.buy_settled(voucher, buyer()).await;
    }
    let retries = shop.metric("seckill_ledger_retries_total").await;
    assert!(retries >= Some(3.0), "{retries:?}");
    let verdict = scene.judged(&process, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 7);
    row.held(&verdict);
}

/// SIGKILL between commit and acknowledgement: the next writer acknowledges what it need not apply.
#[tokio::test]
async fn f06_killed_between_commit_and_acknowledgement() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let (process, shop, voucher) = in_business(&scene).await;
    let ledger = scene.ledger().await;
    let who = buyer();
    let trap = scene
        .mysql
        .trap(&[&who.to_string(), "COMMIT"], Fate::Unanswered);
    let order = shop.buy(voucher, who).await.expect_granted();
    trap.sprung().await;
    assert!(has(&ledger, voucher, order).await, "it was not committed");
    row.struck("SIGKILL after COMMIT", scene.pending().await);
    process.kill();
    let next = scene.start().await;
    let verdict = scene.judged(&next, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 2);
    row.held(&verdict);
}

/// A writer is paused for three times as long as its lease lasts, just before it writes. Its
/// successor has written the batch when it comes back and goes on with its own transaction.
#[tokio::test]
async fn f07_paused_beyond_its_lease_and_overtaken() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    // The pause must not be cut short by the writer's own deadline for a statement.
    let scene = scene.with("SECKILL_LEDGER_TIMEOUT_MS", "30000");
    let first = scene.start().await;
    let shop = scene.shop(&first);
    let voucher = shop.sell(&Offer::of(50)).await;
    let warm = buyer();
    let trap = scene
        .mysql
        .trap(&[&warm.to_string(), "COMMIT", "BEGIN"], Fate::Held);
    shop.buy_settled(voucher, warm).await;
    let sold: Vec<(BuyerId, OrderId)> = {
        let buy = async |who| (who, shop.buy(voucher, who).await.expect_granted());
        join_all(buyers(10).into_iter().map(buy)).await
    };
    trap.sprung().await;
    let second = scene.start().await;
    row.struck(
        "SIGSTOP before the batch is written",
        scene.in_flight().await,
    );
    first.freeze();
    let frozen = tokio::time::Instant::now();
    let watched = scene.shop(&second);
    for (who, order) in &sold {
        let seen = watched.settled(*order, *who).await;
        assert_eq!(seen.order_status(), OrderStatus::PendingPayment);
    }
    tokio::time::sleep_until(frozen + 3 * LEASE).await;
    assert!(!first.log().contains("took over"), "it was not the writer");
    first.thaw();
    trap.release();
    until("the first one sees that it was overtaken", async || {
        let seen = first.log().contains("another writer took over");
        seen.then_some(()).ok_or(String::new())
    })
    .await;
    shop.buy_settled(voucher, buyer()).await;
    let verdict = scene.judged(&first, &[voucher]).await;
    assert_eq!(verdict.live_orders(voucher), 12);
    row.held(&verdict);
}

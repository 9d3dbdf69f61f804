//! A unit comes back and is somebody else's: whoever was to say so dies, or the next in line may not
//! have it (F24, F25).

use std::collections::BTreeSet;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::controls::PARTITIONS;
use seckill_tests::harness::{Fate, GateFacts, Offer, Process, Proxy, Shop, buyer};

use crate::scene::{Scene, until};

/// Long enough to pay for what one was given just now, on a busy machine.
const WINDOW_S: u32 = 5;

/// A process with a way of its own to Redis.
struct Node {
    process: Process,
    way: Proxy,
}

impl Node {
    async fn start(scene: &Scene) -> Self {
        let way = scene.site.proxy_to_redis().await;
        let process = scene.site.start_with_redis_behind(&way).await;
        Self { process, way }
    }

    /// How many orders it has expired. It may not have got to say so yet.
    async fn expired(&self) -> f64 {
        let shop = self.process.shop();
        let expired = shop.metric("seckill_orders_expired_total").await;
        expired.expect("a metric")
    }
}

/// One unit that somebody has, and two who wait for it.
struct Line {
    voucher: VoucherId,
    holder: (BuyerId, OrderId),
    first: (BuyerId, OrderId),
    second: (BuyerId, OrderId),
}

impl Line {
    async fn of(shop: &Shop, offer: &Offer) -> Self {
        let voucher = shop.sell(offer).await;
        let [holder, first, second] = [buyer(), buyer(), buyer()];
        let held = shop.buy_settled(voucher, holder).await;
        let (one, _) = shop.buy(voucher, first).await.expect_waitlisted();
        let (other, _) = shop.buy(voucher, second).await.expect_waitlisted();
        Self {
            voucher,
            holder: (holder, held),
            first: (first, one),
            second: (second, other),
        }
    }

    async fn at_the_gate(&self, scene: &Scene) -> GateFacts {
        let facts = scene.gate().await.facts(self.voucher).await;
        facts.expect("the sale is at the gate")
    }

    /// Who holds the unit at the gate.
    async fn holders(&self, scene: &Scene) -> Vec<BuyerId> {
        let facts = self.at_the_gate(scene).await;
        facts.holders.into_keys().collect()
    }
}

/// Waits until somebody's turn has come, and the ledger knows.
async fn served(shop: &Shop, (who, order): (BuyerId, OrderId)) {
    let before = [OrderStatus::Waiting, OrderStatus::Queued];
    let seen = shop.order_past(order, who, &before).await;
    assert_eq!(seen.order_status(), OrderStatus::PendingPayment);
}

/// SIGKILL of the process whose sweep has committed an expiry, with its call to the gate on the way:
/// not arrived yet, or done and not answered. The other process has the same update in its hands just
/// then, so that it is relayed twice, by two nodes: the unit comes back once, and the head of the
/// line has it.
#[tokio::test]
async fn f24_killed_between_an_expiry_and_its_relay() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let scene = scene
        .with("SECKILL_EXPIRY", "sweep")
        // Nobody gives up what is held, and calls again.
        .with("SECKILL_REDIS_TIMEOUT_MS", "20000");
    let mut nodes = [Node::start(&scene).await, Node::start(&scene).await];
    let ledger = scene.ledger().await;
    let mut vouchers = Vec::new();
    for (fate, by) in [
        (Fate::Held, "SIGKILL before the gate is told"),
        (Fate::Unanswered, "SIGKILL before the gate has answered"),
    ] {
        let offer = Offer::of(1).waitlist(5).payment_window_s(WINDOW_S);
        let line = Line::of(&scene.shop(&nodes[0].process), &offer).await;
        let (holder, held) = line.holder;
        let update = format!("release {held} {holder} ");
        let traps = nodes.each_ref().map(|node| node.way.trap(&[&update], fate));
        let before = [nodes[0].expired().await, nodes[1].expired().await];
        for trap in &traps {
            trap.sprung().await;
        }
        let orders = ledger.orders(line.voucher).await;
        assert_eq!(orders[&held].status, OrderStatus::Expired, "not committed");
        let has_it = match fate {
            Fate::Held => holder,
            _ => line.first.0,
        };
        assert_eq!(line.holders(&scene).await, [has_it], "the gate, {fate:?}");
        row.struck(by, ledger.untold(line.voucher).await.updates);
        let swept = usize::from(nodes[1].expired().await > before[1]);
        assert!(nodes[swept].expired().await > before[swept], "nobody has");
        nodes[swept].process.kill();
        // What it had on the way is gone with it; what the other one has arrives.
        nodes[swept].way.cut();
        let other = &nodes[1 - swept];
        if fate == Fate::Unanswered {
            other.way.cut();
        }
        drop(traps);
        let shop = scene.shop(&other.process);
        served(&shop, line.first).await;
        let (first, order) = line.first;
        shop.pay(order, first, "p-1").await.assert_status(200);
        let facts = line.at_the_gate(&scene).await;
        let holders: BTreeSet<BuyerId> = facts.holders.into_keys().collect();
        assert_eq!((facts.free, holders), (0, [first].into()));
        assert_eq!(facts.waiters, [line.second]);
        vouchers.push(line.voucher);
        nodes[swept] = Node::start(&scene).await;
    }
    row.held(&scene.judged(&nodes[0].process, &vouchers).await);
}

/// The head of the line has bought elsewhere, at another gate of the same ledger, when the unit is
/// his: the ledger gives nobody two, says so, and the unit is the next one's.
#[tokio::test]
async fn f25_the_head_has_bought_elsewhere() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let process = scene.start().await;
    let shop = scene.shop(&process);
    let line = Line::of(&shop, &Offer::of(1).waitlist(5)).await;
    scene.drained().await;
    let ledger = scene.ledger().await;
    let (first, promised) = line.first;
    let held = ledger.hold_writers().await;
    // Lower than every id that is drawn.
    let elsewhere = OrderId::new(4_711);
    let decision = format!("granted {} {elsewhere} {first} 1 -", line.voucher);
    let gate = scene.gate().await;
    let partition = PARTITIONS.of(line.voucher);
    gate.decide(partition, &decision).await;
    let (holder, bought) = line.holder;
    shop.cancel(bought, holder).await.assert_status(200);
    until("his turn comes", async || {
        let holders = line.holders(&scene).await;
        (holders == [first])
            .then_some(())
            .ok_or(format!("{holders:?}"))
    })
    .await;
    row.struck("the head has bought elsewhere", scene.in_flight().await);
    held.release().await;
    let unsettled = [OrderStatus::Waiting, OrderStatus::Queued];
    let seen = shop.order_past(promised, first, &unsettled).await;
    assert_eq!(seen.order_status(), OrderStatus::Rejected, "{}", seen.text);
    // He gives up what he bought there, and has had his turn: the next one has his.
    served(&shop, (first, elsewhere)).await;
    shop.cancel(elsewhere, first).await.assert_status(200);
    served(&shop, line.second).await;
    let verdict = scene.judged(&process, &[line.voucher]).await;
    assert_eq!(verdict.live_orders(line.voucher), 1);
    row.held_with_rejections(&verdict);
}

//! A replica of Redis that lags behind is promoted, and the old primary comes back (F13, F14).
//!
//! A Sentinel promotes, or the test (`REPLICAOF NO ONE`); the processes are led to the new primary as a
//! name or a virtual address leads them: the service takes the address of one Redis.

use std::time::Duration;

use seckill_tests::harness::{Demand, Gate, Offer, Proxy, Purchase, Told, Weather, buyers, crowd};
use seckill_tests::matrix::Row;
use seckill_tests::stack::LocalServer;

use crate::scene::{
    Sale, Scene, decided, held_after_a_loss, insist, noticed, offered, put_off, sells, until,
};

/// How far the replica is behind.
const BEHIND: Duration = Duration::from_millis(500);

/// A replica of the scene's Redis, behind a slow link.
struct Replica {
    server: LocalServer,
    link: Proxy,
}

impl Replica {
    async fn of(scene: &Scene) -> Self {
        let server = scene.site.servers().another_redis().await;
        let link = scene.site.proxy_to_redis().await;
        let replica = Self { server, link };
        replica.follow(scene, replica.link.port()).await;
        replica.link.weather(Weather::far(BEHIND));
        replica
    }

    async fn gate(&self, scene: &Scene) -> Gate {
        scene.site.gate_at(self.server.port()).await
    }

    async fn follow(&self, scene: &Scene, port: u16) {
        let gate = scene.site.gate_at(self.server.port()).await;
        follow(&gate, port).await;
    }

    /// It is cut off from its primary, with what is on the way to it, and takes its place.
    async fn promote(&self, scene: &Scene) {
        self.link.hold();
        let mut alone = redis::cmd("REPLICAOF");
        alone.arg("NO").arg("ONE");
        self.gate(scene).await.run::<()>(&alone).await;
        self.link.cut();
    }
}

/// Has a server follow another, and waits until it does.
async fn follow(gate: &Gate, port: u16) {
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(port);
    gate.run::<()>(&follow).await;
    until("the replica follows", async || {
        let info: String = gate.run(redis::cmd("INFO").arg("replication")).await;
        let up = info.contains("master_link_status:up");
        up.then_some(()).ok_or(info)
    })
    .await;
}

/// What was decided last is not on the new primary: some of it the ledger has, some of it only the
/// process that answered.
#[tokio::test]
async fn f13_a_replica_that_is_behind_is_promoted() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.contested(8, Demand::of_all_kinds).await;
    let replica = Replica::of(&scene).await;
    sale.sells(50).await;
    let ledger = scene.ledger().await;
    let before = noticed(&sale.process.shop()).await;
    // However long the next steps take: from here on nothing reaches it.
    replica.link.hold();
    sale.sells(5).await;
    let held = scene.pile_up(&ledger, 20).await;
    let in_flight = scene.in_flight().await;
    sale.load.calm(true);
    replica.promote(&scene).await;
    let lost = decided(&scene.gate().await).await - decided(&replica.gate(&scene).await).await;
    row.struck("a replica that is behind is promoted", in_flight.min(lost));
    scene.redis.aim_at(replica.server.port());
    assert!(scene.redis.cut() > 0, "nobody was connected");
    held.release().await;
    goes_on(sale, &scene, &replica, before, row).await;
}

/// The gate is loaded again, and the sale goes on with a new primary.
async fn goes_on(sale: Sale, scene: &Scene, replica: &Replica, before: f64, row: Row) {
    let shop = sale.process.shop();
    until("the loss is noticed", async || {
        let now = noticed(&shop).await;
        (now > before).then_some(()).ok_or(format!("{now}"))
    })
    .await;
    sale.load.calm(false);
    sale.sells(60).await;
    sale.load.stop().await;
    let (new, vouchers) = (replica.server.port(), sale.demand.vouchers());
    let verdict = scene.judged_at(&sale.process, &vouchers, new).await;
    held_after_a_loss(scene, row, &verdict, sale.demand);
}

/// The same without the test's help: the primary dies, and a Sentinel promotes the replica and tells
/// where it is, as it tells those who lead clients to a name or an address.
#[tokio::test]
async fn f13_a_sentinel_promotes_a_replica_that_is_behind() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.contested(8, Demand::of_all_kinds).await;
    let replica = Replica::of(&scene).await;
    // It sees the primary where the replica sees it: at the other end of a slow link.
    let servers = scene.site.servers();
    let sentinel = servers.sentinel(replica.link.port(), 2 * BEHIND).await;
    let watching = scene.site.gate_at(sentinel.port()).await;
    until("the Sentinel knows the replica", async || {
        let mut ask = redis::cmd("SENTINEL");
        let known: Vec<redis::Value> = watching.run(ask.arg("REPLICAS").arg("gate")).await;
        (known.len() == 1).then_some(()).ok_or(format!("{known:?}"))
    })
    .await;
    sale.sells(50).await;
    let ledger = scene.ledger().await;
    let before = noticed(&sale.process.shop()).await;
    let held = scene.pile_up(&ledger, 20).await;
    let in_flight = scene.in_flight().await;
    let lost = decided(&scene.gate().await).await - decided(&replica.gate(&scene).await).await;
    sale.load.calm(true);
    replica.link.hold();
    servers.redis.kill().await;
    replica.link.cut();
    row.struck(
        "SIGKILL of the primary, under a Sentinel",
        in_flight.min(lost),
    );
    let told = sentinel.folder().join("promoted");
    let promoted: u16 = until("the Sentinel has promoted it", async || {
        let port = std::fs::read_to_string(&told).map_err(|error| error.to_string())?;
        port.trim().parse().map_err(|_| port)
    })
    .await;
    assert_eq!(promoted, replica.server.port());
    scene.redis.aim_at(promoted);
    scene.redis.cut();
    held.release().await;
    goes_on(sale, &scene, &replica, before, row).await;
}

/// A partition of the network: one process and a promoted replica on one side, the old primary and
/// another process on the other. Both sell. Then the old primary is made a replica, and refuses
/// whoever still writes to it; and then everybody is led to the new one.
#[tokio::test]
async fn f14_the_old_primary_is_back_and_is_still_written_to() {
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let sale = scene.selling(5_000, 8).await;
    // The one that goes on with the old primary has a way of its own to it.
    let old_way = scene.site.proxy_to_redis().await;
    let behind = scene.site.start_with_redis_behind(&old_way).await;
    let old_load = scene.load(&[&behind], sale.voucher, 8);
    let replica = Replica::of(&scene).await;
    sale.sells(50).await;
    let in_flight = decided(&scene.gate().await).await - decided(&replica.gate(&scene).await).await;
    replica.promote(&scene).await;
    scene.redis.aim_at(replica.server.port());
    scene.redis.cut();
    row.struck("a partition with a primary on each side", in_flight);
    let old = scene.gate().await;
    sale.sells(50).await;
    sale.load.stop().await;

    // The old one comes back as a replica, and is still written to.
    follow(&old, replica.server.port()).await;
    let since = scene.history.now();
    until("whoever writes to a replica is refused", async || {
        let events = scene.history.events();
        let refused = put_off(events.iter().filter(|event| event.begun > since));
        (refused >= 10).then_some(()).ok_or(format!("{refused}"))
    })
    .await;
    let events = scene.history.events();
    let granted = events.iter().filter(|event| {
        let is_grant = matches!(&event.told, Told::Purchase(told) if told.granted().is_some());
        event.begun > since && is_grant
    });
    assert_eq!(granted.count(), 0, "a replica has accepted orders");
    old_way.aim_at(replica.server.port());
    old_way.cut();
    sells(&old_load, 50).await;
    old_load.stop().await;
    let new = replica.server.port();
    let verdict = scene.judged_at(&sale.process, &[sale.voucher], new).await;
    row.held_with_rejections(&verdict);
}

/// The same with the last units, which both sides sell: the ledger gives each of them to one buyer,
/// and tells the others why they have none.
#[tokio::test]
async fn f14_both_sides_sell_the_last_units() {
    const UNITS: u32 = 60;
    const SOLD: usize = 20;
    let Some((mut row, scene)) = Scene::begin().await else {
        return;
    };
    let process = scene.start().await;
    let here = scene.shop(&process);
    let voucher = here.sell(&Offer::of(UNITS)).await;
    let old_way = scene.site.proxy_to_redis().await;
    let behind = scene.site.start_with_redis_behind(&old_way).await;
    let there = scene.shop(&behind);
    let replica = Replica::of(&scene).await;
    crowd(buyers(SOLD), 8, |who| insist(&here, voucher, who, None)).await;
    scene.drained().await;
    let (old, new) = (scene.gate().await, replica.gate(&scene).await);
    until("the replica has what was sold", async || {
        let (old, new) = (decided(&old).await, decided(&new).await);
        (old == new).then_some(()).ok_or(format!("{new} of {old}"))
    })
    .await;
    replica.promote(&scene).await;
    scene.redis.aim_at(replica.server.port());
    scene.redis.cut();
    let rush = buyers(2 * UNITS as usize);
    let (some, others) = rush.split_at(UNITS as usize);
    let (some, others) = tokio::join!(
        crowd(some.to_vec(), 8, |who| insist(&here, voucher, who, None)),
        crowd(others.to_vec(), 8, |who| insist(&there, voucher, who, None)),
    );
    let granted = |answers: &[Purchase]| answers.iter().filter_map(Purchase::granted).count();
    let both = granted(&some).min(granted(&others));
    row.struck("a primary on each side sells the last units", both);
    follow(&old, replica.server.port()).await;
    old_way.aim_at(replica.server.port());
    old_way.cut();
    // Whatever only a process remembers is offered to the gate that there is now.
    offered(&behind).await;
    // Nothing is lost either: what was promised twice and taken back once is sold after all.
    crowd(buyers(UNITS as usize), 8, |who| {
        insist(&here, voucher, who, None)
    })
    .await;
    let new = replica.server.port();
    let verdict = scene.judged_at(&process, &[voucher], new).await;
    assert_eq!(verdict.live_orders(voucher), UNITS as usize);
    row.held_with_rejections(&verdict);
}

//! Differences between gate and ledger, planted from outside in a service that runs: each is found
//! by a round that is asked for, mended and reported, and the next round finds nothing.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Call, Gate, Ledger, Offer, Process, Shop, Site, audit, buyer, eventually,
};

use crate::on_own_stores;
use crate::reports::{Difference, Report, begin, first_round, listed, round, round_about};

on_own_stores!(
    a_message_that_hangs_is_delivered,
    a_message_that_is_gone_is_appended_again,
    a_holder_that_is_gone_is_restored,
    units_that_were_not_released_are_released_again,
    free_units_that_are_off_are_counted_again,
    several_errors_are_mended_together,
    what_the_gate_notices_by_itself_is_told,
    a_gate_that_is_ahead_is_loaded_again,
);

/// A service with one sale.
struct Scene {
    process: Process,
    shop: Shop,
    gate: Gate,
    ledger: Ledger,
    voucher: VoucherId,
}

impl Scene {
    async fn of(site: &Site, offer: Offer) -> Self {
        let process = site.start().await;
        let shop = process.shop();
        first_round(&shop).await;
        Self {
            voucher: shop.sell(&offer).await,
            gate: site.gate().await,
            ledger: site.ledger().await,
            process,
            shop,
        }
    }

    async fn free(&self) -> i64 {
        let seen = self.shop.voucher(self.voucher).await;
        seen.number("available_units")
    }

    /// The round that is asked for finds just this and mends it; it is listed with all terms; and
    /// the round after it finds nothing.
    async fn assert_mends(&self, order: OrderId, kind: &str) -> Report {
        let report = round(&self.shop, false).await;
        let found = report.of(self.voucher);
        assert_eq!(found.differences, [repaired(order, kind)]);
        assert_eq!((report.difference_count, report.repair_count), (1, 1));
        self.assert_mended().await;
        report
    }

    /// The round after finds nothing, and every promise holds.
    async fn assert_mended(&self) {
        let after = round_about(&self.shop, self.voucher).await;
        after.of(self.voucher).assert_sound();
        assert_eq!(after.repair_count, 0);
        let listed = listed(&self.shop).await;
        let last = listed.last().expect("the one after");
        assert_eq!(last.id, after.id, "the newest one");
        let balance = self.shop.balanced(self.voucher).await;
        assert_eq!(last.of(self.voucher).tally, balance.tally);
        let (shop, vouchers) = (&self.shop, [self.voucher]);
        let verdict = audit(shop, shop.history(), &vouchers, Some(&self.ledger)).await;
        verdict.assert_holds().assert_none_rejected();
        let log = self.process.log();
        assert!(
            log.contains("differ") || log.contains("is off"),
            "it is logged"
        );
    }

    /// Waits until a writer that cannot write has read what stands, and so reads nothing that comes
    /// after it.
    async fn writer_has_it(&self) {
        eventually("the writer has it", Duration::from_secs(10), async || {
            let stream = self.gate.keys_of_type("stream").await.remove(0);
            let groups = self.gate.groups(&stream).await;
            let read = groups.iter().any(|group| group.pending > 0);
            read.then_some(()).ok_or(format!("{groups:?}"))
        })
        .await;
    }

    async fn click_again(&self, who: BuyerId, order: OrderId) {
        let again = self.shop.buy(self.voucher, who).await;
        assert_eq!(again.expect_already_held(), order);
    }
}

fn repaired(order: OrderId, kind: &str) -> Difference {
    Difference {
        order,
        kind: kind.to_owned(),
        repaired: true,
    }
}

/// The gate gave two units; one message is with a writer that cannot write, and the other with a
/// consumer that does nothing.
async fn a_message_that_hangs_is_delivered(site: Site) {
    let scene = Scene::of(&site, Offer::of(10)).await;
    let Scene { shop, voucher, .. } = &scene;
    shop.buy_settled(*voucher, buyer()).await;
    let held = scene.ledger.hold_writers().await;
    let [one, other] = [buyer(), buyer()];
    let first = shop.buy(*voucher, one).await.expect_granted();
    scene.writer_has_it().await;
    let second = shop.buy(*voucher, other).await.expect_granted();
    assert_eq!(scene.gate.hang("ghost").await, 1);
    assert!(begin(shop).await, "it may take longer than a request");
    let found = eventually("it is reported", Duration::from_secs(30), async || {
        let last = listed(shop).await.pop().expect("a report");
        (last.difference_count == 2)
            .then_some(last)
            .ok_or(String::new())
    })
    .await;
    let expected = [first, second].map(|order| Difference {
        repaired: false,
        ..repaired(order, "not_delivered")
    });
    assert_eq!(found.of(*voucher).differences, expected);
    assert_eq!(found.repair_count, 0, "they stand, and will be delivered");
    held.release().await;
    for (who, order) in [(one, first), (other, second)] {
        let seen = shop.settled(order, who).await;
        assert_eq!(seen.word("status"), "pending_payment");
    }
    assert_eq!(scene.free().await, 7);
    scene.assert_mended().await;
}

/// The gate gave a unit, and somebody deletes the message before the ledger has it.
async fn a_message_that_is_gone_is_appended_again(site: Site) {
    let scene = Scene::of(&site, Offer::of(10)).await;
    let Scene { shop, voucher, .. } = &scene;
    shop.buy_settled(*voucher, buyer()).await;
    let held = scene.ledger.hold_writers().await;
    let [one, other] = [buyer(), buyer()];
    let first = shop.buy(*voucher, one).await.expect_granted();
    scene.writer_has_it().await;
    let second = shop.buy(*voucher, other).await.expect_granted();
    assert!(scene.gate.remove_entry(second).await);
    held.release().await;
    shop.settled(first, one).await;
    let unseen = shop
        .ask(Call::get(format!("/v1/orders/{second}")).by(other))
        .await;
    unseen.assert_problem(503, "unavailable");
    scene.assert_mends(second, "message_gone").await;
    let seen = shop.settled(second, other).await;
    assert_eq!(seen.word("status"), "pending_payment");
    scene.click_again(other, second).await;
    assert_eq!(scene.free().await, 7);
}

/// The ledger has the order, and the gate has forgotten who holds it.
async fn a_holder_that_is_gone_is_restored(site: Site) {
    let scene = Scene::of(&site, Offer::of(10)).await;
    let Scene { shop, voucher, .. } = &scene;
    let who = buyer();
    let order = shop.buy_settled(*voucher, who).await;
    shop.pay(order, who, "p-1").await.assert_status(200);
    shop.buy_settled(*voucher, buyer()).await;
    assert!(scene.gate.drop_holder(*voucher, who).await);
    let dry = round(shop, true).await;
    let expected = Difference {
        repaired: false,
        ..repaired(order, "holder_gone")
    };
    assert_eq!(dry.of(*voucher).differences, [expected]);
    assert_eq!(dry.repair_count, 0);
    let report = scene.assert_mends(order, "holder_gone").await;
    let tally = report.of(*voucher).tally;
    let terms = (tally.total, tally.free, tally.awaiting_payment, tally.paid);
    assert_eq!(terms, (10, 8, 1, 1));
    scene.click_again(who, order).await;
}

/// The ledger gave the unit back, and the gate holds it; somebody waits for it.
async fn units_that_were_not_released_are_released_again(site: Site) {
    let scene = Scene::of(&site, Offer::of(1).waitlist(5)).await;
    let Scene { shop, voucher, .. } = &scene;
    let [one, other] = [buyer(), buyer()];
    let order = shop.buy_settled(*voucher, one).await;
    shop.cancel(order, one).await.assert_status(200);
    shop.balanced(*voucher).await;
    assert!(scene.gate.plant_holder(*voucher, one, order, 1).await);
    let (waits, _) = shop.buy(*voucher, other).await.expect_waitlisted();
    scene.assert_mends(order, "not_released").await;
    let waiting = seckill_domain::OrderStatus::Waiting;
    let seen = shop.order_past(waits, other, &[waiting]).await;
    assert!(seen.order_status().is_live(), "{}", seen.text);
    let (place, _) = shop.buy(*voucher, one).await.expect_waitlisted();
    assert_ne!(place, order, "he may buy again, after those who wait");
}

/// Every order agrees, and the gate has miscounted, in either direction.
async fn free_units_that_are_off_are_counted_again(site: Site) {
    let scene = Scene::of(&site, Offer::of(10)).await;
    let Scene { shop, voucher, .. } = &scene;
    shop.buy_settled(*voucher, buyer()).await;
    for by in [3, -4] {
        assert!(scene.gate.shift_free(*voucher, by).await);
        let report = round(shop, false).await;
        let found = report.of(*voucher);
        assert_eq!((found.free_drift, found.holds), (i64::from(by), false));
        assert_eq!(found.differences, []);
        assert_eq!(report.repair_count, 1);
        scene.assert_mended().await;
        assert_eq!(scene.free().await, 9);
    }
}

/// The gate's own counts tell that something was lost, and the sale is loaded again before any
/// round comes.
async fn what_the_gate_notices_by_itself_is_told(site: Site) {
    let scene = Scene::of(&site, Offer::of(10)).await;
    let Scene { shop, voucher, .. } = &scene;
    let who = buyer();
    let order = shop.buy_settled(*voucher, who).await;
    let [sale, holders] = scene.gate.keys_of(*voucher, ["sale", "holders"]).await;
    let mut forget = redis::cmd("HDEL");
    forget.arg(&holders).arg(who.to_string());
    let mut break_count = redis::cmd("HSET");
    break_count.arg(&sale).arg("free").arg("abc");
    for (harm, times) in [(forget, 1), (break_count, 2)] {
        scene.gate.run::<i64>(&harm).await;
        let limit = Duration::from_secs(20);
        eventually("it is loaded again", limit, async || {
            let log = scene.process.log();
            let seen = log.matches("the gate had lost this sale").count();
            (seen == times).then_some(()).ok_or(seen.to_string())
        })
        .await;
    }
    scene.click_again(who, order).await;
    let report = round_about(shop, *voucher).await;
    let found = report.of(*voucher);
    assert_eq!((found.reloads, found.at_gate), (2, true));
    found.assert_sound();
    assert_eq!(round(shop, false).await.of(*voucher).reloads, 0);
}

/// It takes no update of the ledger for news: what it is told to release it keeps, and a sale that is
/// closed it goes on with.
async fn a_gate_that_is_ahead_is_loaded_again(site: Site) {
    let scene = Scene::of(&site, Offer::of(1)).await;
    let Scene { shop, voucher, .. } = &scene;
    let who = buyer();
    let order = shop.buy_settled(*voucher, who).await;
    let [sale] = scene.gate.keys_of(*voucher, ["sale"]).await;
    let mut ahead = redis::cmd("HINCRBY");
    ahead.arg(&sale).arg("version").arg(1_000_000);
    scene.gate.run::<i64>(&ahead).await;
    shop.cancel(order, who).await.assert_status(200);
    assert_eq!(scene.free().await, 0, "the unit is stuck");
    let report = round(shop, false).await;
    assert!(report.of(*voucher).terms_differ);
    assert_eq!(report.difference_count, 1, "the unit it keeps");
    assert_eq!(report.repair_count, 2, "the load is counted");
    eventually("the unit is free", Duration::from_secs(20), async || {
        let free = scene.free().await;
        (free == 1).then_some(()).ok_or(free.to_string())
    })
    .await;
    assert!(
        scene.process.log().contains("its terms are"),
        "it is logged"
    );
    shop.buy_settled(*voucher, buyer()).await;
}

/// One of each at once.
async fn several_errors_are_mended_together(site: Site) {
    let scene = Scene::of(&site, Offer::of(20)).await;
    let Scene { shop, voucher, .. } = &scene;
    let [one, two, three] = [buyer(), buyer(), buyer()];
    let forgotten = shop.buy_settled(*voucher, one).await;
    let given_up = shop.buy_settled(*voucher, two).await;
    shop.cancel(given_up, two).await.assert_status(200);
    shop.balanced(*voucher).await;
    let held = scene.ledger.hold_writers().await;
    let first = shop.buy(*voucher, buyer()).await;
    scene.writer_has_it().await;
    let gone = shop.buy(*voucher, three).await.expect_granted();
    assert!(scene.gate.remove_entry(gone).await);
    held.release().await;
    first.expect_granted();
    assert!(scene.gate.drop_holder(*voucher, one).await);
    assert!(scene.gate.plant_holder(*voucher, two, given_up, 1).await);
    let report = round(shop, false).await;
    let mut found = report.of(*voucher).differences.clone();
    found.sort_by(|one, other| one.kind.cmp(&other.kind));
    let expected = [
        repaired(forgotten, "holder_gone"),
        repaired(gone, "message_gone"),
        repaired(given_up, "not_released"),
    ];
    assert_eq!(found, expected);
    scene.assert_mended().await;
    assert_eq!(scene.free().await, 17);
}

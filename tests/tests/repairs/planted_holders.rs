//! Holders that are not what the ledger has, planted from outside: each is found, the sale is loaded
//! again, and whoever was shut out by it buys.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Gate, Ledger, Offer, Process, Purchase, Shop, Site, audit, buyer, eventually,
};

use crate::on_own_stores;
use crate::reports::{Difference, first_round, round, round_about};

on_own_stores!(
    a_stranger_does_not_hold_anothers_order,
    a_stranger_does_not_hold_an_order_of_another_sale,
    a_holding_that_was_moved_goes_back,
    a_holding_of_another_quantity_is_put_right,
    what_cannot_be_read_shuts_nobody_out,
    what_cannot_be_read_is_found_though_nobody_asks,
    a_closed_sale_is_compared_too,
);

/// A sale with one order of one unit; another one with one as well.
struct Scene {
    _process: Process,
    shop: Shop,
    gate: Gate,
    ledger: Ledger,
    voucher: VoucherId,
    who: BuyerId,
    order: OrderId,
}

impl Scene {
    async fn of(site: &Site) -> Self {
        let process = site.start().await;
        let shop = process.shop();
        first_round(&shop).await;
        let voucher = shop.sell(&Offer::of(10)).await;
        let who = buyer();
        Self {
            order: shop.buy_settled(voucher, who).await,
            gate: site.gate().await,
            ledger: site.ledger().await,
            _process: process,
            shop,
            voucher,
            who,
        }
    }

    async fn write(&self, who: BuyerId, text: &str, taken: u32) {
        let written = self.gate.write_holder(self.voucher, who, text, taken);
        assert!(written.await);
    }

    /// A dry run tells of these, the round after mends them, and the one after that finds nothing.
    async fn assert_mends(&self, kinds: &[&str]) {
        for dry_run in [true, false] {
            let report = round(&self.shop, dry_run).await;
            let mut found = report.of(self.voucher).differences.clone();
            found.sort_by(|one, other| one.kind.cmp(&other.kind));
            let expected: Vec<Difference> = kinds
                .iter()
                .map(|kind| Difference {
                    order: found.first().expect("a difference").order,
                    kind: (*kind).to_owned(),
                    repaired: !dry_run,
                })
                .collect();
            assert_eq!(found, expected);
        }
        self.assert_sound(9).await;
    }

    /// The round after finds nothing, so many units are free, and every promise holds.
    async fn assert_sound(&self, free: i64) {
        let after = round_about(&self.shop, self.voucher).await;
        after.of(self.voucher).assert_sound();
        self.shop.balanced(self.voucher).await;
        let seen = self.shop.voucher(self.voucher).await;
        assert_eq!(seen.number("available_units"), free);
        let vouchers = [self.voucher];
        let history = self.shop.history();
        let verdict = audit(&self.shop, history, &vouchers, Some(&self.ledger)).await;
        verdict.assert_holds().assert_none_rejected();
    }

    /// He has bought nothing, and buys.
    async fn assert_served(&self, who: BuyerId) {
        let order = self.shop.buy_settled(self.voucher, who).await;
        assert_ne!(order, self.order);
    }

    async fn assert_still_held(&self) {
        let limit = Duration::from_secs(20);
        let again = eventually("the gate has the sale", limit, async || {
            match self.shop.buy(self.voucher, self.who).await {
                Purchase::Refused { status: 503, code } => Err(code),
                answer => Ok(answer),
            }
        });
        assert_eq!(again.await.expect_already_held(), self.order);
    }
}

/// Whether or not a unit was taken for it: it comes back, and none is made out of nothing.
async fn a_stranger_does_not_hold_anothers_order(site: Site) {
    let scene = Scene::of(&site).await;
    for taken in [0, 1] {
        let who = buyer();
        let text = format!("{}:1", scene.order);
        scene.write(who, &text, taken).await;
        if taken == 0 {
            scene.assert_mends(&["not_released"]).await;
        } else {
            let found = round(&scene.shop, false).await;
            assert_eq!(found.difference_count, 1);
            scene.assert_sound(8).await;
        }
        scene.assert_still_held().await;
        scene.assert_served(who).await;
    }
}

async fn a_stranger_does_not_hold_an_order_of_another_sale(site: Site) {
    let scene = Scene::of(&site).await;
    let other = scene.shop.sell(&Offer::of(10)).await;
    let who = buyer();
    let order = scene.shop.buy_settled(other, who).await;
    scene.write(who, &format!("{order}:1"), 1).await;
    scene.assert_mends(&["not_released"]).await;
    scene.assert_served(who).await;
    let again = scene.shop.buy(other, who).await;
    assert_eq!(again.expect_already_held(), order);
}

async fn a_holding_that_was_moved_goes_back(site: Site) {
    let scene = Scene::of(&site).await;
    let other = buyer();
    assert!(scene.gate.drop_holder(scene.voucher, scene.who).await);
    scene.write(other, &scene.order.to_string(), 0).await;
    scene.assert_mends(&["holder_gone", "not_released"]).await;
    scene.assert_still_held().await;
    scene.assert_served(other).await;
}

async fn a_holding_of_another_quantity_is_put_right(site: Site) {
    let scene = Scene::of(&site).await;
    let text = format!("{}:3", scene.order);
    scene.write(scene.who, &text, 2).await;
    scene.assert_mends(&["holder_gone"]).await;
    scene.assert_still_held().await;
    let cancel = scene.shop.cancel(scene.order, scene.who).await;
    cancel.assert_status(200);
    scene.assert_sound(10).await;
}

/// The gate notices it when its buyer asks.
async fn what_cannot_be_read_shuts_nobody_out(site: Site) {
    let scene = Scene::of(&site).await;
    let other = scene.shop.sell(&Offer::of(10)).await;
    let foreign = scene.shop.buy_settled(other, buyer()).await;
    let one = |text: &str| format!("{foreign}:{text}");
    let texts = [
        "garbage",
        "0:1",
        &one("0"),
        &one("-1"),
        &one("999999999999"),
    ];
    for text in texts {
        let who = buyer();
        scene.write(who, text, 0).await;
        scene.assert_served(who).await;
    }
    scene.write(scene.who, "garbage", 0).await;
    scene.assert_still_held().await;
    scene.assert_sound(4).await;
}

/// Nobody whom it concerns comes by: a round finds it.
async fn what_cannot_be_read_is_found_though_nobody_asks(site: Site) {
    let scene = Scene::of(&site).await;
    scene.write(scene.who, "garbage", 0).await;
    scene.write(buyer(), "1:1:x", 0).await;
    round(&scene.shop, false).await;
    scene.assert_sound(9).await;
    scene.assert_still_held().await;
}

/// As long as somebody may still pay.
async fn a_closed_sale_is_compared_too(site: Site) {
    let scene = Scene::of(&site).await;
    scene.shop.steer(scene.voucher, "close").await;
    scene.write(buyer(), &scene.order.to_string(), 0).await;
    scene.assert_mends(&["not_released"]).await;
}

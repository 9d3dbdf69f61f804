//! A sale that is sold out is known to be: hardly anybody costs the gate a call, those who hold
//! units are still told so, and a unit that comes back is for sale again.

use std::time::Duration;

use seckill_domain::{BuyerId, VoucherId};
use seckill_tests::harness::{Offer, Purchase, Shop, Site, buyer, buyers, crowd};
use seckill_tests::stack;

use crate::{on_every_stack, on_own_stores};

on_every_stack!(a_sell_out_is_known_and_ends_with_a_cancellation);
on_own_stores!(a_unit_that_comes_back_elsewhere_is_for_sale_here);

const KNOWN: &str = "seckill_gate_known_sold_out_total";

/// Sends strangers until one is turned away without the gate being asked.
async fn known_to_be_sold_out(shop: &Shop, voucher: VoucherId) {
    let before = shop.metric(KNOWN).await.unwrap_or(0.0);
    let known = async || {
        let answers = crowd(buyers(100), 20, |who| shop.buy(voucher, who)).await;
        let wrong = answers.iter().find(|answer| answer.code() != "sold_out");
        assert!(wrong.is_none(), "{wrong:?}");
        shop.metric(KNOWN).await.unwrap_or(0.0) > before
    };
    stack::until("it is known", Duration::from_secs(30), known).await;
}

/// A new buyer gets the unit.
async fn is_for_sale(shop: &Shop, voucher: VoucherId) -> BuyerId {
    for _ in 0..200 {
        let who = buyer();
        match shop.buy(voucher, who).await {
            Purchase::Granted { .. } => return who,
            refused => assert_eq!(refused.code(), "sold_out"),
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the unit is not for sale again");
}

async fn a_sell_out_is_known_and_ends_with_a_cancellation(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1)).await;
    let holder = buyer();
    let order = shop.buy_some(voucher, holder, 1, Some("mine")).await;
    let order = order.expect_granted();
    known_to_be_sold_out(&shop, voucher).await;
    assert_eq!(
        shop.buy(voucher, holder).await.expect_already_held(),
        order,
        "who holds the unit is told so"
    );
    shop.settled(order, holder).await;
    shop.cancel(order, holder).await.assert_status(200);
    let next = is_for_sale(&shop, voucher).await;
    shop.buy(voucher, next).await.expect_already_held();
    known_to_be_sold_out(&shop, voucher).await;
    shop.buy(voucher, next).await.expect_already_held();
    let replayed = shop.buy_some(voucher, holder, 1, Some("mine")).await;
    assert_eq!(replayed.expect_granted(), order, "a key outlives its order");
}

async fn a_unit_that_comes_back_elsewhere_is_for_sale_here(site: Site) {
    let (one, other) = (site.start().await, site.start().await);
    let (here, there) = (one.shop(), other.shop());
    let voucher = there.sell(&Offer::of(1)).await;
    let holder = buyer();
    let order = there.buy_settled(voucher, holder).await;
    known_to_be_sold_out(&here, voucher).await;
    here.buy(voucher, holder).await.expect_already_held();
    there.cancel(order, holder).await.assert_status(200);
    let next = is_for_sale(&there, voucher).await;
    let told = async || match here.buy(voucher, next).await {
        Purchase::AlreadyHeld { .. } => true,
        other => {
            assert_eq!(other.code(), "sold_out", "for a moment");
            false
        }
    };
    stack::until("the holder is known", Duration::from_secs(5), told).await;
    known_to_be_sold_out(&here, voucher).await;
    here.buy(voucher, next).await.expect_already_held();
}

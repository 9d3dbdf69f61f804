//! Doing it again: limits, quantities and idempotency keys.

use std::collections::BTreeSet;

use seckill_domain::{BuyerId, OrderStatus, VoucherId};
use seckill_tests::harness::{Call, Offer, Purchase, Shop, Site, audit, buyer, crowd};
use serde_json::json;

use crate::on_every_stack;

on_every_stack!(
    a_limit_of_two_is_two,
    quantities_count_against_the_limit,
    a_key_stands_for_one_purchase,
    a_key_belongs_to_a_buyer_and_a_voucher,
    a_key_survives_cancellation,
    a_refusal_is_not_remembered,
    keys_that_do_not_fit_are_refused,
    parallel_calls_with_one_key_are_one_purchase,
);

async fn a_limit_of_two_is_two(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(10).limit(2)).await;
    let me = buyer();
    let one = shop
        .buy_some(voucher, me, 1, Some("k0"))
        .await
        .expect_granted();
    let two = shop
        .buy_some(voucher, me, 1, Some("k1"))
        .await
        .expect_granted();
    assert_ne!(one, two);
    for _ in 0..2 {
        let more = shop.buy_some(voucher, me, 1, Some("k2")).await;
        let held = Purchase::AlreadyHeld {
            order: one,
            orders: vec![one, two],
        };
        assert_eq!(more, held);
        assert_eq!(shop.buy(voucher, me).await, held);
    }
    assert_eq!(
        shop.buy_some(voucher, me, 1, Some("k0"))
            .await
            .expect_granted(),
        one
    );
    assert_eq!(
        shop.buy_some(voucher, me, 1, Some("k1"))
            .await
            .expect_granted(),
        two
    );
    assert_eq!(shop.balanced(voucher).await.tally.free, 8);

    // Without a key each call below the limit is a new purchase.
    let other = buyer();
    let ids: BTreeSet<_> = [
        shop.buy(voucher, other).await,
        shop.buy(voucher, other).await,
    ]
    .iter()
    .map(Purchase::expect_granted)
    .collect();
    assert_eq!(ids.len(), 2);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
}

async fn quantities_count_against_the_limit(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).limit(3)).await;
    let me = buyer();
    let path = format!("/v1/vouchers/{voucher}/purchases");
    let ask = async |units: u32, who: BuyerId| {
        let call = Call::post(&path).by(who).json(&json!({"quantity": units}));
        shop.ask(call).await
    };
    let reply = ask(4, me).await;
    reply.assert_problem(409, "limit_exceeded");
    assert_eq!(reply.number("remaining"), 3);

    let order = shop.buy_some(voucher, me, 2, None).await.expect_granted();
    let seen = shop.settled(order, me).await;
    assert_eq!(
        (seen.number("quantity"), seen.number("amount_minor")),
        (2, 16_000)
    );
    let reply = ask(2, me).await;
    reply.assert_problem(409, "limit_exceeded");
    assert_eq!(reply.number("remaining"), 1, "never in part");

    // Three are left, and all or nothing counts for the stock too.
    let other = buyer();
    shop.buy_some(voucher, other, 3, None)
        .await
        .expect_granted();
    assert_eq!(
        shop.buy_some(voucher, buyer(), 1, None).await.code(),
        "sold_out"
    );
    assert_eq!(shop.balanced(voucher).await.tally.free, 0);
    shop.cancel(order, me).await.assert_status(200);
    assert_eq!(
        shop.buy_some(voucher, buyer(), 3, None).await.code(),
        "sold_out"
    );
    shop.buy_some(voucher, buyer(), 2, None)
        .await
        .expect_granted();
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
}

async fn a_key_stands_for_one_purchase(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).limit(5)).await;
    let me = buyer();
    let order = shop
        .buy_some(voucher, me, 2, Some("once"))
        .await
        .expect_granted();
    for key in ["once", "\"once\""] {
        let again = shop.buy_some(voucher, me, 2, Some(key)).await;
        assert_eq!(again.expect_granted(), order, "{key}");
        let other = shop.buy_some(voucher, me, 1, Some(key)).await;
        assert_eq!(other.code(), "idempotency_key_reused", "{key}");
    }
    shop.settled(order, me).await;
    shop.pay(order, me, "p-1").await.assert_status(200);
    let again = shop.buy_some(voucher, me, 2, Some("once")).await;
    let status = OrderStatus::Paid;
    assert_eq!(
        again,
        Purchase::Granted { order, status },
        "the same, as it is now"
    );
    assert_eq!(shop.balanced(voucher).await.tally.free, 3);
}

async fn a_key_belongs_to_a_buyer_and_a_voucher(site: &Site) {
    let shop = site.shop();
    let (one, other) = (
        shop.sell(&Offer::of(5)).await,
        shop.sell(&Offer::of(5)).await,
    );
    let (me, you) = (buyer(), buyer());
    let mut orders = BTreeSet::new();
    for (voucher, who) in [(one, me), (one, you), (other, me), (other, you)] {
        orders.insert(
            shop.buy_some(voucher, who, 1, Some("same"))
                .await
                .expect_granted(),
        );
    }
    assert_eq!(orders.len(), 4);
}

async fn a_key_survives_cancellation(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop
        .buy_some(voucher, me, 1, Some("once"))
        .await
        .expect_granted();
    shop.cancel(order, me).await.assert_status(200);
    let again = shop.buy_some(voucher, me, 1, Some("once")).await;
    let status = OrderStatus::Cancelled;
    assert_eq!(again, Purchase::Granted { order, status });
    assert_eq!(shop.balanced(voucher).await.tally.free, 5);
    let new = shop
        .buy_some(voucher, me, 1, Some("twice"))
        .await
        .expect_granted();
    assert_ne!(new, order);
}

async fn a_refusal_is_not_remembered(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1)).await;
    let holder = buyer();
    let order = shop.buy_settled(voucher, holder).await;
    let me = buyer();
    assert_eq!(
        shop.buy_some(voucher, me, 1, Some("once")).await.code(),
        "sold_out"
    );
    shop.cancel(order, holder).await.assert_status(200);
    shop.balanced(voucher).await;
    shop.buy_some(voucher, me, 1, Some("once"))
        .await
        .expect_granted();
}

async fn keys_that_do_not_fit_are_refused(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let path = format!("/v1/vouchers/{voucher}/purchases");
    let long = "k".repeat(65);
    for key in ["", " ", "a b", "\"a", "\"\"", &long] {
        let call = Call::post(&path).by(buyer()).header("idempotency-key", key);
        shop.ask(call)
            .await
            .assert_problem(422, "validation_failed");
    }
    assert_eq!(shop.balanced(voucher).await.tally.free, 5);
    let longest = "~".repeat(64);
    let call = Call::post(&path)
        .by(buyer())
        .header("idempotency-key", &longest);
    shop.ask(call).await.assert_status(202);
}

async fn parallel_calls_with_one_key_are_one_purchase(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(10).limit(10)).await;
    let me = buyer();
    let answers = click(&shop, voucher, me, 20).await;
    let ids: BTreeSet<_> = answers.iter().map(Purchase::expect_granted).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    assert_eq!(shop.balanced(voucher).await.tally.free, 9);
}

async fn click(shop: &Shop, voucher: VoucherId, who: BuyerId, times: usize) -> Vec<Purchase> {
    let one = async |who| shop.buy_some(voucher, who, 1, Some("click")).await;
    crowd(vec![who; times], times, one).await
}

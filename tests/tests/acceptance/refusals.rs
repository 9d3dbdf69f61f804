//! When there is nothing to buy: the contract's answer, and no unit touched.

use std::time::Duration;

use seckill_domain::VoucherId;
use seckill_tests::harness::{Call, Offer, Purchase, Reply, Shop, Site, buyer, buyers, crowd};
use seckill_tests::stack;
use serde_json::{Value, json};

use crate::on_every_stack;

on_every_stack!(
    before_opening_nothing_is_taken,
    after_closing_time_it_is_gone,
    a_paused_sale_sells_nothing,
    a_closed_sale_stays_closed,
    unknown_vouchers_and_drafts_do_not_exist,
    a_body_that_does_not_fit_is_refused,
    a_huge_body_is_refused,
);

async fn free_units(shop: &Shop, voucher: VoucherId) -> i64 {
    shop.balanced(voucher).await.tally.free
}

fn purchase(voucher: impl std::fmt::Display) -> Call {
    Call::post(format!("/v1/vouchers/{voucher}/purchases")).by(buyer())
}

/// Stands for: a call before the start takes a unit; a failing database leaves the gate short (B8).
async fn before_opening_nothing_is_taken(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).opens_in_ms(4_000)).await;
    let early = shop.ask(purchase(voucher)).await;
    early.assert_problem(409, "not_open");
    assert_eq!(
        early.word("opens_at"),
        shop.voucher(voucher).await.word("opens_at")
    );
    let wait: u64 = early.header("retry-after").parse().expect("whole seconds");
    assert!((1..=4).contains(&wait), "{wait}");

    let answers = crowd(buyers(20), 20, |buyer| shop.buy(voucher, buyer)).await;
    assert!(
        answers.iter().all(|answer| answer.code() == "not_open"),
        "{answers:?}"
    );
    assert_eq!(free_units(&shop, voucher).await, 5);

    let open = async || shop.ask(purchase(voucher)).await.code() != "not_open";
    stack::until("it opens", Duration::from_secs(10), open).await;
    let answers = crowd(buyers(20), 20, |buyer| shop.buy(voucher, buyer)).await;
    assert_eq!(answers.iter().filter_map(Purchase::granted).count(), 4);
}

async fn after_closing_time_it_is_gone(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).closes_in_ms(3_000)).await;
    let holder = buyer();
    let order = shop.buy(voucher, holder).await.expect_granted();
    let over = async || shop.buy(voucher, buyer()).await.code() == "closed";
    stack::until("it closes", Duration::from_secs(10), over).await;
    shop.ask(purchase(voucher))
        .await
        .assert_problem(410, "closed");
    let again = shop.buy(voucher, holder).await;
    assert_eq!(again.expect_already_held(), order);
}

async fn a_paused_sale_sells_nothing(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).limit(2)).await;
    let holder = buyer();
    let order = shop
        .buy_some(voucher, holder, 1, Some("first"))
        .await
        .expect_granted();
    let full = buyer();
    let both = shop.buy_some(voucher, full, 2, None).await.expect_granted();

    let reply = shop.steer(voucher, "pause").await;
    assert_eq!(reply.assert_status(200).word("status"), "paused");
    shop.ask(purchase(voucher))
        .await
        .assert_problem(409, "paused");
    let again = shop.buy_some(voucher, holder, 1, Some("first")).await;
    assert_eq!(again.expect_granted(), order, "a retry, by its key");
    let again = shop.buy(voucher, full).await;
    assert_eq!(again.expect_already_held(), both, "a retry, at the limit");
    assert_eq!(
        shop.buy(voucher, holder).await.code(),
        "paused",
        "a new purchase"
    );
    assert_eq!(free_units(&shop, voucher).await, 2);

    // What was bought goes on.
    shop.pay(order, holder, "p-1").await.assert_status(200);
    shop.cancel(both, full).await.assert_status(200);
    assert_eq!(free_units(&shop, voucher).await, 4);
    assert_eq!(shop.buy(voucher, full).await.code(), "paused");

    let reply = shop.steer(voucher, "resume").await;
    assert_eq!(reply.assert_status(200).word("status"), "published");
    shop.buy(voucher, full).await.expect_granted();
}

async fn a_closed_sale_stays_closed(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let (holder, payer) = (buyer(), buyer());
    let order = shop
        .buy_some(voucher, holder, 1, Some("once"))
        .await
        .expect_granted();
    let paid = shop.buy_settled(voucher, payer).await;
    shop.pay(paid, payer, "p-1").await.assert_status(200);

    let reply = shop.steer(voucher, "close").await;
    assert_eq!(reply.assert_status(200).word("status"), "closed");
    shop.ask(purchase(voucher))
        .await
        .assert_problem(410, "closed");
    for _ in 0..2 {
        let again = shop.buy_some(voucher, holder, 1, Some("once")).await;
        assert_eq!(again.expect_granted(), order, "by its key");
        assert_eq!(shop.buy(voucher, holder).await.expect_already_held(), order);
        assert_eq!(shop.buy(voucher, payer).await.expect_already_held(), paid);
    }
    assert_eq!(free_units(&shop, voucher).await, 3);
    shop.steer(voucher, "resume")
        .await
        .assert_is_problem()
        .assert_status(409);
    // Payment windows run on.
    shop.pay(order, holder, "p-2").await.assert_status(200);
}

/// Stands for: nobody asks whether the voucher exists, is on sale, is open, or how much one buyer
/// may have (1.1).
async fn unknown_vouchers_and_drafts_do_not_exist(site: &Site) {
    let shop = site.shop();
    let draft = shop.draft(&Offer::of(5)).await;
    for id in ["987654321", "18446744073709551615", &draft.to_string()] {
        let reply = shop.ask(purchase(id)).await;
        reply.assert_problem(404, "voucher_not_found");
        let reply = shop.ask(Call::get(format!("/v1/vouchers/{id}"))).await;
        reply.assert_problem(404, "voucher_not_found");
    }
    for id in [
        "abc",
        "0",
        "01",
        "+1",
        "-1",
        "1.0",
        "18446744073709551616",
        "%20",
    ] {
        let reply = shop.ask(purchase(id)).await;
        reply.assert_is_problem();
        assert!(matches!(reply.status, 404 | 422), "{id}: {}", reply.text);
    }
    // It could be asked for a moment before it was published, and that is not remembered for long.
    shop.steer(draft, "publish").await.assert_status(200);
    let found = async || shop.buy(draft, buyer()).await.granted().is_some();
    stack::until(
        "a published draft is on sale",
        Duration::from_secs(5),
        found,
    )
    .await;
}

async fn a_body_that_does_not_fit_is_refused(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).limit(2)).await;
    let bodies = [
        "{",
        "[]",
        "null null",
        "\"1\"",
        "{\"quantity\":0}",
        "{\"quantity\":-1}",
        "{\"quantity\":1.5}",
        "{\"quantity\":\"1\"}",
        "{\"quantity\":null}x",
        "{\"quantity\":4294967297}",
        "{\"quantity\":99999999999999999999999999}",
        "{\"quantity\":1,\"quantity\":2}",
        "\u{0}",
    ];
    for body in bodies {
        let reply = shop.ask(purchase(voucher).text(body)).await;
        reply.assert_problem(422, "validation_failed");
        assert!(!errors(&reply).is_empty(), "{body:?}: {}", reply.text);
    }
    let reply = shop
        .ask(purchase(voucher).json(&json!({"quantity": 0})))
        .await;
    assert_eq!(errors(&reply)[0]["field"], "quantity", "{}", reply.text);
    let no_json = Call::post(format!("/v1/vouchers/{voucher}/purchases"))
        .by(buyer())
        .text("quantity=1")
        .header("content-type", "application/x-www-form-urlencoded");
    shop.ask(no_json).await.assert_is_problem();
    assert_eq!(free_units(&shop, voucher).await, 5);
    shop.ask(purchase(voucher)).await.assert_status(202);
    shop.ask(purchase(voucher).json(&json!({})))
        .await
        .assert_status(202);
}

fn errors(reply: &Reply) -> &[Value] {
    reply.body["errors"].as_array().map_or(&[], Vec::as_slice)
}

async fn a_huge_body_is_refused(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    for bytes in [4_097, 100_000] {
        let body = format!("{{\"quantity\":1,\"note\":\"{}\"}}", "x".repeat(bytes));
        let reply = shop.ask(purchase(voucher).text(body)).await;
        reply.assert_problem(413, "payload_too_large");
    }
    // So huge that the connection may be closed while it is still being sent.
    let body = " ".repeat(8_000_000);
    if let Ok(reply) = shop.send(purchase(voucher).text(body)).await {
        reply.assert_problem(413, "payload_too_large");
    }
    assert_eq!(free_units(&shop, voucher).await, 5);
}

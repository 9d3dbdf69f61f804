//! What an administrator does, and what he is not let do.

use seckill_domain::VoucherId;
use seckill_tests::harness::{Call, Offer, Reply, Shop, Site, audit, buyer, buyers, crowd};
use serde_json::{Value, json};

use crate::on_every_stack;

on_every_stack!(
    settings_that_do_not_fit_are_named,
    unknown_fields_are_refused,
    any_offset_means_the_same_instant,
    a_voucher_goes_through_its_life,
    promises_are_frozen_when_published,
    units_are_added_and_taken_out,
    stock_and_buyers_at_once,
);

async fn create(shop: &Shop, body: &Value) -> Reply {
    shop.ask(Call::post("/v1/admin/vouchers").by_admin().json(body))
        .await
}

async fn settings_that_do_not_fit_are_named(site: &Site) {
    let shop = site.shop();
    let bad: [(&str, Value); 21] = [
        ("title", json!("")),
        ("title", json!("   ")),
        ("title", json!("x".repeat(201))),
        ("title", json!(7)),
        ("description", json!("x".repeat(2_001))),
        ("total_units", json!(0)),
        ("total_units", json!(-1)),
        ("total_units", json!(1.5)),
        ("total_units", json!("10")),
        ("price_minor", json!(-5)),
        ("face_value_minor", json!(-5)),
        ("currency", json!("yuan!")),
        ("currency", json!("cny")),
        ("per_buyer_limit", json!(0)),
        ("waitlist_capacity", json!(-1)),
        ("payment_window_s", json!(0)),
        ("payment_window_s", json!(86_401)),
        ("opens_at", json!("yesterday")),
        ("opens_at", json!("2030-02-30T00:00:00Z")),
        ("opens_at", json!(1_900_000_000)),
        ("closes_at", json!("2020-01-01T00:00:00Z")),
    ];
    for (field, value) in bad {
        let offer = Offer::of(1).with(field, value.clone());
        let reply = create(&shop, offer.body()).await;
        reply.assert_problem(422, "validation_failed");
        assert_eq!(
            reply.body["errors"][0]["field"], field,
            "{value}: {}",
            reply.text
        );
    }
    for field in [
        "title",
        "total_units",
        "price_minor",
        "currency",
        "opens_at",
        "closes_at",
    ] {
        let reply = create(&shop, Offer::of(1).without(field).body()).await;
        reply.assert_problem(422, "validation_failed");
        assert_eq!(reply.body["errors"][0]["field"], field, "{}", reply.text);
    }
    // Several mistakes are told at once.
    let offer = Offer::of(1)
        .with("total_units", 0)
        .with("per_buyer_limit", 0);
    let reply = create(&shop, offer.body()).await;
    assert_eq!(
        reply.body["errors"].as_array().map(Vec::len),
        Some(2),
        "{}",
        reply.text
    );
}

async fn unknown_fields_are_refused(site: &Site) {
    let shop = site.shop();
    let reply = create(&shop, Offer::of(1).with("oppens_at", "x").body()).await;
    reply.assert_problem(422, "validation_failed");
    assert_eq!(
        reply.body["errors"][0]["field"], "oppens_at",
        "{}",
        reply.text
    );
    let voucher = shop.sell(&Offer::of(5)).await;
    let path = format!("/v1/admin/vouchers/{voucher}");
    let amendment = Call::new("PATCH", &path).by_admin();
    let reply = shop.ask(amendment.json(&json!({"titel": "x"}))).await;
    reply.assert_problem(422, "validation_failed");
    let adjust = Call::post(format!("{path}/stock-adjustments")).by_admin();
    let body = json!({"delta": 1, "reason": "r", "why": "x"});
    shop.ask(adjust.json(&body))
        .await
        .assert_problem(422, "validation_failed");
    assert_eq!(shop.balanced(voucher).await.tally.total, 5);
}

async fn any_offset_means_the_same_instant(site: &Site) {
    let shop = site.shop();
    let offer = Offer::of(1)
        .with("opens_at", "2030-01-01T08:00:00+08:00")
        .with("closes_at", "2029-12-31T20:00:00.5-05:00");
    let reply = create(&shop, offer.body()).await;
    reply.assert_status(201);
    assert_eq!(reply.word("opens_at"), "2030-01-01T00:00:00.000Z");
    assert_eq!(reply.word("closes_at"), "2030-01-01T01:00:00.500Z");
}

async fn a_voucher_goes_through_its_life(site: &Site) {
    let shop = site.shop();
    let voucher = shop.draft(&Offer::of(5)).await;
    for early in ["pause", "resume", "close"] {
        shop.steer(voucher, early)
            .await
            .assert_is_problem()
            .assert_status(409);
    }
    for (command, status) in [
        ("publish", "published"),
        ("publish", "published"),
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "published"),
        ("resume", "published"),
        ("close", "closed"),
        ("close", "closed"),
    ] {
        let reply = shop.steer(voucher, command).await;
        assert_eq!(reply.assert_status(200).word("status"), status, "{command}");
    }
    for late in ["publish", "pause", "resume"] {
        shop.steer(voucher, late)
            .await
            .assert_is_problem()
            .assert_status(409);
    }
    let nobody = VoucherId::new(987_654_321);
    shop.steer(nobody, "publish")
        .await
        .assert_problem(404, "voucher_not_found");
    shop.adjust(nobody, 1)
        .await
        .assert_problem(404, "voucher_not_found");
    let balance = Call::get(format!("/v1/admin/vouchers/{nobody}/balance")).by_admin();
    shop.ask(balance)
        .await
        .assert_problem(404, "voucher_not_found");
    // What is over cannot be put on sale.
    let over = shop
        .draft(&Offer::of(5).opens_in_ms(-9_000).closes_in_ms(-1_000))
        .await;
    shop.steer(over, "publish").await.assert_is_problem();
}

async fn promises_are_frozen_when_published(site: &Site) {
    let shop = site.shop();
    let voucher = shop.draft(&Offer::of(5)).await;
    let path = format!("/v1/admin/vouchers/{voucher}");
    let amend = async |body: Value| {
        let call = Call::new("PATCH", &path).by_admin().json(&body);
        shop.ask(call).await
    };
    let reply = amend(json!({"total_units": 6, "per_buyer_limit": 2})).await;
    reply.assert_status(200);
    shop.steer(voucher, "publish").await.assert_status(200);
    for (field, value) in [
        ("price_minor", json!(1)),
        ("face_value_minor", json!(1)),
        ("total_units", json!(50)),
        ("per_buyer_limit", json!(9)),
        ("opens_at", json!("2030-01-01T00:00:00Z")),
        ("payment_window_s", json!(1)),
    ] {
        let reply = amend(json!({field: value})).await;
        reply.assert_is_problem();
        assert!(matches!(reply.status, 409 | 422), "{field}: {}", reply.text);
    }
    amend(json!({"price_minor": null}))
        .await
        .assert_is_problem();
    let reply = amend(json!({"title": "茶", "waitlist_capacity": 1})).await;
    assert_eq!(reply.assert_status(200).word("title"), "茶");
    // The gate has it when the administrator is answered.
    let me = buyer();
    shop.buy_some(voucher, me, 2, None).await.expect_granted();
    shop.buy_some(voucher, buyer(), 2, None)
        .await
        .expect_granted();
    shop.buy_some(voucher, buyer(), 2, None)
        .await
        .expect_granted();
    shop.buy(voucher, buyer()).await.expect_waitlisted();
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");
    shop.balanced(voucher).await;
}

async fn units_are_added_and_taken_out(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(2)).await;
    shop.buy(voucher, buyer()).await.expect_granted();
    shop.buy(voucher, buyer()).await.expect_granted();
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");

    // The gate has them when the administrator is answered, and every buyer is told the truth.
    shop.adjust(voucher, 3).await.assert_status(200);
    let balance = shop.balanced(voucher).await.tally;
    assert_eq!((balance.total, balance.free), (5, 3));
    shop.buy(voucher, buyer()).await.expect_granted();

    shop.adjust(voucher, -3)
        .await
        .assert_problem(409, "not_enough_free");
    shop.adjust(voucher, -2).await.assert_status(200);
    let balance = shop.balanced(voucher).await.tally;
    assert_eq!((balance.total, balance.free), (3, 0));
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");

    shop.adjust(voucher, 0)
        .await
        .assert_problem(422, "validation_failed");
    // Once per key.
    let path = format!("/v1/admin/vouchers/{voucher}/stock-adjustments");
    let body = json!({"delta": 4, "reason": "found more"});
    for _ in 0..2 {
        let call = Call::post(&path)
            .by_admin()
            .header("idempotency-key", "once");
        shop.ask(call.json(&body)).await.assert_status(200);
    }
    assert_eq!(shop.balanced(voucher).await.tally.total, 7);
    shop.steer(voucher, "close").await.assert_status(200);
    shop.adjust(voucher, 1)
        .await
        .assert_is_problem()
        .assert_status(409);
}

/// Units come and go while a crowd buys: at no time are more sold than there are.
async fn stock_and_buyers_at_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(60)).await;
    let people = crowd(buyers(160), 16, |buyer| shop.buy(voucher, buyer));
    let adjusting = async {
        for delta in [10, -10, 20, -5, -5, 10] {
            let reply = shop.adjust(voucher, delta).await;
            assert!(matches!(reply.status, 200 | 409), "{}", reply.text);
        }
    };
    futures::join!(people, adjusting);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    let tally = verdict.facts.vouchers[&voucher].tally;
    assert_eq!(
        tally.live(),
        i64::try_from(verdict.live_orders(voucher)).unwrap()
    );
    assert!(verdict.granted.len() >= 60, "{tally:?}");
}

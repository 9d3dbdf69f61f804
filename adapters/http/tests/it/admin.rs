//! Running sales.

use serde_json::{Value, json};

use crate::stand::{Answer, Stand, openapi};

impl Stand {
    async fn create(&self, changes: Value) -> Answer {
        let terms = self.terms(&changes);
        self.post("/v1/admin/vouchers")
            .admin()
            .json(&terms)
            .answer()
            .await
    }

    async fn amend(&self, voucher: &str, change: Value) -> Answer {
        let path = format!("/v1/admin/vouchers/{voucher}");
        self.call("PATCH", &path)
            .admin()
            .json(&change)
            .answer()
            .await
    }

    async fn adjust(&self, voucher: &str, delta: i64, key: Option<&str>) -> Answer {
        let path = format!("/v1/admin/vouchers/{voucher}/stock-adjustments");
        let call = self
            .post(&path)
            .admin()
            .json(&json!({"delta": delta, "reason": "more came"}));
        match key {
            Some(key) => call.key(key).answer().await,
            None => call.answer().await,
        }
    }
}

#[tokio::test]
async fn a_draft_has_the_defaults_and_becomes_a_sale() {
    let stand = Stand::new().await;
    let created = stand
        .create(json!({"opens_at": "2020-01-01T08:00:00+08:00"}))
        .await;
    created.is(201);
    let id = created.text("id");
    assert_eq!(
        created.header("location"),
        format!("/v1/admin/vouchers/{id}")
    );
    for (field, value) in [
        ("status", json!("draft")),
        ("per_buyer_limit", json!(1)),
        ("payment_window_s", json!(900)),
        ("waitlist_capacity", json!(0)),
        ("available_units", json!(10)),
        ("opens_at", json!("2020-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(created.body[field], value, "{field}");
    }
    let path = format!("/v1/admin/vouchers/{id}");
    assert_eq!(
        stand.get(&path).admin().answer().await.body["status"],
        "draft"
    );
    for (verb, status) in [
        ("publish", "published"),
        ("publish", "published"),
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "published"),
        ("close", "closed"),
        ("close", "closed"),
    ] {
        let steered = stand.steer(&id, verb).await;
        steered.is(200);
        assert_eq!(steered.body["status"], status, "{verb}");
    }
    let late = stand.steer(&id, "resume").await;
    late.refused(409, "wrong_status");
    assert_eq!(late.body["voucher_status"], "closed");
}

#[tokio::test]
async fn every_setting_that_does_not_fit_is_named() {
    let stand = Stand::new().await;
    let many = json!({"title": " ", "total_units": 0, "per_buyer_limit": 0, "payment_window_s": 0,
        "closes_at": "2019-01-01T00:00:00Z", "opens_at": "2019-01-02T00:00:00Z"});
    let named = [
        "title",
        "total_units",
        "per_buyer_limit",
        "closes_at",
        "payment_window_s",
    ];
    stand.create(many).await.misfits(&named);
    for (field, value) in [
        ("total_units", json!(-1)),
        ("total_units", json!("10")),
        ("total_units", json!(1.5)),
        ("price_minor", json!(-5)),
        ("title", json!(null)),
        ("title", json!(7)),
        ("per_buyer_limit", json!(null)),
        ("waitlist_capacity", json!(-1)),
        ("currency", json!("yuan!")),
        ("currency", json!("cny")),
        ("opens_at", json!("yesterday")),
        ("opens_at", json!("2030-01-01T00:00:00")),
        ("opens_at", json!(1_893_456_000)),
        ("closes_at", json!("9999-12-31T23:59:59Z")),
        ("opens_at", json!("0001-01-01T00:00:00Z")),
    ] {
        let refused = stand.create(json!({field: value})).await;
        refused.misfits(&[field]);
        assert_eq!(refused.body["errors"][0]["code"], "invalid");
        let message = refused.body["errors"][0]["message"].as_str().unwrap();
        assert!(!message.contains("line"), "{message}");
    }
    let unknown = stand.create(json!({"price_minro": 1})).await;
    unknown.misfits(&["price_minro"]);
    assert_eq!(unknown.body["errors"][0]["code"], "unknown");
}

#[tokio::test]
async fn a_setting_that_is_missing_is_named() {
    let stand = Stand::new().await;
    let terms = stand.terms(&json!({}));
    for field in openapi()["components"]["schemas"]["NewVoucher"]["required"]
        .as_array()
        .unwrap()
    {
        let field = field.as_str().unwrap();
        let mut without = terms.clone();
        without.as_object_mut().unwrap().remove(field).unwrap();
        let refused = stand
            .post("/v1/admin/vouchers")
            .admin()
            .json(&without)
            .answer()
            .await;
        refused.misfits(&[field]);
        assert_eq!(refused.body["errors"][0]["code"], "required");
    }
}

/// The bounds stand in the document and in the domain: each is tried from both sides.
#[tokio::test]
async fn the_bounds_of_the_document_are_the_bounds_in_force() {
    let stand = Stand::new().await;
    let properties = openapi()["components"]["schemas"]["NewVoucher"]["properties"]
        .as_object()
        .unwrap();
    let mut tried = 0;
    for (field, schema) in properties {
        let text =
            |length: &Value| json!("x".repeat(usize::try_from(length.as_u64().unwrap()).unwrap()));
        let number = |bound: &Value, by: i64| json!(bound.as_i64().unwrap() + by);
        let cases = [
            schema
                .get("maximum")
                .map(|max| (number(max, 0), number(max, 1))),
            schema
                .get("minimum")
                .map(|min| (number(min, 0), number(min, -1))),
            schema
                .get("maxLength")
                .map(|max| (text(max), text(&number(max, 1)))),
            schema
                .get("minLength")
                .map(|min| (text(min), text(&number(min, -1)))),
        ];
        for (fits, misfit) in cases.into_iter().flatten() {
            stand.create(json!({field: fits})).await.is(201);
            stand.create(json!({field: misfit})).await.misfits(&[field]);
            tried += 1;
        }
    }
    assert_eq!(tried, 15);
}

/// Swagger UI sends them as they are.
#[tokio::test]
async fn the_examples_of_the_document_work() {
    let stand = Stand::new().await;
    let schemas = &openapi()["components"]["schemas"];
    let create = stand
        .post("/v1/admin/vouchers")
        .admin()
        .json(&schemas["NewVoucher"]["example"]);
    let created = create.answer().await;
    created.is(201);
    let id = created.text("id");
    stand.steer(&id, "publish").await.is(200);
    let change = schemas["VoucherChange"]["example"].clone();
    stand.amend(&id, change).await.is(200);
    let buy = stand.purchase(&id, 7).json(&schemas["Purchase"]["example"]);
    buy.answer().await.is(202);
}

#[tokio::test]
async fn publishing_what_is_over_or_not_there_is_refused() {
    let stand = Stand::new().await;
    let past = json!({"opens_at": stand.time(-9_000), "closes_at": stand.time(-1_000)});
    let id = stand.draft(past).await;
    stand.steer(&id, "publish").await.misfits(&["closes_at"]);
    stand.steer(&id, "pause").await.refused(409, "wrong_status");
    for id in ["99999999", "abc"] {
        for verb in ["publish", "pause", "resume", "close"] {
            stand
                .steer(id, verb)
                .await
                .refused(404, "voucher_not_found");
        }
        stand
            .amend(id, json!({"title": "x"}))
            .await
            .refused(404, "voucher_not_found");
        stand
            .adjust(id, 1, None)
            .await
            .refused(404, "voucher_not_found");
        stand.balance(id).await.refused(404, "voucher_not_found");
        let path = format!("/v1/admin/vouchers/{id}");
        stand
            .get(&path)
            .admin()
            .answer()
            .await
            .refused(404, "voucher_not_found");
    }
}

#[tokio::test]
async fn settings_change_until_they_are_promised() {
    let stand = Stand::new().await;
    let id = stand.draft(json!({})).await;
    let amended = stand
        .amend(&id, json!({"price_minor": 7_000, "total_units": 20}))
        .await;
    amended.is(200);
    assert_eq!(
        (&amended.body["price_minor"], &amended.body["total_units"]),
        (&json!(7_000), &json!(20))
    );
    assert_eq!(amended.body["title"], "Dinner for two");
    stand
        .amend(&id, json!({"title": ""}))
        .await
        .misfits(&["title"]);
    stand
        .amend(&id, json!({"title": null}))
        .await
        .misfits(&["title"]);
    stand
        .amend(&id, json!({"currency": "EUR"}))
        .await
        .misfits(&["currency"]);
    stand.steer(&id, "publish").await.is(200);
    let change = json!({"price_minor": 1, "opens_at": stand.time(0), "title": "y"});
    let frozen = stand.amend(&id, change).await;
    frozen.refused(409, "frozen_after_publish");
    let fields: Vec<_> = frozen.body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| &error["field"])
        .collect();
    assert_eq!(fields, ["price_minor", "opens_at"]);
    let open = stand
        .amend(&id, json!({"waitlist_capacity": 3, "title": "Lunch"}))
        .await;
    open.is(200);
    assert_eq!(open.body["title"], "Lunch");
    for user in 0..20 {
        stand.buy(&id, user + 1).await.is(202);
    }
    assert_eq!(stand.buy(&id, 99).await.body["outcome"], "waitlisted");
    stand.steer(&id, "close").await.is(200);
    stand
        .amend(&id, json!({"title": "z"}))
        .await
        .refused(409, "wrong_status");
}

#[tokio::test]
async fn stock_changes_by_delta_once_per_key() {
    let stand = Stand::new().await;
    let id = stand.draft(json!({})).await;
    stand
        .adjust(&id, 5, None)
        .await
        .refused(409, "wrong_status");
    stand.steer(&id, "publish").await.is(200);
    for _ in 0..2 {
        let more = stand.adjust(&id, 5, Some("k")).await;
        more.is(200);
        assert_eq!(
            (&more.body["total_units"], &more.body["available_units"]),
            (&json!(15), &json!(15))
        );
    }
    stand
        .adjust(&id, 6, Some("k"))
        .await
        .refused(422, "idempotency_key_reused");
    assert_eq!(
        stand.adjust(&id, -15, None).await.body["available_units"],
        0
    );
    stand
        .adjust(&id, -1, None)
        .await
        .refused(409, "not_enough_free");
    stand.buy(&id, 7).await.refused(409, "sold_out");
    for delta in [0, 100_000_001, -100_000_001, i64::MAX] {
        stand.adjust(&id, delta, None).await.misfits(&["delta"]);
    }
    // Nothing is left in the voucher, and what is not frozen can change nevertheless.
    let amended = stand.amend(&id, json!({"title": "Sold out"})).await;
    amended.is(200);
    assert_eq!(amended.body["total_units"], 0);
    // As many as a voucher may have, and not one more; a repeat is not one more.
    for _ in 0..2 {
        let most = stand.adjust(&id, 100_000_000, Some("most")).await;
        most.is(200);
        assert_eq!(most.body["total_units"], 100_000_000);
    }
    stand.adjust(&id, 1, None).await.misfits(&["delta"]);
    let unchanged = stand.amend(&id, json!({"title": "Plenty"})).await;
    assert_eq!(unchanged.body["total_units"], 100_000_000);
    let path = format!("/v1/admin/vouchers/{id}/stock-adjustments");
    for (body, field) in [
        (json!({"delta": 1}), "reason"),
        (json!({"delta": 1, "reason": ""}), "reason"),
        (json!({"delta": 1, "reason": "x".repeat(201)}), "reason"),
        (json!({"delta": 1, "reason": "x", "dleta": 1}), "dleta"),
    ] {
        stand
            .post(&path)
            .admin()
            .json(&body)
            .answer()
            .await
            .misfits(&[field]);
    }
    let both = stand
        .post(&path)
        .admin()
        .json(&json!({"delta": 0, "reason": ""}))
        .answer()
        .await;
    both.misfits(&["delta", "reason"]);
}

#[tokio::test]
async fn the_balance_says_where_every_unit_is() {
    let stand = Stand::new().await;
    let id = stand.voucher(json!({})).await;
    let paid = stand.order(&id, 1).await;
    stand.pay(&paid, 1, "p").await.is(200);
    stand.order(&id, 2).await;
    stand.pause_writer().await;
    stand.buy(&id, 3).await.is(202);
    let balance = stand.balance(&id).await;
    let expected = json!({"total": 10, "free": 7, "in_flight": 1, "parked": 0, "awaiting_payment": 1,
        "paid": 1, "stock_drift": 0, "holds": true, "watermark": 2});
    assert_eq!(balance.body, expected);
}

#[tokio::test]
async fn a_gate_that_does_not_follow_is_unavailable_with_an_unknown_effect() {
    let stand = Stand::new().await;
    let id = stand.voucher(json!({})).await;
    stand.hot.chaos().fail_before("purchase_gate", 1_000);
    let lagging = stand.steer(&id, "pause").await;
    lagging.refused(503, "unavailable");
    assert_eq!(lagging.body["effect"], "unknown");
    stand.hot.chaos().heal();
    stand.steer(&id, "pause").await.is(200);
}

#[tokio::test]
async fn administration_needs_the_role() {
    let stand = Stand::new().await;
    let id = stand.voucher(json!({})).await;
    let mut tried = 0;
    for (path, item) in openapi()["paths"].as_object().unwrap() {
        let place = path.replace("{voucher_id}", &id).replace("{order_id}", "1");
        for method in item.as_object().unwrap().keys() {
            if path.starts_with("/v1/admin/") {
                let method = method.to_uppercase();
                stand
                    .call(&method, &place)
                    .answer()
                    .await
                    .refused(401, "unauthenticated");
                stand
                    .call(&method, &place)
                    .user(5)
                    .answer()
                    .await
                    .refused(403, "forbidden");
                tried += 1;
            }
        }
    }
    assert!(tried >= 9, "{tried}");
}

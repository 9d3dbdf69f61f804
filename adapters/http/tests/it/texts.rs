//! What administrators write.

use seckill_http::HttpSettings;
use serde_json::{Value, json};

use crate::stand::{Answer, Stand};

async fn create(stand: &Stand, changes: Value) -> Answer {
    let terms = stand.terms(&changes);
    let create = stand.post("/v1/admin/vouchers").admin();
    create.json(&terms).answer().await
}

async fn amend(stand: &Stand, id: &str, change: Value) -> Answer {
    let path = format!("/v1/admin/vouchers/{id}");
    stand
        .call("PATCH", &path)
        .admin()
        .json(&change)
        .answer()
        .await
}

#[tokio::test]
async fn a_text_shows_what_it_says() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    for bad in [
        "a\u{0}b",
        "\u{1b}[2J",
        "10\u{202e}001",
        "\u{2066}x",
        "\u{7f}",
    ] {
        for field in ["title", "description"] {
            create(&stand, json!({field: bad})).await.misfits(&[field]);
            amend(&stand, &voucher, json!({field: bad}))
                .await
                .misfits(&[field]);
        }
        let path = format!("/v1/admin/vouchers/{voucher}/stock-adjustments");
        let adjust = stand.post(&path).admin();
        let adjust = adjust.json(&json!({"delta": 1, "reason": bad}));
        adjust.answer().await.misfits(&["reason"]);
    }
    create(&stand, json!({"title": "two\nlines"}))
        .await
        .misfits(&["title"]);
    create(
        &stand,
        json!({"description": "two\nlines", "title": "双人晚餐 🍜"}),
    )
    .await
    .is(201);
}

#[tokio::test]
async fn a_description_can_be_removed() {
    let stand = Stand::new().await;
    let id = stand.draft(json!({"description": "Any evening"})).await;
    for nothing in [json!(null), json!("")] {
        amend(&stand, &id, json!({"description": "Any evening"}))
            .await
            .is(200);
        let removed = amend(&stand, &id, json!({"description": nothing})).await;
        removed.is(200);
        assert!(removed.body.get("description").is_none(), "{removed:?}");
    }
    let none = create(&stand, json!({"description": ""})).await;
    none.is(201);
    assert!(none.body.get("description").is_none());
}

#[tokio::test]
async fn the_longest_description_fits_however_it_is_written() {
    let stand = Stand::new().await;
    let longest = "票".repeat(2_000);
    let created = create(&stand, json!({"description": longest})).await;
    created.is(201);
    assert_eq!(created.body["description"], longest);
    let id = created.text("id");
    amend(&stand, &id, json!({"description": longest}))
        .await
        .is(200);
    // Twelve bytes a letter.
    let escaped = r"\ud83c\udf5c".repeat(2_000);
    let body = stand.terms(&json!({"description": "@"})).to_string();
    let create_escaped = stand.post("/v1/admin/vouchers").admin();
    let created = create_escaped.raw(body.replace('@', &escaped)).answer();
    created.await.is(201);
    create(&stand, json!({"description": "票".repeat(2_001)}))
        .await
        .misfits(&["description"]);
    let huge = create(&stand, json!({"description": "x".repeat(40_000)})).await;
    huge.refused(413, "payload_too_large");
    assert_eq!(huge.body["detail"], "at most 32768 bytes");
    let voucher = stand.voucher(json!({})).await;
    let padded = json!({"quantity": 1, "padding": "x".repeat(5_000)});
    let buy = stand.purchase(&voucher, 7).json(&padded).answer().await;
    buy.refused(413, "payload_too_large");
    assert_eq!(buy.body["detail"], "at most 4096 bytes");
}

#[tokio::test]
async fn a_large_body_limit_holds_for_vouchers_too() {
    let settings = HttpSettings {
        body_bytes_max: 100_000,
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    create(&stand, json!({"description": "x".repeat(40_000)}))
        .await
        .misfits(&["description"]);
}

#[tokio::test]
async fn a_sale_is_not_ended_by_moving_its_end() {
    let stand = Stand::new().await;
    for id in [stand.draft(json!({})).await, stand.voucher(json!({})).await] {
        let past = amend(&stand, &id, json!({"closes_at": stand.time(-1_000)})).await;
        past.misfits(&["closes_at"]);
        let message = past.body["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("in the future"), "{message}");
        amend(&stand, &id, json!({"closes_at": stand.time(9_000)}))
            .await
            .is(200);
    }
}

#[tokio::test]
async fn refusals_are_in_words_of_the_api() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let quantity = "a whole number from 1 to 1000000";
    for (body, message) in [
        (r#"{"quantity":"two"}"#, quantity),
        (r#"{"quantity":-1}"#, quantity),
        (r#"{"quantity":1.5}"#, quantity),
        (r#"{"quantity":5000000000}"#, quantity),
        (r#"{"quantity":null}"#, quantity),
        (r#"{"quantity":0}"#, "1 to 1000000"),
        (r#"{"quantity":1,"quantity":1}"#, "is given twice"),
    ] {
        let refused = stand.purchase(&voucher, 7).raw(body).answer().await;
        refused.misfits(&["quantity"]);
        assert_eq!(refused.body["errors"][0]["message"], message, "{body}");
    }
    let unknown = amend(&stand, &voucher, json!({"titel": "x"})).await;
    unknown.misfits(&["titel"]);
    let message = unknown.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("is no field here; there are title, "));
    for (field, bad) in [("title", json!(7)), ("total_units", json!("x"))] {
        let refused = create(&stand, json!({field: bad})).await;
        refused.misfits(&[field]);
        for rust in ["u32", "u64", "expected", "struct", "invalid type"] {
            assert!(!refused.raw.contains(rust), "{rust}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn a_number_that_does_not_fit_is_told_what_its_field_may_be() {
    let stand = Stand::new().await;
    let voucher = stand.draft(json!({})).await;
    for (field, allowed) in [
        ("price_minor", "0 to 1000000000000"),
        ("total_units", "1 to 100000000"),
        ("per_buyer_limit", "1 to 1000"),
        ("payment_window_s", "1 to 86400"),
        ("waitlist_capacity", "0 to 1000000"),
    ] {
        for bad in [json!(-1), json!(1.5), json!(1e30)] {
            let body = json!({ field: bad });
            for refused in [
                create(&stand, body.clone()).await,
                amend(&stand, &voucher, body.clone()).await,
            ] {
                refused.misfits(&[field]);
                let message = refused.body["errors"][0]["message"].as_str().unwrap();
                assert_eq!(message, format!("a whole number from {allowed}"), "{body}");
            }
        }
    }
    let path = format!("/v1/admin/vouchers/{voucher}/stock-adjustments");
    let body = json!({"delta": 0.5, "reason": "x"});
    let refused = stand.post(&path).admin().json(&body).answer().await;
    refused.misfits(&["delta"]);
    let message = refused.body["errors"][0]["message"].as_str().unwrap();
    assert_eq!(message, "a whole number from -100000000 to 100000000");
}

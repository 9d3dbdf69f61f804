//! What is on sale.

use serde_json::json;

use crate::stand::Stand;

#[tokio::test]
async fn anybody_sees_what_is_on_sale() {
    let stand = Stand::new().await;
    let changes = json!({"total_units": 3, "waitlist_capacity": 4, "description": "Any evening"});
    let voucher = stand.voucher(changes).await;
    let path = format!("/v1/vouchers/{voucher}");
    let seen = stand.get(&path).answer().await;
    seen.is(200);
    assert_eq!(seen.body["status"], "published");
    assert_eq!(seen.body["available_units"], 3);
    assert_eq!(seen.body["description"], "Any evening");
    for user in 1..=5 {
        stand.buy(&voucher, user).await.is(202);
    }
    let seen = stand.get(&path).answer().await;
    assert_eq!(
        (&seen.body["available_units"], &seen.body["waitlist_length"]),
        (&json!(0), &json!(2))
    );
    let server_time = seen.body["server_time"].as_str().unwrap();
    assert!((stand.time(-60_000).as_str()..=stand.time(0).as_str()).contains(&server_time));
}

#[tokio::test]
async fn drafts_are_not_seen() {
    let stand = Stand::new().await;
    let draft = stand.draft(json!({})).await;
    let shown = stand.voucher(json!({})).await;
    let listed = stand.get("/v1/vouchers").answer().await;
    assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed.body["items"][0]["id"], shown);
    for id in [draft.as_str(), "99999999", "abc", "00"] {
        let path = format!("/v1/vouchers/{id}");
        stand
            .get(&path)
            .answer()
            .await
            .refused(404, "voucher_not_found");
    }
}

#[tokio::test]
async fn the_list_comes_in_parts() {
    let stand = Stand::new().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(stand.voucher(json!({})).await);
    }
    let first = stand.get("/v1/vouchers?limit=2&unknown=1").answer().await;
    assert_eq!(first.body["items"][0]["id"], ids[2]);
    assert_eq!(first.body["items"][1]["id"], ids[1]);
    let path = format!("/v1/vouchers?limit=2&cursor={}", first.text("next_cursor"));
    let second = stand.get(&path).answer().await;
    assert_eq!(second.body["items"][0]["id"], ids[0]);
    assert!(second.body["next_cursor"].is_null());
    stand
        .get("/v1/vouchers?limit=0")
        .answer()
        .await
        .misfits(&["limit"]);
}

#[tokio::test]
async fn the_ledgers_stock_is_shown_while_the_gate_is_away() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 3})).await;
    let path = format!("/v1/vouchers/{voucher}");
    stand.hot.chaos().down(true);
    assert_eq!(stand.get(&path).answer().await.body["available_units"], 3);
    stand.ledger.down(true);
    stand.get(&path).answer().await.refused(503, "unavailable");
    stand
        .get("/v1/vouchers")
        .answer()
        .await
        .refused(503, "unavailable");
}

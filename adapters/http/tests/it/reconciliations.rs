//! Comparing gate and ledger.

use std::time::Duration;

use seckill_domain::{OrderId, VoucherId};
use seckill_http::HttpSettings;
use serde_json::{Value, json};

use crate::stand::{Answer, Stand};

const PATH: &str = "/v1/admin/reconciliations";

async fn reconcile(stand: &Stand, body: Value) -> Answer {
    stand.post(PATH).admin().json(&body).answer().await
}

#[tokio::test]
async fn what_agrees_is_reported_term_by_term() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    stand.order(&voucher, 8).await;
    stand.pay(&order, 7, "p").await.is(200);
    let report = stand.post(PATH).admin().answer().await;
    report.is(201);
    assert_eq!(
        (&report.body["full"], &report.body["dry_run"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(
        (
            &report.body["difference_count"],
            &report.body["repair_count"]
        ),
        (&json!(0), &json!(0))
    );
    let found = &report.body["vouchers"][0];
    assert_eq!(found["voucher_id"], voucher);
    for (term, units) in [
        ("total", 10),
        ("free", 8),
        ("in_flight", 0),
        ("parked", 0),
        ("awaiting_payment", 1),
        ("paid", 1),
        ("free_drift", 0),
        ("stock_drift", 0),
    ] {
        assert_eq!(found[term], units, "{term}");
    }
    assert_eq!(found["holds"], true);
    let list = stand.list(PATH).await;
    assert_eq!(list.body["items"], json!([report.body]));
    assert!(list.body["next_cursor"].is_null());
}

#[tokio::test]
async fn what_differs_is_named_and_mended() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let (voucher_id, order_id) = (
        VoucherId::new(voucher.parse().unwrap()),
        OrderId::new(order.parse().unwrap()),
    );
    assert!(stand.hot.drop_holder(voucher_id, order_id));
    let dry = reconcile(&stand, json!({"dry_run": true})).await;
    dry.is(201);
    let difference = &dry.body["vouchers"][0]["differences"][0];
    assert_eq!(
        difference,
        &json!({"order_id": order, "user_id": "7", "quantity": 1, "kind": "holder_gone",
            "repaired": false})
    );
    let mended = reconcile(&stand, json!({"full": true})).await;
    mended.is(201);
    assert_eq!(
        mended.body["vouchers"][0]["differences"][0]["repaired"],
        true
    );
    assert_eq!(mended.body["repair_count"], 1);
    let held = stand.buy(&voucher, 7).await;
    assert_eq!(
        (&held.body["outcome"], &held.body["order_id"]),
        (&json!("already_held"), &json!(order))
    );
    let list = stand.list(&format!("{PATH}?limit=1")).await;
    assert_eq!(list.body["items"], json!([mended.body]));
    assert!(list.body["next_cursor"].is_string());
}

#[tokio::test]
async fn one_runs_at_a_time_and_the_next_is_told() {
    let stand = Stand::new().await;
    stand.voucher(json!({})).await;
    let (one, two) = tokio::join!(reconcile(&stand, json!({})), reconcile(&stand, json!({})));
    one.is(201);
    two.refused(409, "reconciliation_running");
    assert_eq!(two.body["retryable"], true);
    assert_eq!(two.header("retry-after"), "2");
    reconcile(&stand, json!({})).await.is(201);
}

#[tokio::test]
async fn a_long_one_goes_on_after_the_answer() {
    let settings = HttpSettings {
        request_deadline: Duration::from_millis(300),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    stand.voucher(json!({})).await;
    let started = reconcile(&stand, json!({})).await;
    started.is(202);
    assert_eq!(started.body["status"], "running");
    assert!(started.body["poll_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(started.header("location"), PATH);
    stand
        .wait_until(async || {
            let list = stand.list(PATH).await;
            list.body["items"].as_array().unwrap().len() == 1
        })
        .await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_long_one() {
    let settings = HttpSettings {
        request_deadline: Duration::from_millis(50),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    for _ in 0..10 {
        stand.voucher(json!({})).await;
    }
    reconcile(&stand, json!({})).await.is(202);
    stand.stopping.cancel();
    tokio::time::timeout(Duration::from_millis(500), stand.app.drain())
        .await
        .expect("it ends");
}

#[tokio::test]
async fn how_to_reconcile_is_checked() {
    let stand = Stand::new().await;
    reconcile(&stand, json!({"dry_run": "yes"}))
        .await
        .misfits(&["dry_run"]);
    reconcile(&stand, json!({"dry": true}))
        .await
        .misfits(&["dry"]);
}

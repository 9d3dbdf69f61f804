//! A buyer's own orders.

use std::time::Duration;

use seckill_domain::VoucherId;
use serde_json::json;

use crate::stand::Stand;

#[tokio::test]
async fn a_granted_order_is_readable_at_once_and_by_its_buyer_alone() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand
        .buy(&voucher, 9_007_199_254_740_993)
        .await
        .text("order_id");
    let path = format!("/v1/orders/{order}");
    let seen = stand.get(&path).user(9_007_199_254_740_993).answer().await;
    seen.is(200);
    assert_eq!(seen.body["status"], "queued");
    assert_eq!(seen.body["user_id"], "9007199254740993");
    assert_eq!(
        (&seen.body["amount_minor"], &seen.body["currency"]),
        (&json!(8_000), &json!("CNY"))
    );
    assert!(seen.body["expires_at"].is_null());
    assert!(seen.body["poll_after_ms"].as_u64().unwrap() > 0);
    stand
        .get(&path)
        .user(6)
        .answer()
        .await
        .refused(404, "order_not_found");
    stand
        .get(&path)
        .answer()
        .await
        .refused(401, "unauthenticated");
    stand
        .pay(&order, 6, "p")
        .await
        .refused(404, "order_not_found");
    stand
        .cancel(&order, 6)
        .await
        .refused(404, "order_not_found");
    stand.resume_writer();
    let stored = stand.settled(&order, 9_007_199_254_740_993).await;
    assert_eq!(stored.body["status"], "pending_payment");
    assert!(stored.body["expires_at"].as_str().unwrap().ends_with('Z'));
    for id in ["1", "abc", "0", "18446744073709551616"] {
        let path = format!("/v1/orders/{id}");
        stand
            .get(&path)
            .user(6)
            .answer()
            .await
            .refused(404, "order_not_found");
    }
}

#[tokio::test]
async fn paying_is_repeatable_with_the_same_payment() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    for _ in 0..3 {
        let paid = stand.pay(&order, 7, "p-1").await;
        paid.is(200);
        assert_eq!(paid.body["status"], "paid");
        assert!(paid.body.get("poll_after_ms").is_none());
    }
    stand.pay(&order, 7, "p-2").await.refused(409, "order_paid");
    stand.cancel(&order, 7).await.refused(409, "order_paid");
}

#[tokio::test]
async fn a_payment_needs_an_id() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    for bad in ["", "a b", &"p".repeat(65), "né"] {
        stand.pay(&order, 7, bad).await.misfits(&["payment_id"]);
    }
    let path = format!("/v1/orders/{order}/payments");
    let missing = stand.post(&path).user(7).raw("{}").answer().await;
    missing.misfits(&["payment_id"]);
    assert_eq!(missing.body["errors"][0]["code"], "required");
    stand.post(&path).user(7).answer().await.misfits(&[""]);
}

#[tokio::test]
async fn cancelling_is_repeatable_and_gives_the_unit_back_once() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 2})).await;
    let order = stand.order(&voucher, 7).await;
    for _ in 0..3 {
        let cancelled = stand.cancel(&order, 7).await;
        cancelled.is(200);
        assert_eq!(cancelled.body["status"], "cancelled");
    }
    stand
        .pay(&order, 7, "p")
        .await
        .refused(409, "order_cancelled");
    assert_eq!(stand.balance(&voucher).await.body["free"], 2);
    assert_eq!(stand.buy(&voucher, 7).await.body["outcome"], "granted");
}

#[tokio::test]
async fn an_overdue_order_can_be_neither_paid_nor_cancelled() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"payment_window_s": 1})).await;
    let order = stand.order(&voucher, 7).await;
    stand.clock.advance(Duration::from_secs(1));
    stand
        .pay(&order, 7, "p")
        .await
        .refused(409, "order_expired");
    stand.cancel(&order, 7).await.refused(409, "order_expired");
}

#[tokio::test]
async fn a_queued_order_is_waited_for_and_then_retryable() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let (paid, cancelled) = tokio::join!(stand.pay(&order, 7, "p"), stand.cancel(&order, 7));
    for queued in [paid, cancelled] {
        queued.refused(409, "order_queued");
        assert_eq!(queued.body["retryable"], true);
        assert_eq!(queued.header("retry-after"), "1");
    }
    let waits = async {
        tokio::task::yield_now().await;
        stand.resume_writer();
    };
    let (paid, ()) = tokio::join!(stand.pay(&order, 7, "p"), waits);
    paid.is(200);
}

#[tokio::test]
async fn a_cancellation_is_finished_when_the_client_has_gone() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let request = stand
        .post(&format!("/v1/orders/{order}/cancellation"))
        .user(7)
        .request();
    let answer = stand.app.answer(request);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), answer)
            .await
            .is_err()
    );
    stand.resume_writer();
    stand.app.drain().await;
    let seen = stand.settled(&order, 7).await;
    assert_eq!(seen.body["status"], "cancelled");
}

#[tokio::test]
async fn a_waiting_order_cannot_be_paid_and_leaves_the_list_when_cancelled() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 5}))
        .await;
    stand.order(&voucher, 1).await;
    let order = stand.buy(&voucher, 2).await.text("order_id");
    let seen = stand.settled(&order, 2).await;
    assert_eq!(
        (&seen.body["status"], &seen.body["position"]),
        (&json!("waiting"), &json!(1))
    );
    stand.settled_list(2, 1).await;
    stand
        .pay(&order, 2, "p")
        .await
        .refused(409, "order_waiting");
    let left = stand.cancel(&order, 2).await;
    left.is(200);
    assert_eq!(left.body["status"], "withdrawn");
    stand.cancel(&order, 2).await.is(200);
    // The gate has said so, whether or not the ledger has heard of it.
    let late = stand.pay(&order, 2, "p").await;
    late.refused(409, "order_cancelled");
}

#[tokio::test]
async fn what_the_ledger_refuses_is_rejected_with_a_reason() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 1})).await;
    let id = VoucherId::new(voucher.parse().unwrap());
    assert!(stand.hot.plant_units(id, 1));
    stand.order(&voucher, 1).await;
    let order = stand.order(&voucher, 2).await;
    let seen = stand
        .get(&format!("/v1/orders/{order}"))
        .user(2)
        .answer()
        .await;
    assert_eq!(
        (&seen.body["status"], &seen.body["reason"]),
        (&json!("rejected"), &json!("no_stock"))
    );
    stand
        .pay(&order, 2, "p")
        .await
        .refused(409, "order_rejected");
    stand.cancel(&order, 2).await.refused(409, "order_rejected");
}

#[tokio::test]
async fn the_list_comes_in_parts_newest_first() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"per_buyer_limit": 5, "total_units": 20}))
        .await;
    let mut bought = Vec::new();
    for _ in 0..5 {
        bought.push(stand.buy(&voucher, 7).await.text("order_id"));
    }
    stand.buy(&voucher, 8).await.is(202);
    stand.settled_list(7, 5).await;
    let mut path = "/v1/orders?limit=2".to_owned();
    let mut listed = Vec::new();
    loop {
        let part = stand.get(&path).user(7).answer().await;
        part.is(200);
        let items = part.body["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        listed.extend(
            items
                .iter()
                .map(|order| order["id"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = part.body["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/orders?limit=2&cursor={cursor}");
    }
    bought.reverse();
    assert_eq!(listed, bought);
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=x", "cursor"),
    ] {
        let path = format!("/v1/orders?{query}");
        stand.get(&path).user(7).answer().await.misfits(&[field]);
    }
    let both = stand
        .get("/v1/orders?limit=x&cursor=y")
        .user(7)
        .answer()
        .await;
    both.misfits(&["limit", "cursor"]);
}

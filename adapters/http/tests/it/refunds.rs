//! Money that goes back.

use serde_json::json;

use crate::stand::Stand;

#[tokio::test]
async fn a_refund_gives_units_and_money_back_once() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 2})).await;
    let order = stand.order(&voucher, 7).await;
    stand.pay(&order, 7, "p-1").await.is(200);
    for _ in 0..3 {
        let refunded = stand.refund(&order).await;
        refunded.is(200);
        assert_eq!(refunded.body["status"], "refunded");
    }
    let list = stand.list("/v1/admin/refunds").await;
    let items = list.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{list:?}");
    let refund = &items[0];
    assert_eq!(refund["order_id"], order);
    assert_eq!(
        (&refund["payment_id"], &refund["reason"], &refund["sent"]),
        (&json!("p-1"), &json!("requested"), &json!(false))
    );
    assert_eq!(
        (&refund["amount_minor"], &refund["currency"]),
        (&json!(8_000), &json!("CNY"))
    );
    let balance = stand.balance(&voucher).await;
    assert_eq!(
        (&balance.body["free"], &balance.body["paid"]),
        (&json!(2), &json!(0))
    );
    stand
        .pay(&order, 7, "p-2")
        .await
        .refused(409, "order_refunded");
    stand.cancel(&order, 7).await.refused(409, "order_refunded");
    assert_eq!(stand.buy(&voucher, 7).await.body["outcome"], "granted");
}

#[tokio::test]
async fn only_what_is_paid_is_refunded() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 2, "waitlist_capacity": 5}))
        .await;
    let unpaid = stand.order(&voucher, 1).await;
    let cancelled = stand.order(&voucher, 2).await;
    stand.refund(&unpaid).await.refused(409, "order_not_paid");
    stand.cancel(&cancelled, 2).await.is(200);
    stand
        .refund(&cancelled)
        .await
        .refused(409, "order_cancelled");
    stand.order(&voucher, 3).await;
    let waiting = stand.order(&voucher, 4).await;
    stand.settled_list(4, 1).await;
    let waits = stand.refund(&waiting).await;
    waits.refused(409, "order_waiting");
    assert_eq!(waits.header("retry-after"), "2");
    for nobody in ["4711", "abc", "0"] {
        stand.refund(nobody).await.refused(404, "order_not_found");
    }
}

#[tokio::test]
async fn money_is_for_administrators() {
    let stand = Stand::new().await;
    for (method, path) in [
        ("POST", "/v1/admin/orders/1/refunds"),
        ("GET", "/v1/admin/refunds"),
        ("GET", "/v1/admin/reconciliations"),
        ("POST", "/v1/admin/reconciliations"),
        ("GET", "/v1/admin/parked-messages"),
        ("POST", "/v1/admin/parked-messages/1/replay"),
        ("POST", "/v1/admin/parked-messages/1/discard"),
    ] {
        let nobody = stand.call(method, path).answer().await;
        nobody.refused(401, "unauthenticated");
        let buyer = stand.call(method, path).user(7).answer().await;
        buyer.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn refunds_come_in_parts_newest_first() {
    let stand = Stand::new().await;
    for number in 1..=5 {
        let heard = stand.notify(&format!("p-{number}"), "4711", 1).await;
        heard.is(200);
    }
    let mut path = "/v1/admin/refunds?limit=2".to_owned();
    let mut listed = Vec::new();
    loop {
        let part = stand.list(&path).await;
        let items = part.body["items"].as_array().unwrap();
        listed.extend(items.iter().map(|item| item["payment_id"].clone()));
        let Some(cursor) = part.body["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/admin/refunds?limit=2&cursor={cursor}");
    }
    assert_eq!(listed, ["p-5", "p-4", "p-3", "p-2", "p-1"]);
    for path in [
        "/v1/admin/refunds?limit=0",
        "/v1/admin/reconciliations?limit=0",
        "/v1/admin/parked-messages?limit=0",
    ] {
        let refused = stand.get(path).admin().answer().await;
        refused.misfits(&["limit"]);
    }
}

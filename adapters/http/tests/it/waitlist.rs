//! A buyer's place.

use serde_json::json;

use crate::stand::{Answer, Stand};

impl Stand {
    async fn place(&self, method: &str, voucher: &str, user: u64) -> Answer {
        let path = format!("/v1/vouchers/{voucher}/waitlist/me");
        self.call(method, &path).user(user).answer().await
    }
}

#[tokio::test]
async fn a_place_can_be_seen_and_given_up() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 5}))
        .await;
    stand.order(&voucher, 1).await;
    for user in [900, 10, 200] {
        stand.buy(&voucher, user).await.is(202);
    }
    let seen = stand.place("GET", &voucher, 200).await;
    seen.is(200);
    assert_eq!(
        (&seen.body["position"], &seen.body["length"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(seen.body["status"], "waiting");
    for _ in 0..2 {
        let left = stand.place("DELETE", &voucher, 10).await;
        left.is(204);
        assert_eq!(left.raw, "");
    }
    assert_eq!(stand.place("GET", &voucher, 200).await.body["position"], 2);
    stand
        .place("GET", &voucher, 10)
        .await
        .refused(404, "not_waiting");
    stand
        .place("GET", &voucher, 1)
        .await
        .refused(404, "not_waiting");
    stand.place("DELETE", &voucher, 1).await.is(204);
}

#[tokio::test]
async fn who_was_promoted_has_an_order_and_no_place_to_give_up() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 5}))
        .await;
    let first = stand.order(&voucher, 1).await;
    let order = stand.buy(&voucher, 2).await.text("order_id");
    stand.cancel(&first, 1).await.is(200);
    let seen = stand.place("GET", &voucher, 2).await;
    seen.is(200);
    assert_eq!(
        (&seen.body["status"], &seen.body["order_id"]),
        (&json!("promoted"), &json!(order))
    );
    assert!(seen.body["position"].is_null());
    let late = stand.place("DELETE", &voucher, 2).await;
    late.refused(409, "already_promoted");
    assert_eq!(late.body["order_id"], order);
    assert_eq!(
        stand.settled(&order, 2).await.body["status"],
        "pending_payment"
    );
}

#[tokio::test]
async fn a_voucher_that_is_not_there_is_not_found() {
    let stand = Stand::new().await;
    for id in ["99999999", "abc"] {
        stand
            .place("DELETE", id, 2)
            .await
            .refused(404, "voucher_not_found");
    }
    stand
        .place("GET", "99999999", 2)
        .await
        .refused(404, "voucher_not_found");
    stand
        .place("GET", "abc", 2)
        .await
        .refused(404, "voucher_not_found");
    let voucher = stand.voucher(json!({})).await;
    stand.hot.chaos().down(true);
    stand
        .place("DELETE", &voucher, 2)
        .await
        .refused(503, "unavailable");
    stand
        .place("GET", &voucher, 2)
        .await
        .refused(503, "unavailable");
}

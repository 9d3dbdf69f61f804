//! Messages that could not be applied.

use seckill_domain::{BuyerId, Claim, Decision, OrderId, PartitionId, VoucherId};
use serde_json::{Value, json};

use crate::stand::{Answer, Stand};

const PATH: &str = "/v1/admin/parked-messages";
const PARTITION: PartitionId = PartitionId::new(0);

async fn replay(stand: &Stand, id: &str) -> Answer {
    let path = format!("{PATH}/{id}/replay");
    stand.post(&path).admin().answer().await
}

async fn discard(stand: &Stand, id: &str, reason: &str) -> Answer {
    let path = format!("{PATH}/{id}/discard");
    let body = json!({"reason": reason});
    stand.post(&path).admin().json(&body).answer().await
}

/// The messages, once there are so many.
async fn messages(stand: &Stand, count: usize) -> Vec<Value> {
    let all = async || {
        let list = stand.list(&format!("{PATH}?state=all")).await;
        list.body["items"].as_array().unwrap().clone()
    };
    stand.wait_until(async || all().await.len() >= count).await;
    all().await
}

/// A grant of a voucher that is not there.
fn grant(voucher: u64, order: u64) -> Decision {
    let claim = Claim {
        order: OrderId::new(order),
        voucher: VoucherId::new(voucher),
        buyer: BuyerId::new(7),
        quantity: 1,
        key: None,
    };
    Decision::Granted(claim)
}

#[tokio::test]
async fn what_cannot_be_read_is_listed_and_given_up() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.hot.plant_entry(PARTITION, "junk \u{1}").unwrap();
    stand.order(&voucher, 7).await;
    let message = &messages(&stand, 1).await[0];
    assert_eq!(
        (&message["reason"], &message["state"], &message["partition"]),
        (&json!("unreadable"), &json!("parked"), &json!(0))
    );
    assert!(message["raw"].as_str().unwrap().contains("junk"));
    assert!(message["voucher_id"].is_null() && message["order_id"].is_null());
    let id = message["id"].as_str().unwrap();
    replay(&stand, id)
        .await
        .refused(409, "parked_message_unfit");
    for reason in ["left behind by a test", "once more"] {
        let given_up = discard(&stand, id, reason).await;
        given_up.is(200);
        assert_eq!(given_up.body, json!({"id": id, "state": "discarded"}));
    }
    replay(&stand, id)
        .await
        .refused(409, "parked_message_settled");
    assert_eq!(stand.list(PATH).await.body["items"], json!([]));
    let kept = &messages(&stand, 1).await[0];
    assert_eq!(kept["discard_reason"], "left behind by a test");
}

#[tokio::test]
async fn what_can_be_applied_by_now_is_replayed() {
    let stand = Stand::new().await;
    let first = stand.voucher(json!({})).await;
    let next = first.parse::<u64>().unwrap() + 1;
    assert!(
        stand
            .hot
            .plant_decisions(PARTITION, vec![grant(next, 4_711)])
    );
    stand.order(&first, 8).await;
    let message = &messages(&stand, 1).await[0];
    assert_eq!(message["reason"], "unknown_voucher");
    assert_eq!(
        (&message["order_id"], &message["user_id"]),
        (&json!("4711"), &json!("7"))
    );
    let id = message["id"].as_str().unwrap();
    replay(&stand, id)
        .await
        .refused(409, "parked_message_unfit");
    assert_eq!(stand.draft(json!({})).await, next.to_string());
    stand.steer(&next.to_string(), "publish").await.is(200);
    for _ in 0..2 {
        let replayed = replay(&stand, id).await;
        replayed.is(200);
        assert_eq!(replayed.body, json!({"id": id, "state": "replayed"}));
    }
    let order = stand.get("/v1/orders/4711").user(7).answer().await;
    assert_eq!(order.body["status"], "pending_payment");
    discard(&stand, id, "too late")
        .await
        .refused(409, "parked_message_settled");
}

#[tokio::test]
async fn a_message_is_named_and_given_up_for_a_reason() {
    let stand = Stand::new().await;
    for id in ["4711", "0", "01", "x", "18446744073709551616"] {
        replay(&stand, id)
            .await
            .refused(404, "parked_message_not_found");
        discard(&stand, id, "why")
            .await
            .refused(404, "parked_message_not_found");
    }
    for reason in ["", "  ", "a\u{0}b", &"x".repeat(201)] {
        discard(&stand, "1", reason).await.misfits(&["reason"]);
    }
    let path = format!("{PATH}/1/discard");
    let missing = stand.post(&path).admin().raw("{}").answer().await;
    missing.misfits(&["reason"]);
    let list = stand.get(&format!("{PATH}?state=gone")).admin();
    list.answer().await.misfits(&["state"]);
}

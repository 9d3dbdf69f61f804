//! What the payment provider says.

use std::time::Duration;

use seckill_http::{HttpSettings, NoticeKey};
use serde_json::{Value, json};

use crate::stand::{Answer, SECRET, Stand};

const PATH: &str = "/v1/payments/notifications";

/// Outcome and reason of a settlement.
#[track_caller]
fn settled(answer: &Answer, outcome: &str, reason: Option<&str>) {
    answer.is(200);
    assert_eq!(answer.body["outcome"], outcome, "{answer:?}");
    assert_eq!(answer.body.get("reason"), reason.map(Value::from).as_ref());
}

async fn reasons(stand: &Stand) -> Vec<(String, String)> {
    let list = stand.list("/v1/admin/refunds").await;
    let items = list.body["items"].as_array().unwrap();
    let of = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    items
        .iter()
        .map(|item| (of(item, "payment_id"), of(item, "reason")))
        .collect()
}

#[tokio::test]
async fn money_that_moved_pays_its_order_once() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    for _ in 0..3 {
        let heard = stand.notify("p-1", &order, 8_000).await;
        settled(&heard, "paid", None);
        assert_eq!(heard.body["payment_id"], "p-1");
    }
    let seen = stand.settled(&order, 7).await;
    assert_eq!(seen.body["status"], "paid");
    // What the buyer says of the same payment is true as well.
    stand.pay(&order, 7, "p-1").await.is(200);
    assert_eq!(reasons(&stand).await, []);
    assert_eq!(stand.balance(&voucher).await.body["paid"], 1);
}

#[tokio::test]
async fn money_that_may_not_stay_leaves_a_record_and_a_clear_answer() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"payment_window_s": 60})).await;
    let late = stand.order(&voucher, 1).await;
    let (paid, gone) = (
        stand.order(&voucher, 2).await,
        stand.order(&voucher, 3).await,
    );
    stand.pay(&paid, 2, "p-2").await.is(200);
    stand.cancel(&gone, 3).await.is(200);
    for (payment, order, amount, reason) in [
        ("p-second", &paid, 8_000, "second_payment"),
        ("p-gone", &gone, 8_000, "too_late"),
        ("p-wrong", &late, 7_999, "wrong_amount"),
        ("p-nobody", &"4711".to_owned(), 8_000, "unknown_order"),
    ] {
        for _ in 0..2 {
            let heard = stand.notify(payment, order, amount).await;
            settled(&heard, "refunded", Some(reason));
        }
    }
    stand.clock.advance(Duration::from_mins(2));
    let heard = stand.notify("p-late", &late, 8_000).await;
    settled(&heard, "refunded", Some("too_late"));
    // A payment that was settled is settled, and whoever says something else of it is told.
    for (order, amount) in [(&late, 8_000), (&paid, 7_999)] {
        let heard = stand.notify("p-wrong", order, amount).await;
        heard.refused(409, "payment_used");
    }
    let recorded = [
        ("p-late", "too_late"),
        ("p-nobody", "unknown_order"),
        ("p-wrong", "wrong_amount"),
        ("p-gone", "too_late"),
        ("p-second", "second_payment"),
    ];
    let recorded = recorded.map(|(payment, reason)| (payment.to_owned(), reason.to_owned()));
    assert_eq!(reasons(&stand).await, recorded);
}

#[tokio::test]
async fn a_queued_order_is_not_judged_yet() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let queued = stand.notify("p-1", &order, 8_000).await;
    queued.refused(409, "order_queued");
    assert_eq!(queued.header("retry-after"), "1");
    stand.resume_writer();
    stand.settled(&order, 7).await;
    let heard = stand.notify("p-1", &order, 8_000).await;
    settled(&heard, "paid", None);
}

#[tokio::test]
async fn only_the_provider_is_heard_and_only_of_now() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let body =
        json!({"payment_id": "p", "order_id": order, "amount_minor": 8_000, "currency": "CNY"});
    let body = body.to_string();
    let key = NoticeKey::new(SECRET.as_bytes()).unwrap();
    let other = NoticeKey::new(&[7; 32]).unwrap();
    let now = stand.now_ms() / 1_000;
    let signed = |at: i64, key: &NoticeKey| {
        let signature = key.sign(at, body.as_bytes());
        stand
            .post(PATH)
            .header("payment-timestamp", &at.to_string())
            .header("payment-signature", &signature)
    };
    for forged in [
        stand.post(PATH).raw(body.clone()),
        stand.post(PATH).admin().raw(body.clone()),
        signed(now, &other).raw(body.clone()),
        signed(now, &key).raw(body.replace("8000", "1")),
        signed(now - 400, &key).raw(body.clone()),
        signed(now + 400, &key).raw(body.clone()),
        signed(now, &key)
            .header("payment-signature", "00")
            .raw(body.clone()),
    ] {
        forged.answer().await.refused(401, "invalid_signature");
    }
    assert_eq!(
        stand.settled(&order, 7).await.body["status"],
        "pending_payment"
    );
    let fits = signed(now - 290, &key).raw(body.clone()).answer().await;
    settled(&fits, "paid", None);
}

#[tokio::test]
async fn what_is_signed_and_does_not_fit_is_named() {
    let stand = Stand::new().await;
    let good = json!({"payment_id": "p", "order_id": "1", "amount_minor": 1, "currency": "CNY"});
    for (field, bad) in [
        ("payment_id", json!("a b")),
        ("order_id", json!("x")),
        ("order_id", json!("0")),
        ("order_id", json!(1)),
        ("amount_minor", json!(-1)),
        // More than the document says: clients read 63 bits.
        ("amount_minor", json!(1_u64 << 63)),
        ("currency", json!("yuan")),
    ] {
        let mut body = good.clone();
        body[field] = bad;
        let heard = stand.notice(&body.to_string()).answer().await;
        heard.misfits(&[field]);
    }
    let mut most = good.clone();
    most["amount_minor"] = json!(i64::MAX);
    let heard = stand.notice(&most.to_string()).answer().await;
    settled(&heard, "refunded", Some("unknown_order"));
    let all = json!({"payment_id": "", "order_id": "", "amount_minor": 1, "currency": ""});
    let heard = stand.notice(&all.to_string()).answer().await;
    heard.misfits(&["payment_id", "order_id", "currency"]);
    let mut more = good;
    more["payment_id"] = json!("q");
    more["event"] = json!("charge.succeeded");
    let heard = stand.notice(&more.to_string()).answer().await;
    settled(&heard, "refunded", Some("unknown_order"));
    let huge = "x".repeat(5_000);
    let heard = stand.notice(&huge).answer().await;
    heard.refused(413, "payload_too_large");
}

#[tokio::test]
async fn a_ledger_that_is_away_loses_no_money() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    stand.ledger.down(true);
    let heard = stand.notify("p", &order, 8_000).await;
    heard.refused(503, "unavailable");
    stand.ledger.down(false);
    let heard = stand.notify("p", &order, 8_000).await;
    settled(&heard, "paid", None);
}

#[tokio::test]
async fn without_a_secret_the_provider_is_told_to_come_again() {
    let stand = Stand::without_notices(HttpSettings::default()).await;
    let heard = stand.notify("p", "1", 1).await;
    heard.refused(503, "unavailable");
    assert_eq!(heard.body["retryable"], true);
    assert!(!heard.raw.contains("secret"), "{heard:?}");
}

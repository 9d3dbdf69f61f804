//! Buying: every answer of the contract.

use std::time::Duration;

use axum::body::Body;
use serde_json::{Value, json};

use crate::stand::{BACKLOG_MAX, Stand};

/// Stands for: the script says yes, and not which order (2.8).
#[tokio::test]
async fn a_purchase_is_granted_and_becomes_an_order() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 3})).await;
    let bought = stand.buy(&voucher, 42).await;
    bought.is(202);
    assert_eq!(bought.body["outcome"], "granted");
    assert_eq!(bought.body["status"], "queued");
    assert!(bought.body["poll_after_ms"].as_u64().unwrap() > 0);
    let order = bought.text("order_id");
    assert_eq!(bought.header("location"), format!("/v1/orders/{order}"));
    let seen = stand.settled(&order, 42).await;
    assert_eq!(seen.body["status"], "pending_payment");
    assert_eq!(seen.body["user_id"], "42");
    assert_eq!(seen.body["voucher_id"], voucher);
}

#[tokio::test]
async fn the_body_may_be_left_out_and_unknown_fields_are_ignored() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 9, "per_buyer_limit": 9}))
        .await;
    for (user, body, units) in [
        (1, "", 1),
        (2, "{}", 1),
        (3, " \n{\"quantity\": 2, \"colour\": \"red\"}\n", 2),
    ] {
        let bought = stand.purchase(&voucher, user).raw(body).answer().await;
        bought.is(202);
        let order = stand.settled(&bought.text("order_id"), user).await;
        assert_eq!(order.body["quantity"], units, "{body}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_named_and_buys_nothing() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 9})).await;
    let digits = format!("{{\"quantity\": {}}}", "9".repeat(400));
    for (body, field) in [
        ("{\"quantity\": 0}", "quantity"),
        ("{\"quantity\": -1}", "quantity"),
        ("{\"quantity\": 1000001}", "quantity"),
        ("{\"quantity\": 4294967296}", "quantity"),
        ("{\"quantity\": \"1\"}", "quantity"),
        ("{\"quantity\": null}", "quantity"),
        ("{\"quantity\": 1.5}", "quantity"),
        ("{\"quantity\": 1, \"quantity\": 2}", "quantity"),
        (&digits, ""),
        ("{", ""),
        ("null", ""),
        ("[2]", ""),
        ("2", ""),
        ("{} {}", ""),
        ("{\"quantity\": 1", ""),
        ("\u{feff}{}", ""),
    ] {
        let answer = stand
            .purchase(&voucher, 7)
            .raw(body.to_owned())
            .answer()
            .await;
        answer.misfits(&[field]);
    }
    let balance = stand.balance(&voucher).await;
    assert_eq!(balance.body["free"], 9);
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_json_is_refused() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(4_096));
    let length = large.len().to_string();
    let announced = stand.purchase(&voucher, 7).raw(large.clone());
    announced
        .header("content-length", &length)
        .answer()
        .await
        .refused(413, "payload_too_large");
    let chunks = futures::stream::iter(vec![Ok::<_, std::io::Error>(large)]);
    let chunked = stand.purchase(&voucher, 7).raw(Body::from_stream(chunks));
    chunked.answer().await.refused(413, "payload_too_large");
    let form = stand
        .purchase(&voucher, 7)
        .raw("quantity=1")
        .content_type("text/plain");
    form.answer().await.refused(415, "unsupported_media_type");
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/vnd.shop+json",
    ] {
        let answer = stand
            .purchase(&voucher, 7)
            .raw("{}")
            .content_type(kind)
            .answer()
            .await;
        assert!(answer.status < 300, "{kind}: {answer:?}");
    }
}

#[tokio::test]
async fn who_is_not_known_is_told_so_before_anything_else() {
    let stand = Stand::new().await;
    let answer = stand
        .post("/v1/vouchers/nonsense/purchases")
        .raw("{")
        .answer()
        .await;
    answer.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_voucher_that_buyers_cannot_see_is_not_found() {
    let stand = Stand::new().await;
    let draft = stand.draft(json!({})).await;
    for id in [
        draft.as_str(),
        "99999999",
        "abc",
        "0",
        "01",
        "-1",
        "%31%30",
        "18446744073709551616",
    ] {
        stand.buy(id, 7).await.refused(404, "voucher_not_found");
    }
}

#[tokio::test]
async fn a_sale_that_has_not_opened_says_when_it_does() {
    let stand = Stand::new().await;
    let opens_at = stand.time(90_500);
    let voucher = stand.voucher(json!({"opens_at": opens_at})).await;
    let early = stand.buy(&voucher, 7).await;
    early.refused(409, "not_open");
    assert_eq!(early.body["opens_at"], opens_at);
    assert_eq!(early.body["retryable"], true);
    let seconds: u64 = early.header("retry-after").parse().unwrap();
    assert!((85..=91).contains(&seconds), "{seconds}");
    stand.clock.advance(Duration::from_secs(91));
    stand.buy(&voucher, 7).await.is(202);
}

#[tokio::test]
async fn a_sale_that_is_over_or_paused_says_so_and_knows_earlier_grants() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"per_buyer_limit": 2})).await;
    let first = stand.purchase(&voucher, 7).key("k").answer().await;
    first.is(202);
    for (verb, status, code) in [("pause", 409, "paused"), ("close", 410, "closed")] {
        stand.steer(&voucher, verb).await.is(200);
        stand.buy(&voucher, 8).await.refused(status, code);
        let again = stand.purchase(&voucher, 7).key("\"k\"").answer().await;
        again.is(202);
        assert_eq!(again.body["outcome"], "granted");
        assert_eq!(again.body["order_id"], first.body["order_id"]);
    }
    let short = stand
        .voucher(json!({"closes_at": stand.time(60_000)}))
        .await;
    stand.clock.advance(Duration::from_mins(1));
    stand.buy(&short, 7).await.refused(410, "closed");
}

#[tokio::test]
async fn nothing_left_is_sold_out() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 1})).await;
    stand.buy(&voucher, 7).await.is(202);
    let late = stand.buy(&voucher, 8).await;
    late.refused(409, "sold_out");
    assert_eq!(late.body["retryable"], false);
    assert_eq!(late.body["effect"], "none");
}

#[tokio::test]
async fn the_limit_is_answered_with_the_orders_or_with_what_is_left() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"per_buyer_limit": 3, "total_units": 9}))
        .await;
    let two = json!({"quantity": 2});
    let first = stand.purchase(&voucher, 7).json(&two).answer().await;
    first.is(202);
    let third = stand.purchase(&voucher, 7).json(&two).answer().await;
    third.refused(409, "limit_exceeded");
    assert_eq!(third.body["remaining"], 1);
    let second = stand.buy(&voucher, 7).await;
    second.is(202);
    let held = stand.buy(&voucher, 7).await;
    held.is(200);
    assert_eq!(held.body["outcome"], "already_held");
    assert_eq!(held.body["order_id"], first.body["order_id"]);
    let both = [
        first.body["order_id"].clone(),
        second.body["order_id"].clone(),
    ];
    assert_eq!(held.body["order_ids"], Value::from(both.to_vec()));
}

#[tokio::test]
async fn a_key_gives_the_same_order_and_fits_one_quantity() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"per_buyer_limit": 5})).await;
    let first = stand.purchase(&voucher, 7).key("k").answer().await;
    stand.settled(&first.text("order_id"), 7).await;
    let again = stand
        .purchase(&voucher, 7)
        .key("k")
        .json(&json!({"quantity": 1}))
        .answer()
        .await;
    again.is(202);
    assert_eq!(again.body["order_id"], first.body["order_id"]);
    assert_eq!(again.body["status"], "pending_payment");
    assert!(again.body.get("poll_after_ms").is_none());
    let other = stand
        .purchase(&voucher, 7)
        .key("k")
        .json(&json!({"quantity": 2}))
        .answer()
        .await;
    other.refused(422, "idempotency_key_reused");
    let new = stand.purchase(&voucher, 7).key("k2").answer().await;
    assert_ne!(new.body["order_id"], first.body["order_id"]);
    let stranger = stand.purchase(&voucher, 8).key("k").answer().await;
    assert_ne!(stranger.body["order_id"], first.body["order_id"]);
    for bad in ["", "a b", &"k".repeat(65)] {
        let answer = stand.purchase(&voucher, 7).key(bad).answer().await;
        answer.misfits(&["Idempotency-Key"]);
    }
}

#[tokio::test]
async fn who_finds_nothing_waits_once() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 2}))
        .await;
    stand.buy(&voucher, 1).await.is(202);
    let joined = stand.purchase(&voucher, 9).key("k").answer().await;
    joined.is(202);
    assert_eq!(joined.body["outcome"], "waitlisted");
    assert_eq!(joined.body["position"], 1);
    assert_eq!(
        joined.header("location"),
        format!("/v1/orders/{}", joined.text("order_id"))
    );
    assert_eq!(stand.buy(&voucher, 2).await.body["position"], 2);
    stand.buy(&voucher, 3).await.refused(409, "sold_out");
    let replayed = stand.purchase(&voucher, 9).key("k").answer().await;
    for again in [stand.buy(&voucher, 9).await, replayed] {
        again.is(200);
        assert_eq!(again.body["outcome"], "waitlisted");
        assert_eq!(again.body["order_id"], joined.body["order_id"]);
        assert_eq!(again.body["position"], 1);
    }
    assert_eq!(stand.buy(&voucher, 1).await.body["outcome"], "already_held");
}

#[tokio::test]
async fn a_gate_that_fails_is_unavailable_with_its_effect() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.hot.chaos().fail_before("purchase_gate.admit", 1);
    let refused = stand.buy(&voucher, 7).await;
    refused.refused(503, "unavailable");
    assert_eq!(
        (&refused.body["effect"], &refused.body["retryable"]),
        (&json!("none"), &json!(true))
    );
    stand.hot.chaos().fail_after("purchase_gate.admit", 3);
    let lost = stand.buy(&voucher, 7).await;
    lost.refused(503, "unavailable");
    assert_eq!(lost.body["effect"], "unknown");
    assert_eq!(stand.hot.chaos().struck(), 4);
    // Asking again, as it says, finds out.
    assert_eq!(stand.buy(&voucher, 7).await.body["outcome"], "already_held");
}

#[tokio::test]
async fn a_full_backlog_and_a_gate_that_is_not_loaded_are_unavailable() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 100})).await;
    stand.pause_writer().await;
    for user in 1..=BACKLOG_MAX {
        stand.buy(&voucher, user).await.is(202);
    }
    stand.buy(&voucher, 999).await.refused(503, "unavailable");
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.stop_loading();
    stand.hot.wipe();
    stand.buy(&voucher, 7).await.refused(503, "unavailable");
}

#[tokio::test]
async fn a_purchase_is_finished_when_the_client_has_gone() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.hot.chaos().fail_after("purchase_gate.admit", 1);
    let request = stand.purchase(&voucher, 7).key("k").request();
    let answer = stand.app.answer(request);
    // The first answer of the gate is lost, so the purchase is still asking when he leaves.
    drop(tokio::time::timeout(Duration::from_millis(5), answer).await);
    stand.app.drain().await;
    assert_eq!(stand.hot.chaos().struck(), 1);
    let listed = stand.settled_list(7, 1).await;
    assert_eq!(listed.body["items"][0]["voucher_id"], voucher);
}

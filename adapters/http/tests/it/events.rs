//! Following an order.

use std::time::Duration;

use seckill_domain::{EventId, OrderId};
use seckill_http::HttpSettings;
use serde_json::json;

use crate::stand::{Next, Stand, Told};

/// Name and status of an event.
fn what(told: &Told) -> (&str, &str) {
    (&told.name, told.data["status"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_stream_begins_with_the_order_and_tells_what_happens() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    let first = story.event().await;
    assert_eq!(what(&first), ("snapshot", "queued"));
    assert_eq!(
        (&first.data["id"], &first.data["user_id"]),
        (&json!(order), &json!("7"))
    );
    stand.resume_writer();
    let confirmed = story.event().await;
    assert_eq!(what(&confirmed), ("status", "pending_payment"));
    assert_eq!(confirmed.data["event_id"], confirmed.id);
    assert_eq!(
        (&confirmed.data["order_id"], &confirmed.data["voucher_id"]),
        (&json!(order), &json!(voucher))
    );
    assert!(confirmed.data["at"].as_str().unwrap().ends_with('Z'));
    stand.pay(&order, 7, "p").await.is(200);
    let paid = story.event().await;
    assert_eq!(what(&paid), ("status", "paid"));
    assert!(paid.id.parse::<u64>().unwrap() > confirmed.id.parse::<u64>().unwrap());
    stand.notify("p-2", &order, 8_000).await.is(200);
    assert_eq!(what(&story.event().await), ("refund_recorded", ""));
    stand.refund(&order).await.is(200);
    assert_eq!(what(&story.event().await), ("status", "refunded"));
    assert_eq!(what(&story.event().await), ("refund_recorded", ""));
    assert!(story.is_quiet(Duration::from_millis(200)).await);
}

#[tokio::test]
async fn what_was_missed_arrives_once_after_coming_back() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    let seen = story.event().await;
    assert_eq!(what(&seen), ("snapshot", "pending_payment"));
    drop(story);
    stand.pay(&order, 7, "p").await.is(200);
    let mut back = stand.follow(&order, 7, Some(&seen.id)).await.unwrap();
    let missed = back.event().await;
    assert_eq!(what(&missed), ("status", "paid"));
    stand.refund(&order).await.is(200);
    assert_eq!(what(&back.event().await), ("status", "refunded"));
    assert_eq!(what(&back.event().await), ("refund_recorded", ""));
    assert!(back.is_quiet(Duration::from_millis(200)).await);
    // Whoever has seen nothing can have everything.
    let mut all = stand.follow(&order, 7, Some("0")).await.unwrap();
    for status in ["pending_payment", "paid", "refunded"] {
        assert_eq!(what(&all.event().await), ("status", status));
    }
    let mut none = stand.follow(&order, 7, None).await.unwrap();
    let snapshot = none.event().await;
    assert_eq!(what(&snapshot), ("snapshot", "refunded"));
    assert!(none.is_quiet(Duration::from_millis(200)).await);
}

/// A relay that died before it wrote down what it had told tells all of it again: at least once. Whoever
/// follows hears of each once, before and after coming back.
#[tokio::test]
async fn what_is_announced_again_is_told_once() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    story.event().await;
    stand.pay(&order, 7, "p").await.is(200);
    assert_eq!(what(&story.event().await), ("status", "paid"));
    stand.notify("p-2", &order, 8_000).await.is(200);
    let last = story.event().await;
    assert_eq!(what(&last), ("refund_recorded", ""));
    let (hot, ledger) = (stand.hot.ports(), stand.ledger.ports());
    let id = OrderId::new(order.parse().unwrap());
    let all = ledger.events.of_order(id, EventId::default(), 100).await;
    let all = all.unwrap();
    assert_eq!(all.len(), 3);
    let mut back = stand.follow(&order, 7, Some(&last.id)).await.unwrap();
    for _ in 0..3 {
        hot.notifier.notify(&all).await.unwrap();
    }
    assert!(story.is_quiet(Duration::from_millis(200)).await);
    assert!(back.is_quiet(Duration::from_millis(100)).await);
    stand.refund(&order).await.is(200);
    for story in [&mut story, &mut back] {
        assert_eq!(what(&story.event().await), ("status", "refunded"));
        assert_eq!(what(&story.event().await), ("refund_recorded", ""));
    }
}

#[tokio::test]
async fn who_waits_hears_that_he_was_given_units() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 5}))
        .await;
    let holder = stand.order(&voucher, 1).await;
    let waiter = stand.buy(&voucher, 2).await.text("order_id");
    stand.settled_list(2, 1).await;
    let mut story = stand.follow(&waiter, 2, None).await.unwrap();
    let first = story.event().await;
    assert_eq!(what(&first), ("snapshot", "waiting"));
    assert_eq!(first.data["position"], 1);
    stand.cancel(&holder, 1).await.is(200);
    let promoted = story.event().await;
    assert_eq!(what(&promoted), ("promoted", "pending_payment"));
    assert!(story.is_quiet(Duration::from_millis(200)).await);
    stand.pay(&waiter, 2, "p").await.is(200);
    assert_eq!(what(&story.event().await), ("status", "paid"));
}

#[tokio::test]
async fn a_place_is_told_once_though_the_ledger_has_it_later() {
    let stand = Stand::new().await;
    let voucher = stand
        .voucher(json!({"total_units": 1, "waitlist_capacity": 5}))
        .await;
    let holder = stand.order(&voucher, 1).await;
    stand.pause_writer().await;
    let waiter = stand.buy(&voucher, 2).await.text("order_id");
    let mut story = stand.follow(&waiter, 2, None).await.unwrap();
    let first = story.event().await;
    assert_eq!((what(&first), &*first.id), (("snapshot", "waiting"), "0"));
    stand.resume_writer();
    let mut all = stand.follow(&waiter, 2, Some("0")).await.unwrap();
    assert_eq!(what(&all.event().await), ("status", "waiting"));
    stand.cancel(&holder, 1).await.is(200);
    assert_eq!(what(&story.event().await), ("promoted", "pending_payment"));
}

#[tokio::test]
async fn who_has_seen_what_has_not_happened_is_shown_the_order() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let last = stand
        .follow(&order, 7, None)
        .await
        .unwrap()
        .event()
        .await
        .id;
    let beyond = u64::MAX.to_string();
    let mut story = stand.follow(&order, 7, Some(&beyond)).await.unwrap();
    let first = story.event().await;
    assert_eq!(what(&first), ("snapshot", "pending_payment"));
    assert_eq!(first.id, last);
    stand.pay(&order, 7, "p").await.is(200);
    assert_eq!(what(&story.event().await), ("status", "paid"));
    // The newest itself has been seen.
    let mut story = stand.follow(&order, 7, Some(&last)).await.unwrap();
    assert_eq!(what(&story.event().await), ("status", "paid"));
}

#[tokio::test]
async fn news_that_nobody_announced_is_found_and_silence_is_filled() {
    let settings = HttpSettings {
        stream_heartbeat: Duration::from_millis(100),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    story.event().await;
    let comment = Next::Comment("still here".to_owned());
    for _ in 0..2 {
        assert_eq!(story.next().await, comment);
    }
    stand.hot.mute_notices(true);
    stand.pay(&order, 7, "p").await.is(200);
    assert_eq!(what(&story.event().await), ("status", "paid"));
}

#[tokio::test]
async fn a_stream_survives_a_ledger_that_is_away() {
    let settings = HttpSettings {
        stream_heartbeat: Duration::from_millis(50),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    story.event().await;
    stand.pay(&order, 7, "p").await.is(200);
    stand.ledger.down(true);
    assert!(matches!(story.next().await, Next::Comment(_)));
    stand.ledger.down(false);
    assert_eq!(what(&story.event().await), ("status", "paid"));
}

#[tokio::test]
async fn a_stream_ends_when_its_time_is_over_and_when_the_service_stops() {
    let settings = HttpSettings {
        stream_lasts: Duration::from_millis(300),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    story.event().await;
    while story.next().await != Next::End {}
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let mut story = stand.follow(&order, 7, None).await.unwrap();
    story.event().await;
    stand.stopping.cancel();
    assert_eq!(story.next().await, Next::End);
}

#[tokio::test]
async fn streams_are_counted_and_do_not_count_as_requests() {
    let settings = HttpSettings {
        streams_max: 3,
        streams_per_buyer_max: 2,
        in_flight_max: 1,
        request_deadline: Duration::from_millis(500),
        stream_heartbeat: Duration::from_millis(700),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    let (order, other) = (
        stand.order(&voucher, 7).await,
        stand.order(&voucher, 8).await,
    );
    let mut first = stand.follow(&order, 7, None).await.unwrap();
    let second = stand.follow(&order, 7, None).await.unwrap();
    let refused = stand.follow(&order, 7, None).await.err().unwrap();
    refused.refused(429, "rate_limited");
    let third = stand.follow(&other, 8, None).await.unwrap();
    let refused = stand.follow(&other, 8, None).await.err().unwrap();
    refused.refused(503, "overloaded");
    let metrics = stand.get("/metrics").answer().await;
    assert!(metrics.raw.contains("seckill_http_event_streams 3"));
    // Beyond the deadline of requests.
    first.event().await;
    assert!(matches!(first.next().await, Next::Comment(_)));
    drop((second, third));
    stand.follow(&other, 8, None).await.unwrap();
    drop(first);
    let metrics = stand.get("/metrics").answer().await;
    assert!(metrics.raw.contains("seckill_http_event_streams 0"));
}

#[tokio::test]
async fn only_the_buyer_follows_his_order() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let order = stand.order(&voucher, 7).await;
    let path = format!("/v1/orders/{order}/events");
    stand
        .get(&path)
        .user(8)
        .answer()
        .await
        .refused(404, "order_not_found");
    stand
        .get("/v1/orders/abc/events")
        .user(7)
        .answer()
        .await
        .refused(404, "order_not_found");
    stand
        .get(&path)
        .answer()
        .await
        .refused(401, "unauthenticated");
    let bad = stand.get(&path).user(7).header("last-event-id", "x");
    bad.answer().await.misfits(&["Last-Event-ID"]);
    let metrics = stand.get("/metrics").answer().await;
    assert!(metrics.raw.contains("seckill_http_event_streams 0"));
}

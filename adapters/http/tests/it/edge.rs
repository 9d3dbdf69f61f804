//! What every request passes.

use std::time::Duration;

use seckill_http::HttpSettings;
use serde_json::json;

use crate::stand::Stand;

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let stand = Stand::new().await;
    for path in [
        "/",
        "/v1",
        "/v2/vouchers",
        "/v1/vouchers/",
        "/v1/orders/1/",
        "/swagger-ui/nothing.js",
    ] {
        stand.get(path).answer().await.refused(404, "not_found");
    }
    let head = stand.call("HEAD", "/nowhere").answer().await;
    head.is(404);
}

#[tokio::test]
async fn a_method_that_is_not_known_is_a_problem_with_the_ones_that_are() {
    let stand = Stand::new().await;
    for (method, path, allowed) in [
        ("GET", "/v1/vouchers/1/purchases", "POST"),
        ("DELETE", "/v1/vouchers", "GET,HEAD"),
        ("PUT", "/v1/vouchers/1/waitlist/me", "GET,HEAD,DELETE"),
        ("OPTIONS", "/v1/orders/1/payments", "POST"),
        ("POST", "/livez", "GET,HEAD"),
    ] {
        let answer = stand.call(method, path).answer().await;
        answer.refused(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
    stand.call("HEAD", "/v1/vouchers").answer().await.is(200);
}

#[tokio::test]
async fn a_panic_is_a_problem_and_the_next_request_is_answered() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let read = stand.get("/v1/orders").user(7);
    stand.clock.panic_once();
    let answer = read.answer().await;
    answer.refused(500, "internal");
    assert_eq!(answer.body["effect"], "none");
    let write = stand.purchase(&voucher, 7);
    stand.clock.panic_once();
    let answer = write.answer().await;
    answer.refused(500, "internal");
    assert_eq!(answer.body["effect"], "unknown");
    stand.buy(&voucher, 7).await.is(202);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_unavailable() {
    let settings = HttpSettings {
        request_deadline: Duration::from_millis(150),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    stand.stop_loading();
    stand.hot.wipe();
    let late = stand.buy(&voucher, 7).await;
    late.refused(503, "unavailable");
    assert_eq!(late.body["effect"], "unknown");
    assert_eq!(late.header("retry-after"), "1");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let settings = HttpSettings {
        body_timeout: Duration::from_millis(50),
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    let never = futures::stream::pending::<Result<String, std::io::Error>>();
    let slow = stand
        .purchase(&voucher, 7)
        .raw(axum::body::Body::from_stream(never));
    slow.answer().await.refused(408, "request_timeout");
    let broken = futures::stream::iter([Err::<String, _>(std::io::Error::other("gone"))]);
    let broken = stand
        .purchase(&voucher, 7)
        .raw(axum::body::Body::from_stream(broken));
    broken.answer().await.misfits(&[""]);
}

#[tokio::test]
async fn too_many_requests_at_once_are_shed_but_health_is_answered() {
    let settings = HttpSettings {
        in_flight_max: 2,
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    let shed = async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        for path in ["/livez", "/readyz", "/metrics"] {
            stand.get(path).answer().await.is(200);
        }
        let shed = stand.get("/v1/vouchers").answer().await;
        stand.resume_writer();
        shed
    };
    let (_, _, shed) = tokio::join!(stand.pay(&order, 7, "p"), stand.pay(&order, 7, "p"), shed);
    shed.refused(503, "overloaded");
    assert_eq!(
        (&shed.body["effect"], &shed.body["retryable"]),
        (&json!("none"), &json!(true))
    );
    stand.get("/v1/vouchers").answer().await.is(200);
}

#[tokio::test]
async fn clients_who_leave_cannot_pile_up_commands() {
    let settings = HttpSettings {
        in_flight_max: 2,
        ..HttpSettings::default()
    };
    let stand = Stand::with(settings).await;
    let voucher = stand.voucher(json!({})).await;
    stand.pause_writer().await;
    let order = stand.buy(&voucher, 7).await.text("order_id");
    for _ in 0..4 {
        let request = stand
            .post(&format!("/v1/orders/{order}/cancellation"))
            .user(7)
            .request();
        let left = tokio::time::timeout(Duration::from_millis(20), stand.app.answer(request)).await;
        assert!(left.is_err());
    }
    stand.cancel(&order, 7).await.refused(503, "overloaded");
    stand.resume_writer();
    stand.app.drain().await;
}

#[tokio::test]
async fn a_request_has_an_id() {
    let stand = Stand::new().await;
    let mine = stand
        .get("/v1/nothing")
        .header("x-request-id", "mine-1")
        .answer()
        .await;
    assert_eq!(mine.body["request_id"], "mine-1");
    assert_eq!(mine.header("x-request-id"), "mine-1");
    let bad = stand
        .get("/v1/nothing")
        .header("x-request-id", "a b")
        .answer()
        .await;
    assert_ne!(bad.body["request_id"], "a b");
    let (one, two) = (
        stand.get("/livez").answer().await,
        stand.get("/livez").answer().await,
    );
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}

#[tokio::test]
async fn answers_are_not_kept_and_not_guessed_at() {
    let stand = Stand::new().await;
    let answer = stand.get("/v1/vouchers").answer().await;
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

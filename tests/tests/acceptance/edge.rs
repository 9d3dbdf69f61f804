//! The edge itself: paths, methods, request ids, rate limits, health.

use std::time::Duration;

use seckill_tests::harness::{Call, Offer, Site, Token, buyer, crowd, eventually};

use crate::on_every_stack;

on_every_stack!(
    what_is_not_there_is_a_problem_too,
    every_answer_has_a_request_id,
    an_eager_buyer_is_slowed_down,
    administrators_are_not_slowed_down,
    health_and_metrics_are_open,
    the_document_describes_the_api,
);

async fn what_is_not_there_is_a_problem_too(site: &Site) {
    let shop = site.shop();
    for path in [
        "/",
        "/v1",
        "/v1/nothing",
        "/v1/vouchers/1/purchases/2",
        "/swagger-ui/nothing.js",
    ] {
        let reply = shop.ask(Call::get(path).by(buyer())).await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text);
        reply.assert_is_problem();
    }
    for (method, path, allowed) in [
        ("DELETE", "/v1/orders", "GET"),
        ("PUT", "/v1/vouchers", "GET"),
        ("GET", "/v1/vouchers/1/purchases", "POST"),
        ("POST", "/livez", "GET"),
    ] {
        let reply = shop.ask(Call::new(method, path).by(buyer())).await;
        reply.assert_problem(405, "method_not_allowed");
        assert!(
            reply.header("allow").contains(allowed),
            "{path}: {:?}",
            reply.headers
        );
    }
}

async fn every_answer_has_a_request_id(site: &Site) {
    let shop = site.shop();
    let one = shop.ask(Call::get("/livez")).await;
    let other = shop.ask(Call::get("/livez")).await;
    assert!(!one.header("x-request-id").is_empty());
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
    let named = Call::get("/v1/nothing").header("x-request-id", "from-the-client-1");
    let reply = shop.ask(named).await;
    assert_eq!(reply.header("x-request-id"), "from-the-client-1");
    reply.assert_is_problem();
}

/// Stands for: a counter without an end: a buyer is limited for ever (B57).
async fn an_eager_buyer_is_slowed_down(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let path = format!("/v1/vouchers/{voucher}/purchases");
    let eager = Token::of(buyer()).signed();
    let press = async |()| shop.ask(Call::post(&path).bearing(&eager)).await;
    let answers = crowd(vec![(); 400], 32, press).await;
    let refused: Vec<_> = answers.iter().filter(|reply| reply.status == 429).collect();
    assert!(
        !refused.is_empty(),
        "nobody clicks 400 times in a second or two"
    );
    for reply in refused {
        reply.assert_problem(429, "rate_limited");
        let wait: u64 = reply.header("retry-after").parse().expect("whole seconds");
        assert!((1..=10).contains(&wait), "{wait}");
    }
    let served = answers.iter().filter(|reply| reply.status < 300).count();
    assert!(served >= 100, "the burst is allowed, {served} were served");
    // Somebody else is served at once.
    shop.buy(voucher, buyer()).await.expect_granted();
    // And he himself after a moment.
    eventually(
        "the eager one is served again",
        Duration::from_secs(10),
        async || match press(()).await {
            reply if reply.status == 200 => Ok(()),
            reply => Err(reply.text),
        },
    )
    .await;
    assert_eq!(shop.balanced(voucher).await.tally.free, 3);
}

async fn administrators_are_not_slowed_down(site: &Site) {
    let shop = site.shop();
    let admin = Token::admin().signed();
    let look = async |()| shop.ask(Call::get("/v1/orders").bearing(&admin)).await;
    let answers = crowd(vec![(); 400], 32, look).await;
    assert!(answers.iter().all(|reply| reply.status == 200));
}

async fn health_and_metrics_are_open(site: &Site) {
    let shop = site.shop();
    shop.ask(Call::get("/livez")).await.assert_status(200);
    let ready = shop.ask(Call::get("/readyz")).await;
    assert_eq!(
        ready.assert_status(200).word("status"),
        "ready",
        "{}",
        ready.text
    );
    let metrics = shop.ask(Call::get("/metrics")).await;
    metrics.assert_status(200);
    assert!(
        metrics.text.contains("\n# EOF") || metrics.text.contains("# TYPE"),
        "{}",
        metrics.text
    );
    let before = shop.metric("seckill_attempts_total").await.unwrap_or(0.0);
    let voucher = shop.sell(&Offer::of(1)).await;
    shop.buy(voucher, buyer()).await.expect_granted();
    let after = shop
        .metric("seckill_attempts_total")
        .await
        .expect("attempts are counted");
    assert!(after > before, "{before} {after}");
}

async fn the_document_describes_the_api(site: &Site) {
    let shop = site.shop();
    let document = shop.ask(Call::get("/openapi.json")).await;
    document.assert_status(200);
    assert!(document.word("openapi").starts_with("3.1."));
    let paths = document.body["paths"].as_object().expect("paths");
    for path in [
        "/v1/vouchers/{voucher_id}/purchases",
        "/v1/vouchers",
        "/v1/orders/{order_id}/payments",
        "/v1/vouchers/{voucher_id}/waitlist/me",
        "/v1/admin/vouchers/{voucher_id}/balance",
        "/livez",
    ] {
        assert!(paths.contains_key(path), "{path} in {:?}", paths.keys());
    }
    let page = shop.ask(Call::get("/swagger-ui/")).await;
    page.assert_status(200);
    assert!(page.header("content-type").starts_with("text/html"));
    let script = Call::get("/swagger-ui/swagger-ui-bundle.js");
    shop.ask(script).await.assert_status(200);
}

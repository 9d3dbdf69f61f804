//! How often a buyer may call.

use std::num::NonZeroU32;

use seckill_http::{HttpSettings, PeerAddress, Rates};
use serde_json::json;

use crate::stand::Stand;

#[tokio::test]
async fn an_eager_buyer_is_told_to_wait_and_others_are_not() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({})).await;
    let mut answers = Vec::new();
    for _ in 0..150 {
        answers.push(stand.buy(&voucher, 7).await);
    }
    let limited: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert!(
        !limited.is_empty(),
        "150 purchases at once are above the rate"
    );
    limited[0].refused(429, "rate_limited");
    assert_eq!(limited[0].header("retry-after"), "1");
    assert_eq!(limited[0].body["retryable"], true);
    assert!(
        answers[..100].iter().all(|answer| answer.status < 300),
        "the burst is 100"
    );
    stand.buy(&voucher, 8).await.is(202);
    // Other calls have a rate of their own.
    stand.get("/v1/orders").user(7).answer().await.is(200);
}

#[tokio::test]
async fn other_calls_have_their_rate_and_administrators_none() {
    let rates = Rates {
        others_per_s: NonZeroU32::new(5).unwrap(),
        purchases_burst: NonZeroU32::new(1).unwrap(),
        ..Rates::default()
    };
    let stand = Stand::with(HttpSettings {
        rates,
        ..HttpSettings::default()
    })
    .await;
    for _ in 0..5 {
        stand.get("/v1/orders").user(7).answer().await.is(200);
    }
    stand
        .get("/v1/orders")
        .user(7)
        .answer()
        .await
        .refused(429, "rate_limited");
    let refused = stand.get("/v1/admin/vouchers/1").user(7).answer().await;
    refused.refused(429, "rate_limited");
    for _ in 0..20 {
        stand.get("/v1/orders").admin().answer().await.is(200);
        stand.get("/v1/vouchers").answer().await.is(200);
    }
}

#[tokio::test]
async fn an_address_is_limited_where_that_is_switched_on() {
    let rates = Rates {
        per_address_per_s: NonZeroU32::new(2),
        ..Rates::default()
    };
    let stand = Stand::with(HttpSettings {
        rates,
        ..HttpSettings::default()
    })
    .await;
    let from = async |address: &str| {
        let mut request = stand.get("/v1/vouchers").request();
        request
            .extensions_mut()
            .insert(PeerAddress(address.parse().unwrap()));
        stand.app.answer(request).await.status().as_u16()
    };
    for (address, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 200),
        ("::ffff:192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("2001:db8::1", 200),
        ("2001:db8::2", 200),
        ("2001:db8::3", 429),
        ("2001:db8:0:1::1", 200),
    ] {
        assert_eq!(from(address).await, status, "{address}");
    }
    // Health is asked from one address, often.
    let mut request = stand.get("/livez").request();
    request
        .extensions_mut()
        .insert(PeerAddress("192.0.2.1".parse().unwrap()));
    assert_eq!(stand.app.answer(request).await.status(), 200);
}

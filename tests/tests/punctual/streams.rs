//! Streams of events say that they are there, and end with their process, at once.

use std::time::{Duration, Instant};

use seckill_tests::harness::{Follower, Offer, Site, buyers};

use crate::PROGRAM;

seckill_tests::stamp!(
    servers, seckill_tests::harness::Site::shared(crate::PROGRAM);
    streams_go_on_and_end,
);

async fn streams_go_on_and_end(site: Site) {
    go_on_and_end(&site).await;
}

#[tokio::test]
async fn streams_go_on_and_end_in_memory() {
    go_on_and_end(&Site::memory(PROGRAM)).await;
}

/// Fifty streams without news say that they are there; then the process stops, at once, and ends
/// each of them as it should be.
async fn go_on_and_end(site: &Site) {
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(50)).await;
    let mut followers = Vec::new();
    for who in buyers(50) {
        let order = shop.buy_settled(voucher, who).await;
        let mut follower = shop.follow(order, who).await;
        let first = follower.next().await;
        assert_eq!(
            (&*first.name, first.status()),
            ("snapshot", "pending_payment")
        );
        followers.push(follower);
    }
    let begun = Instant::now();
    for follower in &mut followers {
        follower.heartbeat().await;
    }
    let heard = begun.elapsed();
    assert!(heard < Duration::from_secs(15), "after {heard:?}");
    let ((status, took), rest) = futures::join!(
        process.stop(),
        futures::future::join_all(followers.into_iter().map(Follower::rest))
    );
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(rest.iter().all(Vec::is_empty), "{rest:?}");
}

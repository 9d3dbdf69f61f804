//! People who buy, and many of them at once.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{self, StreamExt as _};
use seckill_domain::BuyerId;

/// Above 2^53, where a number that is not treated as text loses digits.
static NEXT: AtomicU64 = AtomicU64::new(9_007_199_254_740_993);

/// Somebody no other test of this process knows.
pub fn buyer() -> BuyerId {
    BuyerId::new(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// So many of them.
pub fn buyers(count: usize) -> Vec<BuyerId> {
    (0..count).map(|_| buyer()).collect()
}

/// Everybody does the same, at most `at_once` of them at a time, which is over as many
/// connections. The answers come in no particular order.
pub async fn crowd<T, R, F>(people: Vec<T>, at_once: usize, act: impl Fn(T) -> F) -> Vec<R>
where
    F: Future<Output = R>,
{
    stream::iter(people)
        .map(act)
        .buffer_unordered(at_once)
        .collect()
        .await
}

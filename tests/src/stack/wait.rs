//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until `check` holds, and panics naming `what` when it does not within
/// `limit`. It looks once more at the limit, so a slow machine gets its chance.
pub async fn until<F, Fut>(what: &str, limit: Duration, mut check: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    let begun = Instant::now();
    loop {
        let last = begun.elapsed() >= limit;
        if check().await {
            return;
        }
        assert!(!last, "waited {limit:?} in vain: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

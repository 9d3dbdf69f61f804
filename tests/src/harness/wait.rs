//! Waiting for an answer instead of for a time.

use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until there is what is looked for, and panics with what `limit` was not enough for and why
/// it is not there. It looks once more at the limit, so a slow machine gets its chance.
#[track_caller]
pub fn eventually<T, F, Fut>(
    what: &str,
    limit: Duration,
    mut look: F,
) -> impl Future<Output = T> + use<'_, T, F, Fut>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let from = std::panic::Location::caller();
    async move {
        let begun = Instant::now();
        loop {
            let last = begun.elapsed() >= limit;
            match look().await {
                Ok(found) => return found,
                Err(why) if last => panic!("waited {limit:?} in vain: {what} ({from}): {why}"),
                Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }
}

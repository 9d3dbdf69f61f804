//! Waiting for an answer instead of for a time.

use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// Pauses between two looks: short ones first, since most is there at once, and then longer ones,
/// since a hundred who look are a load.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(160)];

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
        let [mut pause, longest] = PAUSES;
        loop {
            let last = begun.elapsed() >= limit;
            match look().await {
                Ok(found) => return found,
                Err(why) if last => panic!("waited {limit:?} in vain: {what} ({from}): {why}"),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(longest);
        }
    }
}

/// Pauses until a moment by the clock of the day; not at all if it has passed.
pub async fn sleep_until(at: OffsetDateTime) {
    let left = at - OffsetDateTime::now_utc();
    tokio::time::sleep(left.try_into().unwrap_or_default()).await;
}

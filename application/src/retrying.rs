//! Repeating a call whose outcome is unknown.

use std::future::Future;
use std::time::Duration;

use crate::Fault;
use crate::ports::Clock;

/// How often a command is tried before its fault is reported.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `attempt` until it succeeds, fails for good, or has been tried three times. Only for calls
/// that may be repeated.
pub(crate) async fn retrying<T, F>(
    clock: &dyn Clock,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut tried = 1;
    loop {
        match attempt().await {
            Err(fault) if fault.is_retryable() && tried < TRIES => {
                tracing::debug!(fault = fault.chain(), tried, "trying again");
                clock.sleep(PAUSE * tried).await;
                tried += 1;
            }
            settled => return settled,
        }
    }
}

//! Time that goes by while somebody waits.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use super::HotHarness;

const STEP: Duration = Duration::from_millis(20);

/// The answer of something that waits, and how much time went by, at most `max`. `None` if it waits
/// longer.
pub(super) async fn answer_within<T>(
    harness: &dyn HotHarness,
    max: Duration,
    waiting: impl Future<Output = T>,
) -> Option<(T, Duration)> {
    let began = harness.gate_time().await;
    let mut waiting = pin!(waiting);
    loop {
        let step = pin!(harness.elapse(STEP));
        let answer = match select(waiting.as_mut(), step).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(((), _)) => None,
        };
        let passed = began.until(harness.gate_time().await);
        match answer {
            Some(answer) => return Some((answer, passed)),
            None if passed >= max => return None,
            // So that whoever waits gets to look, under a clock that takes no time.
            None => tokio::task::yield_now().await,
        }
    }
}

//! Failures in the log: once where they are answered, and not once per request of a crowd.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, Uri};

use crate::problem::Problem;

/// Most lines about failures per second; a neighbour that is down fails every request.
const LINES_MAX: u64 = 20;

/// Writes failures to the log. Refusals are no failures.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    second: AtomicU64,
    lines: AtomicU64,
}

impl FailureLog {
    /// `now` is monotonic.
    pub(crate) fn report(
        &self,
        problem: &Problem,
        method: &Method,
        uri: &Uri,
        request_id: &str,
        now: Duration,
    ) {
        let path = uri.path();
        match problem {
            Problem::Internal { .. } => {
                tracing::error!(request_id, %method, path, "no answer could be made");
            }
            Problem::Unavailable {
                cause: Some(fault), ..
            } if self.has_room(now) => {
                tracing::warn!(request_id, %method, path, fault, "a neighbour failed");
            }
            Problem::Unavailable { cause: None, .. } => {
                tracing::debug!(request_id, %method, path, "not answered in time");
            }
            _ => {}
        }
    }

    /// Whether this second's lines are not used up. Says how many were left out when the next
    /// second begins.
    fn has_room(&self, now: Duration) -> bool {
        let second = now.as_secs();
        if self.second.swap(second, Ordering::Relaxed) != second {
            let lines = self.lines.swap(0, Ordering::Relaxed);
            let left_out = lines.saturating_sub(LINES_MAX);
            if left_out > 0 {
                tracing::warn!(left_out, "more failures of neighbours");
            }
        }
        self.lines.fetch_add(1, Ordering::Relaxed) < LINES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_of_failures_is_a_few_lines_a_second() {
        let log = FailureLog::default();
        let lines = |second| {
            let now = Duration::from_secs(second);
            (0..1_000).filter(|_| log.has_room(now)).count()
        };
        assert_eq!((lines(7), lines(7), lines(8)), (20, 0, 20));
    }
}

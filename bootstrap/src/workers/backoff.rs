//! What a loop does about faults: waits longer each time, and does not flood the log.

use std::time::Duration;

use seckill_application::Fault;

const FIRST: Duration = Duration::from_millis(50);
const MAX: Duration = Duration::from_secs(2);

/// The faults of one loop in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    in_a_row: u32,
    said: Option<String>,
}

impl Backoff {
    /// Notes a fault, and logs it unless the last one was the same. Returns how long to wait.
    pub(super) fn fault(&mut self, fault: &Fault, during: &'static str) -> Duration {
        let chain = fault.chain();
        if self.said.as_ref() != Some(&chain) {
            tracing::warn!(fault = chain, during, "trying again until it works");
            self.said = Some(chain);
        }
        let pause = FIRST.saturating_mul(1 << self.in_a_row.min(10)).min(MAX);
        self.in_a_row += 1;
        pause
    }

    /// Notes that it works.
    pub(super) fn works(&mut self, what: &'static str) {
        if self.in_a_row > 0 {
            tracing::info!(what, faults = self.in_a_row, "works again");
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_longer_each_time_within_bounds_and_starts_over() {
        let mut backoff = Backoff::default();
        let away = || Fault::unavailable("ledger.begin", "away");
        let waits: Vec<u64> = (0..8)
            .map(|_| {
                u64::try_from(backoff.fault(&away(), "a step").as_millis()).unwrap_or(u64::MAX)
            })
            .collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
        backoff.works("a step");
        assert_eq!(backoff.fault(&away(), "a step"), FIRST);
    }
}

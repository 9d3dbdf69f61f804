//! Reconciliation by the clock: every so often, and in full once a day.
//!
//! Every process looks whether one is due; the stored reports say when the last one was, and the
//! lease lets one process run it.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ReconcileScope;
use seckill_application::ports::LastRuns;
use seckill_domain::Timestamp;

use super::Context;
use super::upkeep::every;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// A full reconciliation that could not begin by then waits for the next day.
const FULL_GRACE_MS: i64 = HOUR_MS;

/// When reconciliations are due.
#[derive(Debug, Clone, Copy)]
pub struct ReconcileSchedule {
    /// How long after the last one the next begins.
    pub every: Duration,
    /// The hour of the day, in UTC, from which a full one is due.
    pub full_hour: u8,
}

pub(super) async fn reconcile(context: Arc<Context>) {
    let system = &context.system;
    let schedule = context.settings.reconcile;
    let pause = LOOK_EVERY.min(schedule.every);
    every(&context, "reconciling", pause, || async {
        let last = system.ledger.reconciliations.last_runs().await?;
        if let Some(scope) = schedule.due(last, system.clock.now()) {
            // It waits for order writers that may be stopping as well.
            let told = context.stop.asked_for();
            system.reconcile.run_until(scope, told).await?;
        }
        Ok(())
    })
    .await;
}

impl ReconcileSchedule {
    /// What is due `now`, after those that ran.
    fn due(self, last: LastRuns, now: Timestamp) -> Option<ReconcileScope> {
        let scope = |full| {
            let dry_run = false;
            Some(ReconcileScope { full, dry_run })
        };
        let (now_ms, hour_ms) = (now.as_millis(), i64::from(self.full_hour) * HOUR_MS);
        let since_hour_ms = (now_ms - hour_ms).rem_euclid(DAY_MS);
        let hour = Timestamp::from_millis(now_ms - since_hour_ms);
        if since_hour_ms < FULL_GRACE_MS && last.full.is_none_or(|full| full < hour) {
            return scope(true);
        }
        let period_ms = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        match last.any {
            Some(last) if now_ms.saturating_sub(last.as_millis()) < period_ms => None,
            _ => scope(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;
    const SCHEDULE: ReconcileSchedule = ReconcileSchedule {
        every: Duration::from_mins(1),
        full_hour: 3,
    };

    fn due(any: Option<i64>, full: Option<i64>, now_ms: i64) -> Option<bool> {
        let last = LastRuns {
            any: any.map(Timestamp::from_millis),
            full: full.map(Timestamp::from_millis),
        };
        let due = SCHEDULE.due(last, Timestamp::from_millis(now_ms));
        assert!(due.is_none_or(|scope| !scope.dry_run));
        due.map(|scope| scope.full)
    }

    #[test]
    fn one_is_due_a_minute_after_the_last() {
        let noon = 12 * HOUR_MS;
        assert_eq!(due(None, None, noon), Some(false));
        assert_eq!(due(Some(noon), None, noon + MINUTE_MS - 1), None);
        assert_eq!(due(Some(noon), None, noon + MINUTE_MS), Some(false));
    }

    #[test]
    fn a_full_one_is_due_once_a_day_from_its_hour_on() {
        let three = 5 * DAY_MS + 3 * HOUR_MS;
        let before = Some(three - 1);
        assert_eq!(due(before, None, three - 1), None);
        assert_eq!(due(before, None, three), Some(true));
        let yesterday = Some(three - DAY_MS);
        assert_eq!(due(Some(three + 1), yesterday, three + 2), Some(true));
        let done = Some(three + 5);
        assert_eq!(due(done, done, three + 6), None);
        assert_eq!(due(done, done, three + 5 + MINUTE_MS), Some(false));
        let late = Some(three + HOUR_MS);
        assert_eq!(due(late, None, three + HOUR_MS + 1), None, "the day after");
    }
}

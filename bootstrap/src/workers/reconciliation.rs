//! Reconciliation by the clock: every so often, and in full once a day.
//!
//! Every process looks whether one is due; the stored reports say when the last one was, and the
//! lease lets one process run it.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::ReconcileScope;
use seckill_application::ports::Report;
use seckill_domain::Timestamp;

use super::Context;
use super::upkeep::every;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// A full reconciliation that could not begin by then waits for the next day.
const FULL_GRACE_MS: i64 = HOUR_MS;
/// Reports that are looked through for the last full one.
const REPORTS: usize = 100;

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
        let reports = system.ledger.reconciliations.reports(None, REPORTS).await?;
        if let Some(scope) = schedule.due(&reports.items, system.clock.now()) {
            system.reconcile.run(scope).await?;
        }
        Ok(())
    })
    .await;
}

impl ReconcileSchedule {
    /// What is due `now`, after these reports, newest first.
    fn due(self, reports: &[Report], now: Timestamp) -> Option<ReconcileScope> {
        let scope = |full| {
            let dry_run = false;
            Some(ReconcileScope { full, dry_run })
        };
        let repairing = || reports.iter().filter(|report| !report.dry_run);
        let (now_ms, hour_ms) = (now.as_millis(), i64::from(self.full_hour) * HOUR_MS);
        let since_hour_ms = (now_ms - hour_ms).rem_euclid(DAY_MS);
        let hour = now_ms - since_hour_ms;
        let done = repairing().any(|it| it.full && it.started_at.as_millis() >= hour);
        if since_hour_ms < FULL_GRACE_MS && !done {
            return scope(true);
        }
        let period_ms = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        let last = repairing().map(|it| it.started_at.as_millis()).max();
        match last {
            Some(last) if now_ms.saturating_sub(last) < period_ms => None,
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

    fn report(at_ms: i64, full: bool, dry_run: bool) -> Report {
        let at = Timestamp::from_millis(at_ms);
        Report {
            id: 1,
            started_at: at,
            finished_at: at,
            full,
            dry_run,
            vouchers: Vec::new(),
        }
    }

    fn due(reports: &[Report], now_ms: i64) -> Option<bool> {
        let due = SCHEDULE.due(reports, Timestamp::from_millis(now_ms));
        assert!(due.is_none_or(|scope| !scope.dry_run));
        due.map(|scope| scope.full)
    }

    #[test]
    fn one_is_due_a_minute_after_the_last_that_could_repair() {
        let noon = 12 * HOUR_MS;
        assert_eq!(due(&[], noon), Some(false));
        let last = [report(noon, false, false)];
        assert_eq!(due(&last, noon + MINUTE_MS - 1), None);
        assert_eq!(due(&last, noon + MINUTE_MS), Some(false));
        assert_eq!(due(&[report(noon, false, true)], noon + 1), Some(false));
    }

    #[test]
    fn a_full_one_is_due_once_a_day_from_its_hour_on() {
        let three = 5 * DAY_MS + 3 * HOUR_MS;
        let before = report(three - 1, false, false);
        assert_eq!(due(std::slice::from_ref(&before), three - 1), None);
        assert_eq!(due(&[before], three), Some(true));
        let yesterday = report(three - DAY_MS, true, false);
        let small = report(three + 1, false, false);
        assert_eq!(due(&[small, yesterday], three + 2), Some(true));
        let done = report(three + 5, true, false);
        assert_eq!(due(std::slice::from_ref(&done), three + 6), None);
        assert_eq!(due(&[done], three + 5 + MINUTE_MS), Some(false));
        let late = report(three + HOUR_MS, false, false);
        assert_eq!(due(&[late], three + HOUR_MS + 1), None, "the day after");
    }
}

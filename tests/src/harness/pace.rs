//! How fast a crowd was served, for the report: no test is about speed.

use std::fmt;
use std::time::Duration;

use super::history::{Asked, Event, Told};

/// What became of purchases within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Orders granted for the first time, per second.
    pub per_s: u32,
    /// Within this 99 of a hundred purchases were answered, whatever the answer.
    pub p99: Duration,
}

impl Pace {
    /// Of the purchases that were answered between these moments of a history; since the first of them
    /// was asked for.
    pub fn between(events: &[Event], since: Duration, until: Duration) -> Self {
        let within = events
            .iter()
            .filter(|event| matches!(event.asked, Asked::Purchase { .. }))
            .filter(|event| event.ended >= since && event.ended < until);
        let mut took = Vec::new();
        let mut granted = 0_u32;
        let mut first = until;
        for event in within {
            first = first.min(event.begun.max(since));
            if let Told::Purchase(answer) = &event.told {
                took.push(event.ended.saturating_sub(event.begun));
                granted += u32::from(answer.granted().is_some());
            }
        }
        took.sort_unstable();
        let last = took.len().saturating_sub(1);
        let ms = u32::try_from(until.saturating_sub(first).as_millis()).unwrap_or(u32::MAX);
        Self {
            per_s: granted.saturating_mul(1_000) / ms.max(1),
            p99: took.get(last * 99 / 100).copied().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} orders/s, p99 {} ms",
            self.per_s,
            self.p99.as_millis()
        )
    }
}

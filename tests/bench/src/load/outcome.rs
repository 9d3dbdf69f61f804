//! What a run of the generator saw.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::answer::{Answer, Told};

/// Highest latency told apart, in microseconds.
const HIGHEST_US: u64 = 120_000_000;

/// What a run of the generator saw.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that were due and had no answer in the end, or whose connection broke: what became
    /// of them is unknown.
    pub lost: u64,
    /// Purchases that were granted.
    pub granted: u64,
    /// Purchases that got a place on the waitlist.
    pub waitlisted: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// From the first request to the last answer.
    pub took: Duration,
    /// Microseconds until an answer, the lost ones included.
    pub latency: Histogram<u64>,
    /// The same for answers of success alone.
    pub accepted: Histogram<u64>,
    /// CPU time of the generator.
    pub cpu: Duration,
}

impl Outcome {
    pub(super) fn new() -> Self {
        // A digit more would not survive the noise of a small machine. Bounds are given because a
        // histogram that grows by itself does not when it is to saturate.
        let empty = Histogram::new_with_bounds(1, HIGHEST_US, 3)
            .unwrap_or_else(|_| unreachable!("bounds and digits are allowed"));
        Self {
            sent: 0,
            lost: 0,
            granted: 0,
            waitlisted: 0,
            statuses: BTreeMap::new(),
            took: Duration::ZERO,
            latency: empty.clone(),
            accepted: empty,
            cpu: Duration::ZERO,
        }
    }

    pub(super) fn note(&mut self, answer: Answer, latency: Duration) {
        let latency = micros(latency);
        *self.statuses.entry(answer.status).or_default() += 1;
        self.latency.saturating_record(latency);
        if (200..300).contains(&answer.status) {
            self.accepted.saturating_record(latency);
        }
        match answer.told {
            Told::Granted => self.granted += 1,
            Told::Waitlisted => self.waitlisted += 1,
            Told::Other => {}
        }
    }

    pub(super) fn note_lost(&mut self, latency: Duration) {
        self.lost += 1;
        self.latency.saturating_record(micros(latency));
    }

    /// How many answers had this status.
    pub fn of_status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Answers per second.
    pub fn answered_per_s(&self) -> f64 {
        let answered: u64 = self.statuses.values().sum();
        answered as f64 / self.took.as_secs_f64()
    }

    /// Grants per second.
    pub fn granted_per_s(&self) -> f64 {
        self.granted as f64 / self.took.as_secs_f64()
    }

    /// A percentile of the latency of all answers, in milliseconds.
    pub fn latency_ms(&self, percentile: f64) -> f64 {
        self.latency.value_at_percentile(percentile) as f64 / 1_000.0
    }

    /// A percentile of the latency of answers of success, in milliseconds.
    pub fn accepted_ms(&self, percentile: f64) -> f64 {
        self.accepted.value_at_percentile(percentile) as f64 / 1_000.0
    }

    /// The share of a core that the generator took.
    pub fn generator_cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.took.as_secs_f64()
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).map_or(HIGHEST_US, |us| us.clamp(1, HIGHEST_US))
}

//! Latencies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::MetricSheet;

/// Upper bounds of the buckets, in microseconds. What is slower falls into one more.
const BOUNDS_US: [u64; 15] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Counts durations. Raised from every thread at once, so without a lock.
#[derive(Debug, Default)]
pub(super) struct Latency {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Latency {
    pub(super) fn observe(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn write(
        &self,
        sheet: &mut MetricSheet,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
    ) {
        let counts = self
            .buckets
            .each_ref()
            .map(|bucket| bucket.load(Ordering::Relaxed));
        if counts.iter().any(|count| *count > 0) {
            let sum_us = self.sum_us.load(Ordering::Relaxed);
            sheet.latency(name, help, labels, &BOUNDS_US, &counts, sum_us);
        }
    }
}

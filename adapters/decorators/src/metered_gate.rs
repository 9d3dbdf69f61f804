//! What the gate answers, and how fast.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{Admitted, Clock, PurchaseGate};
use seckill_domain::{Admission, Attempt, VoucherId};

use crate::forward::decorate_admit;

/// What became of an attempt at the gate, as a label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateOutcome {
    /// The buyer has units.
    Granted,
    /// The buyer has a new place.
    Waitlisted,
    /// His key was known.
    Replayed,
    /// His key was used for another quantity.
    KeyReused,
    /// He is at his limit.
    AlreadyHeld,
    /// He waits already.
    AlreadyWaiting,
    /// He wanted more than he may.
    LimitExceeded,
    /// The sale has not opened.
    NotOpen,
    /// The sale is paused.
    Paused,
    /// The sale is over.
    Closed,
    /// Nothing is left.
    SoldOut,
    /// The gate does not have the voucher now. One purchase may be counted many times: it asks
    /// again until the gate has it.
    NotLoaded,
    /// The ledger is too far behind.
    BacklogFull,
    /// The gate failed.
    Fault,
}

impl GateOutcome {
    /// Every outcome, in the order of [`GateSnapshot::outcomes`].
    pub const ALL: [Self; 14] = [
        Self::Granted,
        Self::Waitlisted,
        Self::Replayed,
        Self::KeyReused,
        Self::AlreadyHeld,
        Self::AlreadyWaiting,
        Self::LimitExceeded,
        Self::NotOpen,
        Self::Paused,
        Self::Closed,
        Self::SoldOut,
        Self::NotLoaded,
        Self::BacklogFull,
        Self::Fault,
    ];

    /// Its label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Waitlisted => "waitlisted",
            Self::Replayed => "replayed",
            Self::KeyReused => "key_reused",
            Self::AlreadyHeld => "already_held",
            Self::AlreadyWaiting => "already_waiting",
            Self::LimitExceeded => "limit_exceeded",
            Self::NotOpen => "not_open",
            Self::Paused => "paused",
            Self::Closed => "closed",
            Self::SoldOut => "sold_out",
            Self::NotLoaded => "not_loaded",
            Self::BacklogFull => "backlog_full",
            Self::Fault => "fault",
        }
    }

    fn of(admission: &Admission) -> Self {
        match admission {
            Admission::Granted { .. } => Self::Granted,
            Admission::Waitlisted { .. } => Self::Waitlisted,
            Admission::Replayed { .. } => Self::Replayed,
            Admission::KeyReused { .. } => Self::KeyReused,
            Admission::AlreadyHeld { .. } => Self::AlreadyHeld,
            Admission::AlreadyWaiting { .. } => Self::AlreadyWaiting,
            Admission::LimitExceeded { .. } => Self::LimitExceeded,
            Admission::NotOpen { .. } => Self::NotOpen,
            Admission::Paused => Self::Paused,
            Admission::Closed => Self::Closed,
            Admission::SoldOut => Self::SoldOut,
        }
    }
}

/// Upper bounds of the latency buckets, in microseconds. A last bucket takes what is slower.
pub const GATE_LATENCY_BOUNDS_US: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000,
];
const BUCKETS: usize = GATE_LATENCY_BOUNDS_US.len() + 1;
const OUTCOMES: usize = GateOutcome::ALL.len();

/// Counts since the process started; cheap to raise from any thread.
#[derive(Debug, Default)]
pub struct GateMeters {
    outcomes: [AtomicU64; OUTCOMES],
    buckets: [AtomicU64; BUCKETS],
    latency_us: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSnapshot {
    /// Attempts by outcome, in the order of [`GateOutcome::ALL`].
    pub outcomes: [u64; OUTCOMES],
    /// Calls by latency: one count per bound of [`GATE_LATENCY_BOUNDS_US`], not cumulative, and one
    /// for what was slower.
    pub buckets: [u64; BUCKETS],
    /// Calls.
    pub calls: u64,
    /// Their latencies together, in microseconds.
    pub latency_us: u64,
}

impl GateMeters {
    /// The counts now.
    pub fn snapshot(&self) -> GateSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let buckets = self.buckets.each_ref().map(read);
        GateSnapshot {
            outcomes: self.outcomes.each_ref().map(read),
            buckets,
            calls: buckets.iter().sum(),
            latency_us: read(&self.latency_us),
        }
    }

    /// Counts one outcome of several attempts.
    fn count(&self, outcome: GateOutcome, attempts: usize) {
        self.outcomes[outcome as usize].fetch_add(attempts as u64, Ordering::Relaxed);
    }

    fn time(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let bucket = GATE_LATENCY_BOUNDS_US.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.latency_us.fetch_add(micros, Ordering::Relaxed);
    }
}

/// A purchase gate that counts what the inner gate answers to attempts, and how long it takes.
pub struct MeteredGate {
    inner: Arc<dyn PurchaseGate>,
    clock: Arc<dyn Clock>,
    meters: Arc<GateMeters>,
}

decorate_admit!(MeteredGate);

impl MeteredGate {
    /// Around `inner`; counts into `meters`.
    pub fn new(
        inner: Arc<dyn PurchaseGate>,
        clock: Arc<dyn Clock>,
        meters: Arc<GateMeters>,
    ) -> Self {
        Self {
            inner,
            clock,
            meters,
        }
    }

    async fn decorated(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let begun = self.clock.monotonic();
        let reply = self.inner.admit(voucher, attempts).await;
        self.meters
            .time(self.clock.monotonic().saturating_sub(begun));
        match &reply {
            Ok(Admitted::Decided { admissions, .. }) => {
                for admission in admissions {
                    self.meters.count(GateOutcome::of(admission), 1);
                }
            }
            Ok(Admitted::NotLoaded(_)) => {
                self.meters.count(GateOutcome::NotLoaded, attempts.len());
            }
            Ok(Admitted::BacklogFull) => {
                self.meters.count(GateOutcome::BacklogFull, attempts.len());
            }
            Err(_) => self.meters.count(GateOutcome::Fault, attempts.len()),
        }
        reply
    }
}

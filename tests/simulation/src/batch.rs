//! Many runs, on every core.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::bug::Bug;
use crate::coverage::{Coverage, Seen};
use crate::judge::Violation;
use crate::sim::{Outcome, Run};

/// How often everything must have happened in [`SEEDS`] seeds.
const TIMES_MIN: u64 = 50;
/// How many run where nobody says how many.
pub const SEEDS: u64 = 2_000;
/// The least seeds that say anything about what is rare: it comes several times in one, and in most
/// not at all.
const TELLING: u64 = 500;

/// The first of seeds that nobody has run yet, most likely.
pub fn new_base() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

/// Seeds to run.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Which.
    pub seeds: Range<u64>,
    /// The bug that is planted in each, if any.
    pub bug: Option<Bug>,
    /// Stop after so many that do not hold.
    pub enough: usize,
}

/// What came of a batch.
#[derive(Default)]
pub struct Found {
    /// Seeds that do not hold, and why.
    pub failures: Vec<(u64, Violation)>,
    /// What happened in all of them together.
    pub coverage: Coverage,
    /// The trace of each, in one number.
    pub traces: BTreeMap<u64, u64>,
    /// How many ran.
    pub ran: u64,
    /// Polls of tasks.
    pub steps: u64,
}

impl Batch {
    /// So many seeds from a first one, without a bug.
    pub fn of(base: u64, count: u64) -> Self {
        Self {
            seeds: base..base.saturating_add(count),
            bug: None,
            enough: usize::MAX,
        }
    }

    /// Runs them.
    pub fn go(&self) -> Found {
        let found = Mutex::new(Found::default());
        let next = AtomicU64::new(self.seeds.start);
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work(&next, &found));
            }
        });
        let mut found = found.into_inner().expect("no panic");
        found.failures.sort_by_key(|(seed, _)| *seed);
        found
    }

    fn work(&self, next: &AtomicU64, found: &Mutex<Found>) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let enough = found.lock().expect("no panic").failures.len() >= self.enough;
            if seed >= self.seeds.end || enough {
                return;
            }
            let run = Run {
                bug: self.bug,
                ..Run::of(seed)
            };
            found.lock().expect("no panic").add(seed, run.go());
        }
    }
}

impl Found {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.ran += 1;
        self.traces.insert(seed, outcome.trace.0);
        self.steps += outcome.steps;
        self.coverage.absorb(&outcome.coverage);
        self.failures.extend(outcome.violation.map(|it| (seed, it)));
    }

    /// What happened less often than it must for the seeds to say something: in 2,000 of them, 50
    /// times. In fewer than 500, nothing can be said, and nothing is.
    pub fn too_rare(&self) -> Vec<String> {
        if self.ran < TELLING {
            return Vec::new();
        }
        let least = TIMES_MIN * self.ran / SEEDS;
        let times = |what: &Seen| self.coverage.times(*what);
        let rare = Seen::ALL.iter().filter(|what| times(what) < least);
        rare.map(|what| {
            let (words, times) = (what.words(), times(what));
            format!("\"{words}\" happened {times} times, and must {least} times")
        })
        .collect()
    }

    /// All traces in one number: another batch of these seeds has the same, on any machine.
    pub fn sum(&self) -> u64 {
        self.traces
            .values()
            .fold(0, |sum, trace| sum.rotate_left(1) ^ trace)
    }

    /// How often each rule is what does not hold, in words.
    pub fn rules(&self) -> String {
        let mut counts = BTreeMap::new();
        for (_, violation) in &self.failures {
            *counts.entry(violation.rule).or_insert(0) += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words = counts
            .into_iter()
            .map(|(rule, count)| format!("{rule} ({count})"));
        words.collect::<Vec<_>>().join(", ")
    }
}

//! Chance, from one seed.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Everything that is left to chance in a run.
pub struct Dice(Mutex<StdRng>);

impl Dice {
    /// The chance of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&self, end: usize) -> usize {
        if end < 2 {
            return 0;
        }
        self.rng().random_range(0..end)
    }

    /// A number of the range.
    pub fn within(&self, range: RangeInclusive<u64>) -> u64 {
        self.rng().random_range(range)
    }

    /// A small number of the range.
    pub fn count(&self, range: RangeInclusive<u32>) -> u32 {
        self.rng().random_range(range)
    }

    /// A pause of so many milliseconds.
    pub fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    /// Whether something happens that happens so many times in a thousand.
    pub fn chance(&self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng().random_range(0..1_000) < per_mille
    }

    /// One of these.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    fn rng(&self) -> MutexGuard<'_, StdRng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

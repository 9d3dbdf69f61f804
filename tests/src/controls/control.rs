//! One scenario, with a guard and without it.

use std::future::Future;

use super::{Bench, Failure, Findings, Switch};

/// What is switched off.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// What stands behind the guard and would hide the failure: off in both runs.
    pub behind: &'static [Switch],
    /// The guard: on in the first run, off in the second.
    pub guard: &'static [Switch],
}

impl Control {
    /// A guard with nothing behind it that would hide its failure.
    pub const fn of(guard: &'static [Switch]) -> Self {
        Self { behind: &[], guard }
    }

    /// With this guard behind it switched off in both runs.
    #[must_use]
    pub const fn without(self, behind: &'static [Switch]) -> Self {
        Self { behind, ..self }
    }

    /// Runs a scenario twice, each time with a database and a namespace of its own. `None` if only
    /// memory was asked for.
    pub async fn run<F, R>(self, scenario: F) -> Option<Pair>
    where
        F: Fn(Bench) -> R,
        R: Future<Output = Findings>,
    {
        let mut off = self.behind.to_vec();
        let guarded = scenario(Bench::set_up(off.clone()).await?).await;
        off.extend_from_slice(self.guard);
        let unguarded = scenario(Bench::set_up(off).await?).await;
        Some(Pair { guarded, unguarded })
    }
}

/// What the two runs found.
#[derive(Debug)]
pub struct Pair {
    /// With the guard.
    pub guarded: Findings,
    /// Without it.
    pub unguarded: Findings,
}

impl Pair {
    /// With the guard everything holds; without it, just these are broken.
    pub fn assert_guards_against<const N: usize>(&self, failures: [Failure; N]) {
        assert!(N > 0, "a guard is there for something");
        self.guarded.assert_sound();
        self.unguarded.assert_broken(&failures);
    }
}

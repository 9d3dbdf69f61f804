//! What a scenario has found broken.

use std::fmt;

use seckill_domain::invariants::{self, InvariantId, Tally};

/// A way in which a run went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// An invariant of the system does not hold.
    Invariant(InvariantId),
    /// A rule within the system does not hold; the layers behind it may still keep the invariants.
    Rule(&'static str),
}

impl From<InvariantId> for Failure {
    fn from(id: InvariantId) -> Self {
        Self::Invariant(id)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(id) => write!(f, "{id}"),
            Self::Rule(rule) => f.write_str(rule),
        }
    }
}

/// Everything that a run was asked, and what of it does not hold.
#[derive(Debug, Default)]
pub struct Findings {
    looked_at: usize,
    broken: Vec<(Failure, String)>,
}

impl Findings {
    /// Notes whether something holds, and if not, what was seen.
    pub fn check(&mut self, what: impl Into<Failure>, holds: bool, seen: impl fmt::Display) {
        self.looked_at += 1;
        if !holds {
            self.broken.push((what.into(), seen.to_string()));
        }
    }

    /// I1 and I2.
    pub fn check_units(&mut self, tally: &Tally) {
        let seen = format!("{tally:?}");
        let conserved = invariants::conserved(tally);
        self.check(InvariantId::Conservation, conserved, &seen);
        let covered = invariants::never_oversold(tally);
        self.check(InvariantId::NeverOversold, covered, &seen);
    }

    /// I3: a buyer's live units.
    pub fn check_limit(&mut self, live_units: u32, per_buyer_limit: u32) {
        let within = invariants::within_limit(live_units, per_buyer_limit);
        let seen = format!("{live_units} live units, limit {per_buyer_limit}");
        self.check(InvariantId::Limit, within, seen);
    }

    /// I5: how often an order took its units and gave them back.
    pub fn check_once(&mut self, taken: u32, returned: u32) {
        let once = invariants::once(taken, returned);
        let seen = format!("taken {taken} times, returned {returned} times");
        self.check(InvariantId::Once, once, seen);
    }

    /// What does not hold, each once.
    pub fn broken(&self) -> Vec<Failure> {
        let mut broken: Vec<Failure> = self.broken.iter().map(|(what, _)| *what).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// Nothing is broken, and something was looked at.
    pub(super) fn assert_sound(&self) {
        assert!(self.looked_at > 0, "nothing was looked at");
        assert!(
            self.broken.is_empty(),
            "with the guard on everything holds, but: {self}"
        );
    }

    /// Just these are broken.
    pub(super) fn assert_broken(&self, expected: &[Failure]) {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(
            self.broken(),
            expected,
            "with the guard off this appears, and nothing else: {self}"
        );
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} things looked at", self.looked_at)?;
        for (what, seen) in &self.broken {
            write!(f, "\n- {what}: {seen}")?;
        }
        Ok(())
    }
}

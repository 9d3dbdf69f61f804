//! What happened in the lives under audit.

use std::collections::BTreeMap;

/// How often each kind of thing happened, so that a pass means that something did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(BTreeMap<&'static str, u32>);

impl Seen {
    const EXPECTED: [&'static str; 26] = [
        "granted",
        "waitlisted",
        "sold out",
        "already held",
        "already waiting",
        "limit exceeded",
        "not open",
        "paused",
        "closed",
        "replayed",
        "key reused",
        "repeat of a grant",
        "repeat of a place",
        "repeat of something given up",
        "left",
        "left too late",
        "not waiting",
        "promoted",
        "hopeless: units",
        "hopeless: limit",
        "closed out",
        "released",
        "release of nothing",
        "withdrawn",
        "retaken",
        "retake refused",
    ];

    pub(super) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    pub(crate) fn never_happened(&self) -> Vec<&'static str> {
        let missing = |what: &&&str| !self.0.contains_key(**what);
        Self::EXPECTED.iter().filter(missing).copied().collect()
    }
}

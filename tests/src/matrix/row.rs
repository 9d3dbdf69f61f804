//! One row of the matrix: what struck, what was under way, and how it ended.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::report::{self, Driven};
use super::{Required, listing};
use crate::harness::Verdict;

/// If it is `all`, a row that cannot be driven is a failure: whoever sets it has installed what the
/// rows need.
const REQUIRED: &str = "SECKILL_TEST_FAULTS";

/// One writes at a time.
static WRITING: Mutex<()> = Mutex::new(());

/// A run of one row. A pass must mean that the fault struck while work was in flight: a run that
/// ends without either is none.
#[derive(Debug)]
pub struct Row {
    test: &'static str,
    begun: Instant,
    struck: Vec<String>,
    in_flight: u64,
    told: Vec<String>,
    result: Option<String>,
}

impl Row {
    /// The row that lists the current test.
    pub fn begin() -> Self {
        let row = Self::of_this_test();
        row.unwrap_or_else(|| panic!("{:?} is in no row", std::thread::current().name()))
    }

    /// The row that lists the current test, if there is one.
    pub fn of_this_test() -> Option<Self> {
        let thread = std::thread::current();
        let (_, test): (&Required, _) = listing(thread.name()?)?;
        Some(Self {
            test,
            begun: Instant::now(),
            struck: Vec::new(),
            in_flight: 0,
            told: Vec::new(),
            result: None,
        })
    }

    /// The fault has struck, and so much was in flight just then: decisions that the ledger did not
    /// have, calls without an answer, people in a line. The most counts, of several strikes.
    pub fn struck(&mut self, by: &str, in_flight: impl TryInto<u64>) {
        let in_flight = in_flight.try_into().unwrap_or(0);
        assert!(in_flight > 0, "{by}: nothing was in flight");
        self.in_flight = self.in_flight.max(in_flight);
        if !self.struck.iter().any(|struck| struck == by) {
            self.struck.push(by.to_owned());
        }
    }

    /// Something else that the report is to say.
    pub fn tell(&mut self, what: impl std::fmt::Display) {
        self.told.push(what.to_string());
    }

    /// Every promise held, and nobody's grant was taken back.
    pub fn held(self, verdict: &Verdict) {
        verdict.assert_none_rejected();
        self.held_with_rejections(verdict);
    }

    /// Every promise held; grants may have been taken back, for a reason that the buyer can read.
    pub fn held_with_rejections(self, verdict: &Verdict) {
        verdict.assert_holds();
        let (granted, rejected) = (verdict.granted.len(), verdict.rejected.len());
        self.ended(&format!("{granted} granted, {rejected} taken back"));
    }

    /// What the test itself has judged held.
    pub fn ended(mut self, how: &str) {
        assert!(!self.struck.is_empty(), "no fault has struck");
        let all = std::iter::once(how).chain(self.told.iter().map(String::as_str));
        self.result = Some(format!("held: {}", all.collect::<Vec<_>>().join("; ")));
    }

    /// It could not be driven on this machine.
    pub fn skipped(mut self, why: &str) {
        say(&format!("SKIPPED {}: {why}", self.test));
        self.result = Some(format!("skipped: {why}"));
        let is_required = std::env::var(REQUIRED).is_ok_and(|rows| rows == "all");
        assert!(!is_required, "{REQUIRED}=all, and {why}");
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        let result = self.result.take();
        let driven = Driven {
            struck: self.struck.join("; "),
            in_flight: self.in_flight.to_string(),
            result: result.unwrap_or_else(|| "FAILED".to_owned()),
            seconds: format!("{:.1}", self.begun.elapsed().as_secs_f64()),
        };
        say(&format!(
            "{}: struck by {}; {} in flight; {}; {} s",
            self.test, driven.struck, driven.in_flight, driven.result, driven.seconds,
        ));
        let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = report::write(self.test, &driven) {
            say(&format!("no report: {error}"));
        }
    }
}

/// A line that the test harness does not hold back.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "fault matrix: {line}");
}

//! One row of the matrix: what struck, what was under way, and how it ended.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use seckill_tests::harness::Verdict;

use crate::matrix;

/// Whatever this process has driven so far, by test.
static DRIVEN: Mutex<BTreeMap<String, Driven>> = Mutex::new(BTreeMap::new());

/// How one run ended.
#[derive(Debug, Clone)]
pub(crate) struct Driven {
    pub(crate) struck: Vec<String>,
    pub(crate) in_flight: u64,
    pub(crate) result: String,
    pub(crate) seconds: f64,
}

/// A run of one row. A pass must mean that the fault struck while work was in flight: a run that
/// ends without either is none.
#[derive(Debug)]
pub(crate) struct Row {
    test: String,
    begun: Instant,
    struck: Vec<String>,
    in_flight: u64,
    result: Option<String>,
}

impl Row {
    /// The row that the current test is named after.
    pub(crate) fn begin() -> Self {
        let thread = std::thread::current();
        let test = thread.name().expect("the thread of a test").to_owned();
        let name = test.rsplit("::").next().expect("a name");
        assert!(matrix::has_row_of(name), "{name} is in no row");
        Self {
            test,
            begun: Instant::now(),
            struck: Vec::new(),
            in_flight: 0,
            result: None,
        }
    }

    /// The fault has struck, and so much was in flight just then.
    pub(crate) fn struck(&mut self, by: &str, in_flight: impl TryInto<u64>) {
        let in_flight = in_flight.try_into().unwrap_or(0);
        assert!(in_flight > 0, "{by}: nothing was in flight");
        self.in_flight = self.in_flight.max(in_flight);
        if !self.struck.iter().any(|struck| struck == by) {
            self.struck.push(by.to_owned());
        }
    }

    /// Every promise held, and nobody's grant was taken back.
    pub(crate) fn held(self, verdict: &Verdict) {
        verdict.assert_none_rejected();
        self.held_with_rejections(verdict);
    }

    /// Every promise held; grants may have been taken back, for a reason that the buyer can read.
    pub(crate) fn held_with_rejections(mut self, verdict: &Verdict) {
        verdict.assert_holds();
        assert!(!self.struck.is_empty(), "no fault has struck");
        let (granted, rejected) = (verdict.granted.len(), verdict.rejected.len());
        self.result = Some(format!("held: {granted} granted, {rejected} taken back"));
    }

    /// It could not be driven on this machine.
    pub(crate) fn skipped(mut self, why: &str) {
        say(&format!("SKIPPED {}: {why}", self.test));
        self.result = Some(format!("skipped: {why}"));
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        let result = self.result.take();
        let driven = Driven {
            struck: std::mem::take(&mut self.struck),
            in_flight: self.in_flight,
            result: result.unwrap_or_else(|| "FAILED".to_owned()),
            seconds: self.begun.elapsed().as_secs_f64(),
        };
        say(&format!(
            "{}: struck by {}; {} in flight; {}; {:.1} s",
            self.test,
            driven.struck.join(", "),
            driven.in_flight,
            driven.result,
            driven.seconds,
        ));
        let mut all = DRIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(self.test.clone(), driven);
        let page = matrix::report(&all);
        if let Err(error) = write(&page) {
            say(&format!("no report: {error}"));
        }
    }
}

fn write(page: &str) -> std::io::Result<()> {
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../test-report");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("faults.md"), page)
}

/// A line that the test harness does not hold back.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "fault matrix: {line}");
}

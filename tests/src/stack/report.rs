//! Saying which stack the tests ran on, and how many of them.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::reaper;

/// File to which every test that ran is added, as `stack<TAB>versions<TAB>binary<TAB>test`.
/// `scripts/test.sh` sets it, prints the totals and fails if a stack has none.
pub(super) const REPORT: &str = "SECKILL_TEST_REPORT";

/// Prints a line that the test harness does not hold back: it captures what
/// `eprintln!` prints, and this has to be seen when all tests pass.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "test stack: {line}");
}

/// The stacks and tests that have been counted.
static COUNTED: LazyLock<Mutex<HashSet<(String, String)>>> = LazyLock::new(Mutex::default);

/// Notes that the current test runs on this stack; once, however often it asks.
/// The harness names the thread of a test after it.
pub(super) fn count(stack: &str, versions: &str) {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    let test = name.unwrap_or("unnamed");
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    if name.is_some() && !counted.insert((stack.to_owned(), test.to_owned())) {
        return;
    }
    reaper::count_test(&format!("{stack} ({versions})"));
    let Some(file) = std::env::var_os(REPORT).filter(|name| !name.is_empty()) else {
        return;
    };
    let line = format!("{stack}\t{versions}\t{}\t{}\n", binary(), test);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{REPORT}={}: {error}", file.display()));
}

/// The name of this test binary, without the hash that cargo adds.
pub(super) fn binary() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match name.rsplit_once('-') {
        Some((stem, hash)) if hash.len() == 16 => stem.to_owned(),
        _ => name,
    }
}

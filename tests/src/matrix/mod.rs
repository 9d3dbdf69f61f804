//! The required fault cases, where each is driven, and what came of it.
//!
//! A test that drives a row says so by a [`Row`], in whatever target it is: what struck, what was in
//! flight just then, and how it ended goes into `target/test-report/faults.md`.

mod report;
mod required;
mod row;

pub use required::ROWS;
pub use row::Row;

/// A required fault case.
#[derive(Debug)]
pub struct Required {
    /// `F1` to `F32`.
    pub row: &'static str,
    /// What strikes.
    pub fault: &'static str,
    /// The promises that it is about.
    pub promises: &'static str,
    /// `target::module::function`; none if it is not driven.
    pub tests: &'static [&'static str],
    /// Tests that fail with the guard off, in `negative_controls`; or that drive a row without what
    /// makes it hold, and see it fail.
    pub controls: &'static [&'static str],
    /// What is different from what is asked, or why it is not driven.
    pub note: &'static str,
}

/// The row that lists a test of this name, and how it lists it.
fn listing(test: &str) -> Option<(&'static Required, &'static str)> {
    let name = test.rsplit("::").next()?;
    ROWS.iter().find_map(|required| {
        let is_it = |listed: &&&str| listed.rsplit("::").next() == Some(name);
        let listed = required.tests.iter().find(is_it)?;
        Some((required, *listed))
    })
}

/// The row that a test of the target `faults` is named after: `f07_…` drives F7.
pub fn named_after(test: &str) -> Option<&'static Required> {
    let name = test.rsplit("::").next()?;
    let number = name.strip_prefix('f')?.split('_').next()?;
    let row = format!("F{}", number.trim_start_matches('0'));
    ROWS.iter().find(|required| required.row == row)
}

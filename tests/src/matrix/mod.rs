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

/// The row that lists the test of this name, and how it lists it. A listed name has the target in
/// front, and may leave out modules that only say on which stack a scenario is stamped.
fn listing(test: &str) -> Option<(&'static Required, &'static str)> {
    ROWS.iter().find_map(|required| {
        let listed = required.tests.iter().find(|listed| is_listed(listed, test));
        Some((required, *listed?))
    })
}

fn is_listed(listed: &str, test: &str) -> bool {
    let mut there = test.split("::");
    let mut named = listed.split("::").skip(1);
    let ends_alike = listed.rsplit("::").next() == test.rsplit("::").next();
    ends_alike && named.all(|piece| there.any(|module| module == piece))
}

/// The row that a test of the target `faults` is named after: `f07_…` drives F7.
pub fn named_after(test: &str) -> Option<&'static Required> {
    let name = test.rsplit("::").next()?;
    let number = name.strip_prefix('f')?.split('_').next()?;
    let row = format!("F{}", number.trim_start_matches('0'));
    ROWS.iter().find(|required| required.row == row)
}

#[cfg(test)]
mod tests {
    use super::is_listed;

    #[test]
    fn a_test_is_listed_by_what_tells_it_from_others() {
        let listed = "repairs::crash::relay::servers::every_scene";
        assert!(is_listed(listed, "crash::relay::servers::every_scene"));
        assert!(!is_listed(listed, "crash::release::servers::every_scene"));
        let short = "repairs::crash::relay::a_grant";
        assert!(is_listed(short, "crash::relay::memory::a_grant"));
        assert!(!is_listed(short, "crash::relay::memory::a_grant_of_two"));
        assert!(!is_listed(short, "relay::crash::a_grant"));
    }
}

//! The page on known failures names tests; this looks each of them up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/holes.md")).expect("docs/holes.md")
}

/// Everything in code quotes that names a test: `path/of/file.rs::function`.
fn named(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once(".rs::"))
}

/// The rows of its tables, cell by cell, without the headings.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    let cells = lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect());
    cells.filter(|cells: &Vec<&str>| cells[0] != "no.")
}

/// Whether this line of a test's source is where the test is, and not only spoken of.
fn is_defined(source: &str, function: &str) -> bool {
    source.contains(&format!("fn {function}("))
}

#[test]
fn every_test_that_is_named_exists() {
    let page = page();
    let mut sources: BTreeMap<&str, String> = BTreeMap::new();
    let mut count = 0;
    for (file, function) in named(&page) {
        let source = sources.entry(file).or_insert_with(|| {
            let path = root().join(format!("{file}.rs"));
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}.rs: {error}"))
        });
        assert!(is_defined(source, function), "no {function} in {file}.rs");
        count += 1;
    }
    assert!(count > 100, "the page names {count} tests");
}

/// Every number of the lists that were gone through.
fn numbers() -> BTreeSet<String> {
    // The reports that are left out are of things that this service does not have.
    let reports = [1].into_iter().chain(3..=22).chain([25]);
    let reports = reports.chain(27..=44).chain(46..=50).chain([52, 56, 57]);
    let classics = (1..=17).map(|number| number.to_string());
    let first = (1..=17).map(|number| format!("1.{number}"));
    let second = (1..=34).map(|number| format!("2.{number}"));
    let reports = reports.map(|number| format!("B{number}"));
    classics.chain(first).chain(second).chain(reports).collect()
}

#[test]
fn every_failure_is_there_with_what_stops_it_and_a_test() {
    let page = page();
    let mut seen = BTreeSet::new();
    for cells in rows(&page) {
        let [marks, failure, stop, tests] = cells[..] else {
            panic!("not four cells: {cells:?}");
        };
        assert!(!failure.is_empty() && !stop.is_empty(), "{marks}");
        assert!(named(tests).next().is_some(), "{marks} has no test");
        seen.extend(marks.split(", ").map(str::to_owned));
    }
    assert_eq!(seen, numbers());
}

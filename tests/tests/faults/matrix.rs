//! The required rows, and where each is driven. What is written here is what the page on reliability
//! shows: a test compares them, and another one looks up every test that is named.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::required::ROWS;
use crate::row::Driven;

/// A required fault case.
#[derive(Debug)]
pub(crate) struct Required {
    /// `F1` to `F32`.
    pub(crate) row: &'static str,
    pub(crate) fault: &'static str,
    /// The promises that it is about.
    pub(crate) promises: &'static str,
    /// `target::module::function`; none if it is not driven.
    pub(crate) tests: &'static [&'static str],
    /// Tests that fail with the guard off, in `negative_controls`.
    pub(crate) controls: &'static [&'static str],
    /// What is different from what is asked, or why it is not driven.
    pub(crate) note: &'static str,
}

/// The row that a test of this target is named after.
fn row_of(test: &str) -> Option<&'static Required> {
    let name = test.rsplit("::").next()?;
    let number = name.strip_prefix('f')?.split('_').next()?;
    let row = format!("F{}", number.trim_start_matches('0'));
    ROWS.iter().find(|required| required.row == row)
}

pub(crate) fn has_row_of(test: &str) -> bool {
    row_of(test).is_some()
}

/// What this process has driven, row by row.
pub(crate) fn report(driven: &BTreeMap<String, Driven>) -> String {
    let mut page = String::from(
        "| row | test | struck by | in flight | result | s |\n|---|---|---|---|---|---|\n",
    );
    for required in ROWS {
        let mine = |test: &&String| row_of(test).is_some_and(|found| found.row == required.row);
        for test in driven.keys().filter(mine) {
            let ran = &driven[test];
            let _ = writeln!(
                page,
                "| {} | `{test}` | {} | {} | {} | {:.1} |",
                required.row,
                ran.struck.join("; "),
                ran.in_flight,
                ran.result,
                ran.seconds
            );
        }
        for test in required.tests.iter().filter(|test| !is_here(test)) {
            let _ = writeln!(
                page,
                "| {} | `{test}` | | | runs elsewhere | |",
                required.row
            );
        }
        if required.tests.is_empty() {
            let (row, note) = (required.row, required.note);
            let _ = writeln!(page, "| {row} | none | | | not driven: {note} | |");
        }
    }
    page
}

fn is_here(test: &str) -> bool {
    test.starts_with("faults::")
}

/// The table of the page on reliability.
fn table() -> String {
    let mut table = String::from(
        "| row | fault | promises | driven by | fails without its guard | remarks |\n\
         |---|---|---|---|---|---|\n",
    );
    let list = |tests: &[&str]| {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        tests.join("<br>")
    };
    for required in ROWS {
        let tests = match required.tests {
            [] => "not driven".to_owned(),
            tests => list(tests),
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} | {tests} | {} | {} |",
            required.row,
            required.fault,
            required.promises,
            list(required.controls),
            required.note
        );
    }
    table
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The text of a test target, all files of it.
fn text_of(target: &str) -> String {
    let folder = tests_folder();
    if let Ok(text) = std::fs::read_to_string(folder.join(format!("{target}.rs"))) {
        return text;
    }
    let mut text = String::new();
    let mut folders = vec![folder.join(target)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{target}: {error}"))
        {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&std::fs::read_to_string(path).expect("a source"));
            }
        }
    }
    text
}

#[test]
fn every_row_is_there_and_every_named_test_exists() {
    let rows: Vec<String> = ROWS
        .iter()
        .map(|required| required.row.to_owned())
        .collect();
    let expected: Vec<String> = (1..=32).map(|number| format!("F{number}")).collect();
    assert_eq!(rows, expected);
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for required in ROWS {
        let is_told = !required.tests.is_empty() || !required.note.is_empty();
        assert!(is_told, "{}: neither a test nor a reason", required.row);
        let controls = required
            .controls
            .iter()
            .map(|name| ("negative_controls", *name));
        let driving = required.tests.iter().map(|test| {
            let (target, name) = test.split_once("::").expect("a target");
            (target, name.rsplit("::").next().expect("a name"))
        });
        for (target, name) in driving.chain(controls) {
            let text = texts.entry(target).or_insert_with(|| text_of(target));
            let known = ["fn ", "", "    "].iter().any(|before| {
                let after = if *before == "fn " { "(" } else { " => " };
                text.contains(&format!("{before}{name}{after}"))
            });
            assert!(known, "{}: there is no {target} {name}", required.row);
        }
    }
}

/// The other direction: whatever is named after a row is in that row.
#[test]
fn every_test_of_a_row_is_listed() {
    for line in text_of("faults").lines() {
        let Some(name) = line.trim().strip_prefix("async fn f") else {
            continue;
        };
        let name = format!("f{}", name.split('(').next().expect("a name"));
        let Some(required) = row_of(&name) else {
            continue;
        };
        let end = format!("::{name}");
        let listed = required.tests.iter().any(|test| test.ends_with(&end));
        assert!(listed, "{}: {name} is not listed", required.row);
    }
}

/// The page shows this table. `SECKILL_TEST_WRITE_PAGES=1` writes it there.
#[test]
fn the_page_on_reliability_shows_the_matrix() {
    const BEGIN: &str = "<!-- The table is written by tests/tests/faults/matrix.rs. -->\n\n";
    const END: &str = "\n<!-- End of the table. -->";
    let path = tests_folder().join("../../docs/reliability.md");
    let page = std::fs::read_to_string(&path).expect("docs/reliability.md");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (shown, after) = rest.split_once(END).expect("where the table ends");
    if std::env::var_os("SECKILL_TEST_WRITE_PAGES").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", table());
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    assert!(
        shown == table(),
        "docs/reliability.md is behind: run this test with SECKILL_TEST_WRITE_PAGES=1"
    );
}

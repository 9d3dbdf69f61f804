//! The rows that are listed are driven: every test that is named is looked up, and the page on
//! reliability shows what is listed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use seckill_tests::matrix::{ROWS, named_after};

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

/// A control is a row that is driven without what makes it hold, or a scenario without a guard.
fn target_of(control: &str) -> &'static str {
    match named_after(control) {
        Some(_) => "faults",
        None => "negative_controls",
    }
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
            .map(|name| (target_of(name), *name));
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
        let Some(required) = named_after(&name) else {
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

//! What became of each row, on one page, whichever targets drove them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::ROWS;

/// How one run ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Driven {
    pub(super) struck: String,
    pub(super) in_flight: String,
    pub(super) result: String,
    pub(super) seconds: String,
}

impl Driven {
    fn line(&self) -> String {
        [&self.struck, &self.in_flight, &self.result, &self.seconds]
            .map(|field| field.replace(['\t', '\n'], " "))
            .join("\t")
    }

    fn read(line: &str) -> Self {
        let mut fields = line.trim_end().split('\t').map(ToOwned::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        Self {
            struck: next(),
            in_flight: next(),
            result: next(),
            seconds: next(),
        }
    }
}

/// `target/test-report`, beside the binary that runs.
fn folder() -> std::io::Result<PathBuf> {
    let binary = std::env::current_exe()?;
    let target = binary.ancestors().nth(3).unwrap_or(Path::new("."));
    Ok(target.join("test-report"))
}

/// Writes down how a test ended, and the page anew.
pub(super) fn write(test: &str, driven: &Driven) -> std::io::Result<()> {
    let folder = folder()?;
    let results = folder.join("fault-rows");
    std::fs::create_dir_all(&results)?;
    std::fs::write(results.join(file_of(test)), driven.line())?;
    let read = |test: &str| {
        let line = std::fs::read_to_string(results.join(file_of(test)));
        line.ok().map(|line| Driven::read(&line))
    };
    std::fs::write(folder.join("faults.md"), page(read))
}

fn file_of(test: &str) -> String {
    format!("{}.tsv", test.replace("::", "."))
}

/// The last run of every test of every row.
fn page(read: impl Fn(&str) -> Option<Driven>) -> String {
    let mut page = String::from(
        "| row | test | struck by | in flight | result | s |\n|---|---|---|---|---|---|\n",
    );
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for required in ROWS {
        let row = required.row;
        if required.tests.is_empty() {
            let _ = writeln!(
                page,
                "| {row} | none | | | not driven: {} | |",
                required.note
            );
        }
        for test in required.tests {
            let ran = read(test).unwrap_or(Driven {
                result: "not run".to_owned(),
                ..Driven::default()
            });
            let kind = ran.result.split(':').next().unwrap_or_default();
            let kind = ["held", "skipped", "not run"]
                .into_iter()
                .find(|it| *it == kind);
            *sums.entry(kind.unwrap_or("FAILED")).or_default() += 1;
            let _ = writeln!(
                page,
                "| {row} | `{test}` | {} | {} | {} | {} |",
                ran.struck, ran.in_flight, ran.result, ran.seconds
            );
        }
    }
    let sums: Vec<String> = sums
        .iter()
        .map(|(kind, sum)| format!("{sum} {kind}"))
        .collect();
    let _ = writeln!(page, "\nTests of rows: {}.", sums.join(", "));
    page
}

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 120;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua")
}

/// The names that the header gives after `-- KEYS[1] ` and the like.
fn named(source: &str, what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in source.lines().take_while(|line| line.starts_with("--")) {
        let Some(rest) = line.strip_prefix(&format!("-- {what}[")) else {
            continue;
        };
        let (number, rest) = rest.split_once("] ").expect("a number in brackets");
        let (name, described) = rest.split_once(": ").expect("a name and what it is");
        assert!(!described.is_empty(), "{line}");
        let repeats = number.ends_with("...");
        let number = number.trim_end_matches("...");
        assert_eq!(
            number.parse(),
            Ok(found.len() + 1),
            "counted from 1: {line}"
        );
        found.push(format!("{name}{}", if repeats { "..." } else { "" }));
    }
    found
}

fn answers(source: &str) -> Vec<String> {
    let header = source.lines().take_while(|line| line.starts_with("--"));
    header
        .filter_map(|line| line.strip_prefix("-- RETURN "))
        .map(|line| line.split([' ', ':']).next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_headers_agree_with_the_table() {
    for script in ALL {
        let path = folder().join(format!("{}.lua", script.name));
        let source = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let keys: Vec<_> = script.keys.iter().map(|key| key.word()).collect();
        assert_eq!(named(&source, "KEYS"), keys, "keys of {}", script.name);
        assert_eq!(
            named(&source, "ARGV"),
            script.args,
            "arguments of {}",
            script.name
        );
        assert_eq!(
            answers(&source),
            script.answers,
            "answers of {}",
            script.name
        );
        assert_eq!(
            script.is_told_epoch(),
            script.args.first() == Some(&"epoch"),
            "{} is told the epoch first",
            script.name
        );
        assert!(
            source.lines().count() <= LINES_MAX,
            "{} is too long",
            script.name
        );
    }
}

#[test]
fn every_answer_of_a_script_is_in_its_header() {
    for script in ALL {
        let (_, own) = script.parts.last().copied().unwrap_or_default();
        for line in own.lines().filter(|line| !line.starts_with("--")) {
            for (at, _) in line.match_indices("return { '") {
                let word = line[at + 10..].split('\'').next().unwrap_or_default();
                assert!(script.answers.contains(&word), "{}: {word}", script.name);
            }
        }
    }
}

#[test]
fn every_file_is_in_the_table() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .expect("the folder of scripts")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|it| it == "lua"))
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let table: BTreeSet<String> = ALL.iter().map(|script| script.name.to_owned()).collect();
    assert_eq!(files, table);
}

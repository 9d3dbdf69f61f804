//! Seeds must hold: new ones each time, and those that once did not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use seckill_simulation::batch::{Batch, Found, SEEDS, new_base};
use seckill_simulation::coverage::Seen;

/// How many seeds run twice.
const TWICE: u64 = 120;
const REGRESSIONS: &str = include_str!("../regressions.txt");

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
    )
}

/// The first of so many seeds: new ones each time, unless `SECKILL_SIM_BASE` says which.
fn base(count: u64) -> u64 {
    let base = setting("SECKILL_SIM_BASE").unwrap_or_else(new_base);
    println!("{count} seeds from {base}");
    base
}

/// Panics with every seed that does not hold, and how to see it.
fn assert_holds(found: &Found) {
    let failures = found.failures.iter();
    let how = failures.map(|(seed, violation)| format!("seed {seed}: {violation}\n"));
    let how: String = how.collect();
    let again = found
        .failures
        .iter()
        .map(|(seed, _)| format!("cargo run --release -p seckill-simulation -- --seed {seed}\n"));
    let again: String = again.collect();
    assert!(how.is_empty(), "\n{how}\n{again}");
}

#[test]
fn new_seeds_hold_and_everything_happens_in_them() {
    let count = setting("SECKILL_SIM_SEEDS").unwrap_or(SEEDS);
    let base = base(count);
    let found = Batch::of(base, count).go();
    println!("{}", found.coverage);
    assert_holds(&found);
    assert_eq!(found.too_rare(), Vec::<String>::new());
}

#[test]
fn what_never_happened_is_told() {
    let nothing = |ran| Found {
        ran,
        ..Found::default()
    };
    let told = nothing(SEEDS).too_rare();
    assert_eq!(told.len(), Seen::ALL.len());
    assert!(
        told.contains(&"\"promotion\" happened 0 times, and must 50 times".to_owned()),
        "{told:?}"
    );
    assert_eq!(nothing(100).too_rare(), Vec::<String>::new(), "too few");
}

/// Each line of the list: the seed, and the test that holds what it once found.
fn regressions() -> impl Iterator<Item = (u64, &'static str)> {
    let lines = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut parts = line.split(" | ");
        let seed = parts.next().expect("a seed").parse().expect("a number");
        (seed, parts.next().expect("a test"))
    })
}

#[test]
fn seeds_that_once_did_not_hold_do() {
    for (seed, _) in regressions() {
        assert_holds(&Batch::of(seed, 1).go());
    }
}

/// Every function in the sources below a folder, by name.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("a text");
            let names = text
                .split("fn ")
                .skip(1)
                .filter_map(|it| it.split('(').next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn each_of_them_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = BTreeSet::from(["-".to_owned()]);
    for folder in ["domain", "application", "adapters", "tests"] {
        functions(&root.join(folder), &mut known);
    }
    let unknown = regressions().find(|(_, test)| !known.contains(*test));
    assert_eq!(unknown, None);
}

/// Neither the thread nor the order of a hash, which differs from map to map, is in a trace.
#[test]
fn a_seed_gives_one_trace() {
    let base = base(TWICE);
    let [once, again] = [(); 2].map(|()| Batch::of(base, TWICE).go().traces);
    let differ = once.iter().filter(|(seed, _)| again[seed] != once[seed]);
    let differ: Vec<u64> = differ.map(|(seed, _)| *seed).collect();
    assert!(differ.is_empty(), "seeds {differ:?} have two traces each");
    assert_ne!(once[&base], once[&(base + 1)]);
}

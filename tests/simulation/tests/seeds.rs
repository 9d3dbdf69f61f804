//! Seeds must hold: new ones each time, and those that once did not.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use seckill_simulation::batch::{Batch, Found};
use seckill_simulation::coverage::Seen;

/// How many seeds run unless `SECKILL_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;
/// How often everything must have happened in so many.
const TIMES_MIN: u64 = 50;
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
    let new = || RandomState::new().build_hasher().finish() >> 16;
    let base = setting("SECKILL_SIM_BASE").unwrap_or_else(new);
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
    for what in Seen::ALL {
        let times = found.coverage.times(*what);
        let least = TIMES_MIN * count / SEEDS;
        assert!(
            times >= least,
            "{} happened {times} times, not {least}",
            what.words()
        );
    }
}

#[test]
fn seeds_that_once_did_not_hold_do() {
    let lines = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let seed = line
            .split_whitespace()
            .next()
            .expect("a seed")
            .parse()
            .expect("a number");
        assert_holds(&Batch::of(seed, 1).go());
    }
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

//! Seeds must hold: new ones each time, and those that once did not.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::thread;

use seckill_simulation::batch::{Batch, Found};
use seckill_simulation::coverage::Seen;
use seckill_simulation::sim::Run;

/// How many seeds run unless `SECKILL_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;
/// How often everything must have happened in so many.
const TIMES_MIN: u64 = 50;
const REGRESSIONS: &str = include_str!("../regressions.txt");

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
    )
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
    let base = setting("SECKILL_SIM_BASE")
        .unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 16);
    println!("{count} seeds from {base}");
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

#[test]
fn a_seed_gives_one_trace() {
    for seed in 1..=8 {
        let here = Run::of(seed).go().trace;
        let there = thread::spawn(move || Run::of(seed).go().trace)
            .join()
            .expect("no panic");
        assert_eq!(here, there, "seed {seed}");
    }
    assert_ne!(Run::of(1).go().trace, Run::of(2).go().trace);
}

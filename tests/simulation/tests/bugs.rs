//! Each layer of defence earns its place: without it, the simulation finds what it is there for,
//! and not just anything.

use seckill_simulation::batch::Batch;
use seckill_simulation::bug::Bug;
use seckill_simulation::sim::Run;

/// Seeds within which every planted bug must be found: the same ones each time.
const SEEDS: u64 = 1_000;

#[test]
fn every_planted_bug_is_found() {
    println!(
        "| bug | layer it takes away | seeds until it is found | what shows it |\n|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let batch = Batch {
            bug: Some(*bug),
            enough: 1,
            ..Batch::of(1, SEEDS)
        };
        let found = batch.go();
        println!(
            "| {bug} | {} | {} | {} |",
            bug.layer(),
            found.ran,
            found.rules()
        );
        if found.failures.is_empty() {
            missed.push(bug.word());
        }
        for (seed, violation) in &found.failures {
            let expected = bug.breaks();
            assert!(
                expected.contains(&violation.rule),
                "seed {seed} with {bug}: {violation}, which is none of {expected:?}"
            );
            let without = Run::of(*seed).go().violation;
            assert!(without.is_none(), "seed {seed} does not hold without {bug}");
        }
    }
    assert!(
        missed.is_empty(),
        "not found within {SEEDS} seeds: {missed:?}"
    );
}

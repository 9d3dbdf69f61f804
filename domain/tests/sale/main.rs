//! Random lives of a sale, audited from outside: whatever is asked of it, in whatever order, the
//! books of an auditor who only sees questions, answers and decisions must hold.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod audit;
mod gate;
mod steps;

use std::cell::RefCell;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRng, TestRunner};

use audit::{Auditor, Seen};
use gate::{Flaw, Gate};
use steps::{Life, lives};

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    // The same lives every time: a failure here is the same failure on every machine.
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng)
}

fn live(life: &Life, flaw: Flaw) -> Result<Seen, String> {
    let mut auditor = Auditor::of(life.terms, life.free);
    let mut gate = Gate::open(life.terms, life.free, flaw);
    for step in &life.steps {
        auditor.watch(&mut gate, step)?;
    }
    Ok(auditor.seen())
}

#[test]
fn no_life_of_a_sale_breaks_an_invariant() {
    let seen = RefCell::new(Seen::default());
    runner(1_500)
        .run(&lives(), |life| {
            let life = live(&life, Flaw::None).map_err(TestCaseError::fail)?;
            seen.borrow_mut().add(&life);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    let seen = seen.into_inner();
    let missing = seen.never_happened();
    assert!(
        missing.is_empty(),
        "never happened: {missing:?} in {seen:?}"
    );
}

/// The auditor is worth something only if he finds what is wrong: each planted flaw must be found.
fn is_found(flaw: Flaw) -> String {
    match runner(1_500).run(&lives(), |life| {
        live(&life, flaw).map(drop).map_err(TestCaseError::fail)
    }) {
        Err(TestError::Fail(reason, _)) => reason.to_string(),
        other => panic!("{flaw:?} was not found: {other:?}"),
    }
}

#[test]
fn a_gate_that_lets_buyers_jump_the_queue_is_found() {
    let reason = is_found(Flaw::JumpsTheQueue);
    assert!(reason.contains("while somebody waited"), "{reason}");
}

#[test]
fn a_gate_that_serves_the_last_first_is_found() {
    let reason = is_found(Flaw::ServesTheLastFirst);
    assert!(reason.contains("it was the turn of"), "{reason}");
}

#[test]
fn a_gate_that_forgets_keys_is_found() {
    let reason = is_found(Flaw::ForgetsKeys);
    assert!(reason.contains("key"), "{reason}");
}

#[test]
fn a_gate_that_takes_units_back_from_anybody_is_found() {
    let reason = is_found(Flaw::TakesUnitsFromAnybody);
    assert!(reason.contains("I1"), "{reason}");
}

#[test]
fn a_gate_that_forgets_a_unit_is_found() {
    let reason = is_found(Flaw::LosesAUnit);
    assert!(reason.contains("I1"), "{reason}");
}

#[test]
fn a_gate_that_ignores_the_limit_is_found() {
    is_found(Flaw::IgnoresTheLimit);
}

#[test]
fn a_gate_that_promotes_during_a_pause_is_found() {
    let reason = is_found(Flaw::PromotesDuringAPause);
    assert!(reason.contains("not on sale"), "{reason}");
}

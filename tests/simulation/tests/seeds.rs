//! Seeds must hold.

use seckill_simulation::sim::Run;

#[test]
fn a_few_seeds_hold() {
    for seed in 0..20 {
        let outcome = Run::of(seed).go();
        assert!(
            outcome.violation.is_none(),
            "seed {seed}: {}",
            outcome.violation.unwrap()
        );
    }
}

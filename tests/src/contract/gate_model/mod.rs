//! The gate decides like the rule: the same random life is put to an adapter and to
//! [`seckill_domain::Sale`], and answers, decisions and the sale after them must be the same.
//!
//! Scripts in Redis carry the rule out a second time, in another language; this is what holds them
//! to it beyond the cases that somebody thought of.

mod life;
mod rule;

use life::Life;

use super::{HotHarness, chance, promises};

promises! { gate_model over dyn HotHarness:
    a_quiet_sale_follows_the_rule,
    a_sale_with_a_waitlist_follows_the_rule,
    a_sale_in_quantities_follows_the_rule,
    a_sale_that_is_rebuilt_again_and_again_follows_the_rule,
    a_sale_by_chance_follows_the_rule,
}

/// Steps of one life.
const STEPS: usize = 250;

async fn a_quiet_sale_follows_the_rule(harness: &dyn HotHarness) {
    Life::of(1)
        .units(12)
        .limit(1)
        .waitlist(0)
        .live(harness, STEPS)
        .await;
}

async fn a_sale_with_a_waitlist_follows_the_rule(harness: &dyn HotHarness) {
    Life::of(2)
        .units(4)
        .limit(1)
        .waitlist(6)
        .live(harness, STEPS)
        .await;
}

async fn a_sale_in_quantities_follows_the_rule(harness: &dyn HotHarness) {
    Life::of(3)
        .units(9)
        .limit(3)
        .waitlist(6)
        .live(harness, STEPS)
        .await;
}

async fn a_sale_that_is_rebuilt_again_and_again_follows_the_rule(harness: &dyn HotHarness) {
    let life = Life::of(4).units(9).limit(3).waitlist(6);
    life.rebuilt().live(harness, STEPS).await;
}

async fn a_sale_by_chance_follows_the_rule(harness: &dyn HotHarness) {
    Life::by_chance(chance::seed()).live(harness, STEPS).await;
}

//! The ledger decides like the one in memory: the same random life is put to an adapter and to
//! [`seckill_memory::MemoryLedger`], and every answer, order, sum and snapshot must be the same.
//!
//! What the simulation proves, it proves of the ledger in memory; this is what carries it over to a
//! database.

mod life;
mod side;

use life::Life;

use super::{LedgerHarness, chance, promises};

promises! { ledger_model over dyn LedgerHarness:
    a_sale_without_keys_goes_the_same_way,
    a_sale_with_keys_goes_the_same_way,
    a_sale_in_quantities_goes_the_same_way,
    a_sale_with_little_stock_goes_the_same_way,
    a_sale_by_chance_goes_the_same_way,
}

/// Steps of one life.
const STEPS: usize = 120;

async fn a_sale_without_keys_goes_the_same_way(harness: &dyn LedgerHarness) {
    Life::of(1).live(harness, STEPS).await;
}

async fn a_sale_with_keys_goes_the_same_way(harness: &dyn LedgerHarness) {
    Life::of(2).keys(3).live(harness, STEPS).await;
}

async fn a_sale_in_quantities_goes_the_same_way(harness: &dyn LedgerHarness) {
    let life = Life::of(3).units(25).limit(4).keys(2);
    life.live(harness, STEPS).await;
}

async fn a_sale_with_little_stock_goes_the_same_way(harness: &dyn LedgerHarness) {
    Life::of(4).units(3).limit(2).live(harness, STEPS).await;
}

async fn a_sale_by_chance_goes_the_same_way(harness: &dyn LedgerHarness) {
    Life::by_chance(chance::seed()).live(harness, STEPS).await;
}

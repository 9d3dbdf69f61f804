//! The ledger decides like the one in memory: the same random life is put to an adapter and to
//! [`seckill_memory::MemoryLedger`], and every answer, order, event, sum and snapshot must be the same.
//!
//! What the simulation proves, it proves of the ledger in memory; this is what carries it over to a
//! database.

mod life;
mod outbox;
mod side;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::LedgerPorts;
use seckill_domain::{Partitions, Timestamp};
use seckill_memory::{MemoryLedger, VirtualClock};

use life::Life;

use super::{LedgerHarness, chance, promises};

promises! { ledger_model over dyn LedgerHarness:
    a_sale_without_keys_goes_the_same_way,
    a_sale_with_keys_goes_the_same_way,
    a_sale_in_quantities_goes_the_same_way,
    a_sale_with_little_stock_goes_the_same_way,
    a_sale_by_chance_goes_the_same_way,
    the_outbox_goes_the_same_way,
    an_outbox_with_many_claims_goes_the_same_way,
    an_outbox_by_chance_goes_the_same_way,
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

async fn the_outbox_goes_the_same_way(harness: &dyn LedgerHarness) {
    outbox::live(harness, 5, 2, 10).await;
}

async fn an_outbox_with_many_claims_goes_the_same_way(harness: &dyn LedgerHarness) {
    outbox::live(harness, 6, 5, 10).await;
}

async fn an_outbox_by_chance_goes_the_same_way(harness: &dyn LedgerHarness) {
    outbox::live(harness, chance::seed(), 2, 8).await;
}

/// The ledger in memory, which the other one is held to.
struct Reference {
    ledger: MemoryLedger,
    ports: LedgerPorts,
    clock: Arc<VirtualClock>,
}

impl Reference {
    fn new(partitions: Partitions) -> Self {
        let clock = Arc::new(VirtualClock::new(Timestamp::from_millis(1_796_000_000_000)));
        let ledger = MemoryLedger::new(clock.clone(), partitions);
        Self {
            ports: ledger.ports(),
            ledger,
            clock,
        }
    }
}

#[async_trait]
impl LedgerHarness for Reference {
    fn ledger(&self) -> &LedgerPorts {
        &self.ports
    }

    async fn another_process(&self) -> LedgerPorts {
        self.ledger.ports()
    }

    async fn elapse(&self, time: Duration) {
        self.clock.advance(time);
    }
}

//! Leases, the delay queue and the admission stream answer like those in memory: the same random life is put to an adapter
//! and to [`seckill_memory::MemoryHotPath`], and every answer must be the same.
//!
//! Time is either long enough that nothing ends by itself, or let go by at once: so a real clock and
//! a virtual one tell the same story.

mod delays;
mod leases;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_application::ports::HotPath;
use seckill_memory::{HotPathOptions, MemoryHotPath, VirtualClock};

use super::{HotHarness, chance, promises};

promises! { hot_model over dyn HotHarness:
    leases_go_the_same_way,
    leases_that_often_end_go_the_same_way,
    leases_by_chance_go_the_same_way,
    the_delay_queue_goes_the_same_way,
    a_delay_queue_with_many_claims_goes_the_same_way,
    a_delay_queue_by_chance_goes_the_same_way,
    the_admission_stream_goes_the_same_way,
    another_admission_stream_goes_the_same_way,
    an_admission_stream_by_chance_goes_the_same_way,
}

/// Steps of one life.
const STEPS: usize = 250;
/// What lasts so long does not end during a life.
const LONG: Duration = Duration::from_hours(1);
/// What lasts so long is over after [`Sides::short_time_goes_by`].
const SHORT: Duration = Duration::from_millis(10);
/// Things in a thousand that last [`SHORT`].
const FEW: u32 = 40;
const MANY: u32 = 150;

async fn leases_go_the_same_way(harness: &dyn HotHarness) {
    leases::live(Sides::new(harness, 1, FEW).await).await;
}

async fn leases_that_often_end_go_the_same_way(harness: &dyn HotHarness) {
    leases::live(Sides::new(harness, 2, MANY).await).await;
}

async fn leases_by_chance_go_the_same_way(harness: &dyn HotHarness) {
    leases::live(Sides::new(harness, chance::seed(), FEW).await).await;
}

async fn the_delay_queue_goes_the_same_way(harness: &dyn HotHarness) {
    delays::live(Sides::new(harness, 3, FEW).await).await;
}

async fn a_delay_queue_with_many_claims_goes_the_same_way(harness: &dyn HotHarness) {
    delays::live(Sides::new(harness, 4, MANY).await).await;
}

async fn a_delay_queue_by_chance_goes_the_same_way(harness: &dyn HotHarness) {
    delays::live(Sides::new(harness, chance::seed(), FEW).await).await;
}

async fn the_admission_stream_goes_the_same_way(harness: &dyn HotHarness) {
    stream::live(Sides::new(harness, 5, FEW).await, 12).await;
}

async fn another_admission_stream_goes_the_same_way(harness: &dyn HotHarness) {
    stream::live(Sides::new(harness, 6, FEW).await, 12).await;
}

async fn an_admission_stream_by_chance_goes_the_same_way(harness: &dyn HotHarness) {
    stream::live(Sides::new(harness, chance::seed(), FEW).await, 10).await;
}

/// Two stores that are asked the same: each by two processes.
struct Sides<'a> {
    harness: &'a dyn HotHarness,
    clock: Arc<VirtualClock>,
    real: [HotPath; 2],
    model: [HotPath; 2],
    /// The store of the model.
    store: MemoryHotPath,
    random: StdRng,
    seed: u64,
    /// Things in a thousand that last [`SHORT`].
    short: u32,
}

impl<'a> Sides<'a> {
    async fn new(harness: &'a dyn HotHarness, seed: u64, short: u32) -> Self {
        let clock = Arc::new(VirtualClock::new(harness.gate_time().await));
        let options = HotPathOptions::new(harness.partitions());
        let store = MemoryHotPath::new(options, clock.clone());
        Self {
            real: [harness.hot().clone(), harness.another_process().await],
            model: [store.ports(), store.ports()],
            store,
            clock,
            harness,
            random: StdRng::seed_from_u64(seed),
            seed,
            short,
        }
    }

    /// How long something is to last.
    fn span(&mut self) -> Duration {
        if self.random.random_range(0..1_000) < self.short {
            SHORT
        } else {
            LONG
        }
    }

    async fn short_time_goes_by(&self) {
        let time = 2 * SHORT;
        self.harness.elapse(time).await;
        self.clock.advance(time);
    }
}

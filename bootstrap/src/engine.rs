//! Everything of a process but its HTTP edge: stores, use cases and loops.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;
use seckill_application::ports::Clock;

use crate::adapters::Adapters;
use crate::clock::SystemClock;
use crate::config::{EngineConfig, Role};
use crate::failure::Failure;
use crate::shutdown::Stop;
use crate::wiring::System;
use crate::workers::Workers;

/// How long a stop waits until the ledger has what this process granted.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
const DRAIN_PAUSE: Duration = Duration::from_millis(20);
/// How long a start waits for the first order id.
const IDS_PATIENCE: Duration = Duration::from_secs(15);
/// How long a stop waits for the loops: longer than a blocking read and a batch.
const WORKERS_PATIENCE: Duration = Duration::from_secs(6);

/// The use cases over the chosen stores, with the loops that keep them going.
pub(crate) struct Engine {
    system: Arc<System>,
    adapters: Arc<Adapters>,
    workers: Workers,
    role: Role,
}

impl Engine {
    /// Connects, brings the schema up to date, and starts the loops. `stop` ends the start as well.
    pub(crate) async fn start(config: &EngineConfig, stop: &Stop) -> Result<Self, Failure> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let adapters = Adapters::connect(
            &config.stores,
            config.partitions,
            config.migrate,
            &clock,
            stop,
        )
        .await?;
        let adapters = Arc::new(adapters);
        let process = process_name();
        let system = System::wire(&adapters, config.partitions, config.gate, clock, &process);
        let system = Arc::new(system);
        if config.role.serves() {
            wait_for_order_ids(&system, stop).await?;
        }
        let workers = Workers::start(
            config.role,
            system.clone(),
            adapters.clone(),
            config.workers,
            process,
        );
        Ok(Self {
            system,
            adapters,
            workers,
            role: config.role,
        })
    }

    pub(crate) fn system(&self) -> &Arc<System> {
        &self.system
    }

    pub(crate) fn persistence(&self) -> &str {
        &self.adapters.persistence
    }

    /// Why the process had to stop, if it had to.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.adapters.refusal()
    }

    /// Stops in order: what was granted here reaches the ledger, batches are finished, leases are
    /// given back.
    pub(crate) async fn finish(&self) {
        if self.role.serves() {
            self.drain().await;
        }
        self.workers.stop(WORKERS_PATIENCE).await;
        self.adapters.close().await;
    }

    /// Stops at once.
    pub(crate) async fn end(&self) {
        self.workers.end().await;
    }

    /// Nobody remembers this process's answers once it is gone: waits a little until the ledger has
    /// them.
    async fn drain(&self) {
        let (clock, remembered) = (&self.system.clock, &self.system.remembered);
        let deadline = clock.monotonic() + DRAIN_PATIENCE;
        while !remembered.is_empty() && clock.monotonic() < deadline {
            clock.sleep(DRAIN_PAUSE).await;
        }
        if !remembered.is_empty() {
            let answers = remembered.len();
            tracing::warn!(
                answers,
                "stopped before the ledger had every answer; the stream has them"
            );
        }
    }
}

/// On a hot store that is new the first order id has to wait until no earlier process can hold a
/// lease any more. Better now than in the first buyer's request.
async fn wait_for_order_ids(system: &System, stop: &Stop) -> Result<(), Failure> {
    let begun = system.clock.monotonic();
    let mut fault = None;
    while system.clock.monotonic().saturating_sub(begun) < IDS_PATIENCE {
        let tried = tokio::select! {
            tried = system.hot.order_ids.next() => tried,
            () = stop.asked_for() => return Err(Failure::Stopped),
        };
        match tried {
            Ok(_) => return Ok(()),
            Err(failed) => fault = Some(failed),
        }
        system.clock.sleep(DRAIN_PAUSE).await;
    }
    let problem = match fault {
        Some(fault) => fault.chain(),
        None => "gives no order ids in time".to_owned(),
    };
    let setting = "SECKILL_GATE";
    Err(Failure::Neighbour { setting, problem })
}

/// Unique among all processes of a deployment, and never used again.
#[expect(
    clippy::disallowed_methods,
    reason = "two processes must not agree on a name, whatever seed anybody chose"
)]
pub(crate) fn process_name() -> String {
    let chance: u64 = rand::rng().next_u64();
    format!("{}-{chance:016x}", std::process::id())
}

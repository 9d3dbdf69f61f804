//! Every loop of the process, by name, under one tracker.

mod backoff;
mod order_life;
mod order_writer;
mod reconciliation;
mod upkeep;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use seckill_domain::PartitionId;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::adapters::Adapters;
use crate::config::{Expiry, Role, WorkerSettings};
use crate::shutdown::Stop;
use crate::wiring::System;

pub(crate) use reconciliation::ReconcileSchedule;

/// Sales loaded at the same time.
const LOADERS: usize = 4;
/// How soon a loop that panicked is started again.
const REVIVE_AFTER: Duration = Duration::from_secs(1);

/// The loops of one process.
pub(crate) struct Workers {
    tracker: TaskTracker,
    context: Arc<Context>,
    /// Ends the loops softly; later than the process is told to stop, so that they work while the
    /// last requests are answered.
    stop: Stop,
}

/// What loops work with.
struct Context {
    system: Arc<System>,
    adapters: Arc<Adapters>,
    settings: WorkerSettings,
    /// Unique among all processes, for the owners of leases.
    process: String,
    stop: Stop,
}

impl Workers {
    /// Starts the loops of a role.
    pub(crate) fn start(
        role: Role,
        system: Arc<System>,
        adapters: Arc<Adapters>,
        settings: WorkerSettings,
        process: String,
    ) -> Self {
        let stop = Stop::default();
        let workers = Self {
            tracker: TaskTracker::new(),
            context: Arc::new(Context {
                system,
                adapters,
                settings,
                process,
                stop: stop.clone(),
            }),
            stop,
        };
        workers.spawn("id_keeper", upkeep::keep_ids);
        workers.spawn("gate_identity", upkeep::confirm_gate);
        for loader in 0..LOADERS {
            workers.spawn(&format!("gate_loader.{loader}"), upkeep::load_wanted);
        }
        if role.serves() {
            workers.spawn("remembered_answers", upkeep::settle_answers);
            workers.spawn("prices", upkeep::learn_prices);
        }
        if role.works() {
            workers.spawn_works();
        }
        workers.tracker.close();
        workers
    }

    fn spawn_works(&self) {
        self.spawn("gate_upkeep", upkeep::keep_gate_complete);
        self.spawn("relay_sweep", upkeep::relay);
        let expiry = self.context.settings.expiry;
        if expiry != Expiry::Queue {
            self.spawn("expiry_sweep", order_life::expire_swept);
        }
        if expiry != Expiry::Sweep {
            self.spawn("expiry_on_time", order_life::expire_on_time);
        }
        self.spawn("event_relay", order_life::publish_events);
        self.spawn("refund_sender", order_life::send_refunds);
        self.spawn("retirement", order_life::retire_sales);
        self.spawn("reconciliation", reconciliation::reconcile);
        for partition in self.context.system.partitions.all() {
            self.spawn_writer(partition);
        }
    }

    fn spawn_writer(&self, partition: PartitionId) {
        let name = format!("order_writer.{partition}");
        self.spawn(&name, move |context| {
            order_writer::write_partition(context, partition)
        });
    }

    /// Runs a loop until it ends; starts it again if it panics.
    fn spawn<L, F>(&self, name: &str, start: L)
    where
        L: Fn(Arc<Context>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let context = self.context.clone();
        let span = tracing::info_span!(parent: None, "worker", name);
        let name = name.to_owned();
        let supervised = async move {
            while AssertUnwindSafe(start(context.clone()))
                .catch_unwind()
                .await
                .is_err()
            {
                tracing::error!(name, "a loop panicked; it is started again");
                context.rest(REVIVE_AFTER).await;
            }
        };
        let stop = self.stop.clone();
        let bounded = async move {
            tokio::select! {
                () = supervised => {}
                () = stop.ended() => {}
            }
        };
        self.tracker.spawn(bounded.instrument(span));
    }

    /// Asks the loops to finish and waits until they have; ends those that take longer than
    /// `patience`.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.stop.softly();
        let late = self.context.system.clock.sleep(patience);
        tokio::select! {
            () = self.tracker.wait() => return,
            () = late => tracing::warn!("stopped before every loop had ended"),
        }
        self.end().await;
    }

    /// Ends the loops at once.
    pub(crate) async fn end(&self) {
        self.stop.hard();
        self.tracker.wait().await;
    }
}

impl Context {
    /// Sleeps, but not into a stop. Whether to go on.
    async fn rest(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.system.clock.sleep(pause) => !self.stop.is_asked_for(),
            () = self.stop.asked_for() => false,
        }
    }
}

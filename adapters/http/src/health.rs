//! Whether the process lives, and whether it can do its work.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use seckill_application::ports::{Backlog, Clock, HotPath, LedgerPorts};
use seckill_application::{Fault, Meters, RememberedAnswers};
use seckill_domain::{PartitionId, Partitions};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::Ctx;
use crate::fresh::Fresh;
use crate::metrics::{MetricSource, Samples};
use crate::problem::Problem;

/// What health and metrics look at.
pub struct Vitals {
    /// The hot store.
    pub hot: HotPath,
    /// The database.
    pub ledger: LedgerPorts,
    /// How many partitions there are.
    pub partitions: Partitions,
    /// How many decisions of one partition the ledger may be behind before the gate refuses.
    pub backlog_max: u64,
    /// How well the hot store keeps what it acknowledged, in words.
    pub persistence: String,
    /// Counters of the use cases.
    pub meters: Arc<Meters>,
    /// Grants that the ledger is not known to have.
    pub remembered: Arc<RememberedAnswers>,
    /// More to put on the metrics page.
    pub sources: Vec<MetricSource>,
}

/// Looks at the neighbours.
pub(crate) struct Health {
    pub(crate) vitals: Vitals,
    stopping: CancellationToken,
    neighbours: Fresh<Neighbours>,
    pub(crate) samples: Fresh<Samples>,
}

/// How long a look at the neighbours counts.
const FRESH: Duration = Duration::from_millis(250);
/// How long the numbers for an operator count.
const SAMPLES_FRESH: Duration = Duration::from_secs(1);
/// How long a neighbour may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a look at the neighbours showed.
#[derive(Debug, Clone)]
struct Neighbours {
    gate: bool,
    ledger: bool,
    /// `None` if the hot store does not say.
    backlog_full: Option<bool>,
}

/// Whether the process can do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `degraded`: purchases go on, but something is down.
    status: Status,
    /// What is not ready: `gate`, `ledger`, `backlog`, `process`.
    not_ready: Vec<&'static str>,
    /// What each check saw.
    checks: Checks,
    /// How well the hot store keeps what it acknowledged.
    #[schema(example = "appendfsync always")]
    persistence: String,
}

/// Whether purchases are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReadinessStatus)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ready,
    Degraded,
    Unavailable,
}

/// What each check saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
struct Checks {
    /// The hot store: `up` or `down`.
    gate: &'static str,
    /// The database: `up` or `down`.
    ledger: &'static str,
    /// Decisions that the ledger does not have yet: `ok`, `full` or `unknown`.
    backlog: &'static str,
    /// This process: `running` or `stopping`.
    process: &'static str,
}

impl Health {
    pub(crate) fn new(vitals: Vitals, clock: &Arc<dyn Clock>, stopping: CancellationToken) -> Self {
        Self {
            vitals,
            stopping,
            neighbours: Fresh::new(clock.clone(), FRESH),
            samples: Fresh::new(clock.clone(), SAMPLES_FRESH),
        }
    }

    pub(crate) async fn readiness(&self) -> Readiness {
        let seen = self.neighbours.get(self.look()).await;
        Readiness::of(
            Checks {
                gate: if seen.gate { "up" } else { "down" },
                ledger: if seen.ledger { "up" } else { "down" },
                backlog: match seen.backlog_full {
                    None => "unknown",
                    Some(true) => "full",
                    Some(false) => "ok",
                },
                process: if self.stopping.is_cancelled() {
                    "stopping"
                } else {
                    "running"
                },
            },
            &self.vitals.persistence,
        )
    }

    async fn look(&self) -> Neighbours {
        let ports = &self.vitals;
        let (gate, ledger, backlogs) = futures::join!(
            in_time(ports.hot.gate.ping()),
            in_time(ports.ledger.ledger.ping()),
            self.backlogs(),
        );
        let full = |known: &(PartitionId, Backlog)| known.1.decisions >= ports.backlog_max;
        Neighbours {
            gate: gate.is_some(),
            ledger: ledger.is_some(),
            backlog_full: backlogs.map(|known| known.iter().any(full)),
        }
    }

    /// The backlog of each partition; `None` if the hot store does not say.
    pub(crate) async fn backlogs(&self) -> Option<Vec<(PartitionId, Backlog)>> {
        let stream = &self.vitals.hot.stream;
        let each = self.vitals.partitions.all().map(|partition| async move {
            let backlog = in_time(stream.backlog(partition)).await?;
            Some((partition, backlog))
        });
        join_all(each).await.into_iter().collect()
    }
}

impl Readiness {
    fn of(checks: Checks, persistence: &str) -> Self {
        let process = checks.process == "stopping";
        let gate = checks.gate == "down";
        let backlog = checks.backlog == "full";
        let ledger = checks.ledger == "down";
        let not_ready: Vec<&'static str> = [
            (process, "process"),
            (gate, "gate"),
            (backlog, "backlog"),
            (ledger, "ledger"),
        ]
        .into_iter()
        .filter_map(|(is, name)| is.then_some(name))
        .collect();
        let status = if process || gate || backlog {
            Status::Unavailable
        } else if ledger {
            Status::Degraded
        } else {
            Status::Ready
        };
        Self {
            status,
            not_ready,
            checks,
            persistence: persistence.to_owned(),
        }
    }

    /// For the document and its examples.
    pub(crate) fn example() -> Self {
        Self::of(
            Checks {
                gate: "down",
                ledger: "up",
                backlog: "unknown",
                process: "running",
            },
            "appendfsync always",
        )
    }

    pub(crate) fn is_up(&self, neighbour: &str) -> bool {
        !self.not_ready.contains(&neighbour)
    }
}

pub(crate) async fn in_time<T>(asked: impl Future<Output = Result<T, Fault>>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(fault)) => {
            tracing::debug!(fault = fault.chain(), "not ready");
            None
        }
        Err(_elapsed) => None,
    }
}

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(livez))
        .routes(routes!(readyz));
    let not_ready = Problem::NotReady(Box::new(Readiness::example()));
    crate::openapi::answers(&mut routes, "getReadiness", &[not_ready]);
    routes
}

/// The process lives.
#[derive(Serialize, ToSchema)]
struct Liveness {
    #[schema(example = "alive")]
    status: &'static str,
}

/// Whether the process lives.
#[utoipa::path(get, path = "/livez", operation_id = "getLiveness", tag = "operations", responses(
    (status = 200, description = "The process answers.", body = Liveness)
))]
async fn livez() -> Json<Liveness> {
    Json(Liveness { status: "alive" })
}

/// Whether the process can do its work.
///
/// 200 with `degraded` while the database is down: purchases go on. 503 only while the hot store
/// cannot be reached, the backlog is full, or the process is about to stop.
#[utoipa::path(get, path = "/readyz", operation_id = "getReadiness", tag = "operations", responses(
    (status = 200, description = "Purchases are possible.", body = Readiness)
))]
async fn readyz(State(ctx): State<Ctx>) -> Response {
    let readiness = ctx.health.readiness().await;
    if readiness.status == Status::Unavailable {
        Problem::NotReady(Box::new(readiness)).into_response()
    } else {
        Json(readiness).into_response()
    }
}

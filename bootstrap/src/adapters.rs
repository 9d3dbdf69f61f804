//! The one place that chooses adapters.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{Clock, HotPath, LedgerPorts, Payments};
use seckill_domain::Partitions;
use seckill_memory::{HotPathOptions, MemoryHotPath, MemoryLedger, SandboxPayments};
use seckill_mysql::{LedgerMeters, MySqlLedger};
use seckill_redis::{AppendFsync, RedisHotPath};

use crate::config::{BadSetting, RealStores, Stores};
use crate::failure::Failure;
use crate::gate_identity::GateIdentity;
use crate::shutdown::Stop;

/// What stands behind the ports.
pub struct Adapters {
    /// The hot store.
    pub hot: HotPath,
    /// The database.
    pub ledger: LedgerPorts,
    /// The payment provider.
    pub payments: Arc<dyn Payments>,
    /// How well the hot store keeps what it acknowledged, in words.
    pub persistence: String,
    real: Option<Real>,
}

/// The handles behind the real ports.
struct Real {
    redis: RedisHotPath,
    mysql: MySqlLedger,
    /// Known once the stores belong together.
    identity: Option<GateIdentity>,
}

impl Real {
    /// Two gates for one ledger would each sell the whole stock.
    async fn settle(
        &mut self,
        namespace: &str,
        partitions: Partitions,
        clock: &Arc<dyn Clock>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let settled = self.mysql.settle_namespace(namespace).await;
        let in_force = settled.map_err(|fault| Failure::neighbour(LEDGER, &fault))?;
        if in_force != namespace {
            return Err(Failure::Setting(BadSetting {
                setting: "SECKILL_NAMESPACE",
                problem: format!(
                    "must be {in_force}, as this deployment was created with; it says where the \
                     gate's keys are"
                ),
            }));
        }
        let (redis, mysql) = (self.redis.clone(), self.mysql.clone());
        let settled = GateIdentity::settle(redis, mysql, partitions, clock.clone(), stop).await?;
        self.identity = Some(settled);
        Ok(())
    }
}

/// The settings that name the neighbours.
const GATE: &str = "SECKILL_GATE";
const LEDGER: &str = "SECKILL_LEDGER";
/// How soon a neighbour that is down is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);

impl Adapters {
    /// Connects to the stores that were chosen; waits for a real one that is down. With `migrate`,
    /// brings the schema of the database up to date. Refuses another number of partitions, or another
    /// namespace, than the deployment was created with, and another gate than the one in use.
    pub async fn connect(
        stores: &Stores,
        partitions: Partitions,
        migrate: bool,
        clock: &Arc<dyn Clock>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let mut adapters = match stores {
            Stores::Memory { backlog_max } => Self::memory(partitions, *backlog_max, clock),
            Stores::Real(real) => Self::real(real, migrate, clock, stop).await?,
        };
        adapters.settle(partitions).await?;
        if let (Some(real), Stores::Real(stores)) = (&mut adapters.real, stores) {
            let namespace = &stores.redis.namespace;
            real.settle(namespace, partitions, clock, stop).await?;
        }
        Ok(adapters)
    }

    fn memory(partitions: Partitions, backlog_max: u64, clock: &Arc<dyn Clock>) -> Self {
        let options = HotPathOptions {
            backlog_limit: backlog_max,
            ..HotPathOptions::new(partitions)
        };
        Self {
            hot: MemoryHotPath::new(options, clock.clone()).ports(),
            ledger: MemoryLedger::new(clock.clone(), partitions).ports(),
            payments: Arc::new(SandboxPayments::default()),
            persistence: "memory: gone when the process ends".to_owned(),
            real: None,
        }
    }

    async fn real(
        stores: &RealStores,
        migrate: bool,
        clock: &Arc<dyn Clock>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let mysql = connect_ledger(stores, migrate, clock, stop).await?;
        let redis = patiently(GATE, stores.patience, clock, stop, || {
            RedisHotPath::connect(&stores.redis, clock.clone())
        })
        .await?;
        let server = redis.server();
        tracing::info!(gate = %server, "connected");
        if server.append_only != Some(AppendFsync::Always) {
            tracing::warn!(gate = %server, "this Redis may lose writes that it has acknowledged \
                (appendfsync always on one node does not): then grants are offered again, and \
                those that find no stock are rejected as lost");
        }
        Ok(Self {
            hot: redis.ports(),
            ledger: mysql.ports(),
            // The only provider there is so far: it vouches for every payment, and no money moves.
            payments: Arc::new(SandboxPayments::default()),
            persistence: server.to_string(),
            real: Some(Real {
                redis,
                mysql,
                identity: None,
            }),
        })
    }

    async fn settle(&self, partitions: Partitions) -> Result<(), Failure> {
        let count = partitions.count();
        let settled = self.ledger.admissions.settle_partitions(count).await;
        let in_force = settled.map_err(|fault| Failure::neighbour(LEDGER, &fault))?;
        if in_force == count {
            return Ok(());
        }
        Err(Failure::Setting(BadSetting {
            setting: "SECKILL_PARTITIONS",
            problem: format!(
                "must be {in_force}, as this deployment was created with; it says where a \
                 voucher's keys are"
            ),
        }))
    }

    /// Renews what the stores lend this process.
    pub(crate) async fn keep(&self) -> Result<(), Fault> {
        match &self.real {
            Some(real) => real.redis.keep().await,
            None => Ok(()),
        }
    }

    /// Confirms that the stores belong together; stops the process if they do not any more.
    pub(crate) async fn confirm(&self) -> Result<(), Fault> {
        match self.identity() {
            Some(identity) => identity.confirm().await,
            None => Ok(()),
        }
    }

    /// Why the process had to stop, if it had to.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.identity()?.refusal()
    }

    fn identity(&self) -> Option<&GateIdentity> {
        self.real.as_ref()?.identity.as_ref()
    }

    /// How often [`Adapters::keep`] should be called.
    pub(crate) fn keep_every(&self) -> Duration {
        match &self.real {
            Some(real) => real.redis.keep_every(),
            None => Duration::from_mins(1),
        }
    }

    /// What the connections to the database went through.
    pub(crate) fn ledger_meters(&self) -> Option<Arc<LedgerMeters>> {
        self.real.as_ref().map(|real| real.mysql.meters())
    }

    /// Closes connections once they are given back.
    pub(crate) async fn close(&self) {
        if let Some(real) = &self.real {
            real.mysql.close().await;
        }
    }
}

/// Connects to the database, and brings its schema up to date.
pub(crate) async fn connect_ledger(
    stores: &RealStores,
    migrate: bool,
    clock: &Arc<dyn Clock>,
    stop: &Stop,
) -> Result<MySqlLedger, Failure> {
    let mysql = patiently(LEDGER, stores.patience, clock, stop, || {
        MySqlLedger::connect(stores.mysql.clone())
    })
    .await?;
    let server = mysql.describe().await;
    let server = server.map_err(|fault| Failure::neighbour(LEDGER, &fault))?;
    tracing::info!(
        ledger = server.version,
        comment = server.comment,
        "connected"
    );
    if migrate {
        patiently(LEDGER, stores.patience, clock, stop, || mysql.migrate()).await?;
    }
    Ok(mysql)
}

/// Tries until it succeeds, for as long as it may help and patience lasts.
async fn patiently<T, F>(
    setting: &'static str,
    patience: Duration,
    clock: &Arc<dyn Clock>,
    stop: &Stop,
    attempt: impl Fn() -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Fault>>,
{
    let deadline = clock.monotonic() + patience;
    let mut pause = RETRY_FIRST;
    let mut said = None;
    loop {
        let tried = tokio::select! {
            tried = attempt() => tried,
            () = stop.asked_for() => return Err(Failure::Stopped),
        };
        let fault = match tried {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        if !fault.is_retryable() || clock.monotonic() + pause > deadline {
            return Err(Failure::neighbour(setting, &fault));
        }
        let problem = fault.chain();
        if said.as_ref() != Some(&problem) {
            tracing::warn!(
                setting,
                problem,
                patience_s = patience.as_secs(),
                "not there; waiting"
            );
            said = Some(problem);
        }
        tokio::select! {
            () = clock.sleep(pause) => {}
            () = stop.asked_for() => return Err(Failure::Stopped),
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

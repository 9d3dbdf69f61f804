//! The settings: one vocabulary, by flag and by environment.
//!
//! What clap can check by itself it checks; what depends on other settings, or must not be shown
//! when it is wrong (URLs carry passwords), is checked here.

mod args;
mod checks;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use seckill_application::WriterSettings;
use seckill_domain::Partitions;
use seckill_http::{HttpSettings, NoticeKey, PublicKeyKind};
use seckill_mysql::LedgerConfig;
use seckill_redis::RedisConfig;

use crate::wiring::GateSettings;
use crate::workers::ReconcileSchedule;

pub(crate) use args::{
    AuthArgs, GateArgs, LogArgs, PaymentArgs, ServeArgs, StoreArgs, UrlArgs, WorkerArgs,
};

/// The secret of the in-memory profile. Known to everybody, and refused by the real profile.
pub(crate) const DEMO_SECRET: &str = "seckill-in-memory-demonstration-secret-known-to-everybody";
/// What signs the payment provider's notifications in the in-memory profile. As well known.
const DEMO_PAYMENTS_SECRET: &str = "seckill-in-memory-demonstration-payments-secret";

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSetting {
    /// Its name in the environment.
    pub setting: &'static str,
    /// What is wrong, and what is allowed. Never shows a value that may be secret.
    pub problem: String,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.problem)
    }
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Role {
    /// Everything.
    #[default]
    All,
    /// Answers requests; loads sales into the gate.
    Api,
    /// Moves orders into the ledger, expires them and keeps the gate complete; answers nothing but
    /// health and metrics.
    Worker,
}

impl Role {
    /// Whether it answers requests of buyers and administrators.
    pub fn serves(self) -> bool {
        self != Self::Worker
    }

    /// Whether it runs the loops that move orders on.
    pub fn works(self) -> bool {
        self != Self::Api
    }
}

/// Where gate and ledger are. Both in memory or both real: a mixture cannot be expressed.
#[derive(Debug, Clone)]
pub enum Stores {
    /// In this process; gone when it ends.
    Memory {
        /// Decisions of a partition that the ledger may be behind.
        backlog_max: u64,
    },
    /// In Redis and in MySQL or `MariaDB`.
    Real(Box<RealStores>),
}

/// The real stores.
#[derive(Debug, Clone)]
pub struct RealStores {
    /// The gate.
    pub redis: RedisConfig,
    /// The ledger.
    pub mysql: LedgerConfig,
    /// How long to wait at start for a neighbour that is down.
    pub patience: Duration,
}

impl Stores {
    /// Whether this is the in-memory profile.
    pub fn are_in_memory(&self) -> bool {
        matches!(self, Self::Memory { .. })
    }

    /// Decisions of a partition that the ledger may be behind; from then on nobody is admitted.
    pub fn backlog_max(&self) -> u64 {
        match self {
            Self::Memory { backlog_max } => *backlog_max,
            Self::Real(real) => real.redis.backlog_limit,
        }
    }
}

/// How tokens are verified.
#[derive(Debug, Clone)]
pub struct Auth {
    pub(crate) key: AuthKey,
    pub(crate) audience: Option<String>,
    pub(crate) issuer: Option<String>,
}

/// The key that verifies tokens.
#[derive(Debug, Clone)]
pub(crate) enum AuthKey {
    /// The in-memory profile's own.
    Demonstration,
    /// Shared with whoever issues tokens.
    Shared(Secret),
    /// The public key of whoever issues tokens.
    Public(PublicKeyKind, String),
}

/// Where log events go.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

/// How log events look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line each, for people.
    #[default]
    Text,
    /// One JSON object each, for machines.
    Json,
}

/// How the loops work.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// How order writers read and write.
    pub writer: WriterSettings,
    /// How long an order writer that has written less than a batch lets more come.
    pub writer_linger: Duration,
    /// How long a lease on a partition lasts without being renewed.
    pub lease_ttl: Duration,
    /// What finds orders whose payment window has ended.
    pub expiry: Expiry,
    /// When reconciliations are due.
    pub reconcile: ReconcileSchedule,
}

/// What finds orders whose payment window has ended. Either alone is enough; together they are
/// precise, and one covers for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Expiry {
    /// The delay queue and the sweep of the ledger.
    #[default]
    Both,
    /// The delay queue alone.
    Queue,
    /// The sweep of the ledger alone.
    Sweep,
}

/// What the use cases and loops of a process need to know, checked.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Which loops run.
    pub role: Role,
    /// Whether pending migrations are applied at start.
    pub migrate: bool,
    /// Where gate and ledger are.
    pub stores: Stores,
    /// How many partitions the deployment has.
    pub partitions: Partitions,
    /// How the gate is decorated.
    pub gate: GateSettings,
    /// How the loops work.
    pub workers: WorkerSettings,
}

/// Everything that `serve` needs to know, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Everything but the HTTP edge.
    pub engine: EngineConfig,
    /// Where it listens.
    pub listen: SocketAddr,
    /// How tokens are verified.
    pub auth: Auth,
    /// What verifies the payment provider's notifications; without it they are answered with 503.
    pub notices: Option<NoticeKey>,
    /// What the HTTP edge allows.
    pub http: HttpSettings,
    /// Whether a demonstration voucher is put on sale; only in memory.
    pub demonstration: bool,
    /// Where log events go.
    pub log: LogSettings,
}

//! From what was said to what is meant.

use std::num::NonZeroU32;
use std::time::Duration;

use seckill_application::WriterSettings;
use seckill_decorators::{BatchSettings, SoldOutSettings};
use seckill_domain::Partitions;
use seckill_http::{HttpSettings, NoticeKey, PublicKeyKind, Rates, TokenVerifier};
use seckill_mysql::LedgerConfig;
use seckill_redis::{OrderIdScheme, RedisConfig};
use tracing_subscriber::EnvFilter;

use crate::wiring::GateSettings;
use crate::workers::ReconcileSchedule;

use super::args::{Algorithm, HttpArgs, OrderIds};
use super::{
    Auth, AuthArgs, AuthKey, BadSetting, Config, DEMO_PAYMENTS_SECRET, DEMO_SECRET, EngineConfig,
    GateArgs, LogArgs, LogSettings, PaymentArgs, RealStores, Role, ServeArgs, StoreArgs, Stores,
    UrlArgs, WorkerArgs, WorkerSettings,
};

const GATE: &str = "SECKILL_GATE";
const LEDGER: &str = "SECKILL_LEDGER";
const AUTH_SECRET: &str = "SECKILL_AUTH_SECRET";
const AUTH_PUBLIC_KEY: &str = "SECKILL_AUTH_PUBLIC_KEY";
const NAMESPACE_CHARS_MAX: usize = 64;

fn bad(setting: &'static str, problem: impl Into<String>) -> BadSetting {
    BadSetting {
        setting,
        problem: problem.into(),
    }
}

impl EngineConfig {
    pub(crate) fn check(
        stores: &StoreArgs,
        gate: &GateArgs,
        workers: &WorkerArgs,
    ) -> Result<Self, BadSetting> {
        Ok(Self {
            role: Role::All,
            migrate: true,
            stores: Stores::check(stores)?,
            partitions: stores.partitions(),
            gate: gate.settings(),
            workers: workers.settings(),
        })
    }
}

impl Config {
    pub(crate) fn check(args: &ServeArgs) -> Result<Self, BadSetting> {
        let engine = EngineConfig {
            role: args.role,
            migrate: !args.no_migrate,
            ..EngineConfig::check(&args.stores, &args.gate, &args.workers)?
        };
        let in_memory = engine.stores.are_in_memory();
        if in_memory && args.role != Role::All {
            let must = "must be all in the in-memory profile: no other process can see its stores";
            return Err(bad("SECKILL_ROLE", must));
        }
        let auth = Auth::check(&args.auth, in_memory)?;
        auth.verifier()?;
        Ok(Self {
            listen: args.listen,
            demonstration: in_memory && !args.no_demo,
            engine,
            auth,
            notices: args.payments.check(in_memory)?,
            http: args.http.settings(&args.payments),
            log: args.log.check()?,
        })
    }
}

impl StoreArgs {
    pub(crate) fn partitions(&self) -> Partitions {
        Partitions::new(self.partition_count())
    }
}

/// Whether a URL asks for memory.
fn is_memory(
    url: &str,
    setting: &'static str,
    scheme: &str,
    example: &str,
) -> Result<bool, BadSetting> {
    if url == "memory://" || url == "memory:" {
        return Ok(true);
    }
    let host = url
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_prefix("://"));
    match host {
        Some(host) if !host.is_empty() => Ok(false),
        _ => Err(bad(setting, format!("must be memory:// or {example}"))),
    }
}

impl UrlArgs {
    /// Whether this is the in-memory profile. A mixture is refused.
    pub(crate) fn are_in_memory(&self) -> Result<bool, BadSetting> {
        let example = "redis://[[user:]password@]host[:port][/database]";
        let gate = is_memory(self.gate.reveal(), GATE, "redis", example)?;
        let example = "mysql://user:password@host[:port]/database";
        let ledger = is_memory(self.ledger.reveal(), LEDGER, "mysql", example)?;
        let both = "gate and ledger are both in memory or both real, never a mixture";
        match (gate, ledger) {
            (true, false) => {
                let must = format!("must be redis://… because {LEDGER} is mysql://…: {both}");
                Err(bad(GATE, must))
            }
            (false, true) => {
                let must = format!("must be mysql://… because {GATE} is redis://…: {both}");
                Err(bad(LEDGER, must))
            }
            (in_memory, _) => Ok(in_memory),
        }
    }
}

impl Stores {
    pub(crate) fn check(args: &StoreArgs) -> Result<Self, BadSetting> {
        if args.urls.are_in_memory()? {
            let backlog_max = args.backlog_max;
            return Ok(Self::Memory { backlog_max });
        }
        Ok(Self::Real(Box::new(RealStores::check(args)?)))
    }
}

impl RealStores {
    fn check(args: &StoreArgs) -> Result<Self, BadSetting> {
        let partitions = args.partitions();
        let namespace = args.namespace.as_str();
        let visible = |byte: u8| byte.is_ascii_graphic() && byte != b'{' && byte != b'}';
        if !(1..=NAMESPACE_CHARS_MAX).contains(&namespace.len()) || !namespace.bytes().all(visible)
        {
            let allowed = "must be 1 to 64 visible ASCII characters without braces";
            return Err(bad("SECKILL_NAMESPACE", allowed));
        }
        let redis = RedisConfig {
            namespace: namespace.to_owned(),
            backlog_limit: args.backlog_max,
            response_timeout: Duration::from_millis(args.redis_timeout_ms),
            order_ids: match args.order_ids {
                OrderIds::Snowflake => OrderIdScheme::Snowflake,
                OrderIds::Daily => OrderIdScheme::DailyCounter,
            },
            ..RedisConfig::new(args.urls.gate.reveal(), partitions)
        };
        redis.check().map_err(|fault| bad(GATE, fault.chain()))?;
        Ok(Self {
            redis,
            mysql: LedgerConfig {
                max_connections: args.ledger_connections,
                writer_connections: u32::from(partitions.count()).min(16),
                statement_timeout: Duration::from_millis(args.ledger_timeout_ms),
                ..LedgerConfig::new(args.urls.ledger.reveal())
            },
            patience: Duration::from_secs(args.start_patience_s),
        })
    }
}

impl Auth {
    pub(crate) fn check(args: &AuthArgs, in_memory: bool) -> Result<Self, BadSetting> {
        let key = match (&args.auth_secret, &args.auth_public_key) {
            (Some(_), Some(_)) => {
                let either = format!("give either a public key or {AUTH_SECRET}, not both");
                return Err(bad(AUTH_PUBLIC_KEY, either));
            }
            (Some(secret), None) if secret.reveal() == DEMO_SECRET && !in_memory => {
                let known = "the secret of the in-memory profile is known to everybody; \
                             take another one of at least 32 bytes";
                return Err(bad(AUTH_SECRET, known));
            }
            (Some(secret), None) => AuthKey::Shared(secret.clone()),
            (None, Some(key)) => AuthKey::Public(args.auth_algorithm.kind(), pem(key)?),
            (None, None) if in_memory => AuthKey::Demonstration,
            (None, None) => {
                let required = format!(
                    "required when gate and ledger are real: the secret of HS256 tokens, at least \
                     32 bytes (or {AUTH_PUBLIC_KEY})"
                );
                return Err(bad(AUTH_SECRET, required));
            }
        };
        Ok(Self {
            key,
            audience: args.auth_audience.clone(),
            issuer: args.auth_issuer.clone(),
        })
    }

    /// What verifies tokens.
    pub(crate) fn verifier(&self) -> Result<TokenVerifier, BadSetting> {
        let verifier = match &self.key {
            AuthKey::Demonstration => TokenVerifier::hs256(DEMO_SECRET.as_bytes())
                .map_err(|key| bad(AUTH_SECRET, key.to_string())),
            AuthKey::Shared(secret) => TokenVerifier::hs256(secret.reveal().as_bytes())
                .map_err(|key| bad(AUTH_SECRET, key.to_string())),
            AuthKey::Public(kind, pem) => TokenVerifier::public_key(*kind, pem)
                .map_err(|key| bad(AUTH_PUBLIC_KEY, key.to_string())),
        }?;
        let verifier = match &self.audience {
            Some(audience) => verifier.for_audience(audience),
            None => verifier,
        };
        Ok(match &self.issuer {
            Some(issuer) => verifier.from_issuer(issuer),
            None => verifier,
        })
    }

    /// The secret that signs tokens, if this side has one.
    pub(crate) fn secret(&self) -> Option<&str> {
        match &self.key {
            AuthKey::Demonstration => Some(DEMO_SECRET),
            AuthKey::Shared(secret) => Some(secret.reveal()),
            AuthKey::Public(..) => None,
        }
    }

    pub(crate) fn is_demonstration(&self) -> bool {
        matches!(self.key, AuthKey::Demonstration)
    }
}

impl Algorithm {
    fn kind(self) -> PublicKeyKind {
        match self {
            Self::Rs256 => PublicKeyKind::Rs256,
            Self::Es256 => PublicKeyKind::Es256,
            Self::EdDsa => PublicKeyKind::EdDsa,
        }
    }
}

/// A public key that is written down, or in a file.
fn pem(key: &str) -> Result<String, BadSetting> {
    if key.trim_start().starts_with("-----BEGIN") {
        return Ok(key.to_owned());
    }
    std::fs::read_to_string(key).map_err(|error| {
        let problem =
            format!("must be a public key as PEM, or a file that has it ({key}: {error})");
        bad(AUTH_PUBLIC_KEY, problem)
    })
}

/// Requests that this many cores work on at once without letting them wait for long: with more, an
/// overload makes everybody late before anybody is turned away.
fn requests_by_cores(cores: usize) -> usize {
    cores.saturating_mul(512).max(1_024)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl HttpArgs {
    fn settings(&self, payments: &PaymentArgs) -> HttpSettings {
        HttpSettings {
            body_bytes_max: self.body_bytes_max as usize,
            request_deadline: Duration::from_millis(self.request_deadline_ms),
            header_timeout: Duration::from_millis(self.header_timeout_ms),
            connections_max: self.connections_max as usize,
            in_flight_max: match self.requests_max {
                0 => requests_by_cores(cores()),
                count => count as usize,
            },
            notice_tolerance: Duration::from_secs(payments.payments_tolerance_s),
            streams_max: self.streams_max as usize,
            streams_per_buyer_max: self.streams_per_buyer_max as usize,
            stream_heartbeat: Duration::from_secs(self.stream_heartbeat_s),
            stream_lasts: Duration::from_secs(self.stream_lasts_s),
            stop_patience: Duration::from_secs(self.stop_patience_s),
            rates: Rates {
                purchases_per_s: self.rate_purchases,
                purchases_burst: self.rate_purchases_burst,
                others_per_s: self.rate_others,
                per_address_per_s: NonZeroU32::new(self.rate_address),
            },
            ..HttpSettings::default()
        }
    }
}

impl GateArgs {
    pub(crate) fn settings(&self) -> GateSettings {
        GateSettings {
            batches: BatchSettings {
                batch_max: self.batch_max as usize,
                calls_max: self.batch_calls as usize,
                queue_max: self.batch_queue_max as usize,
                patience: Duration::from_millis(self.batch_patience_ms),
            },
            sold_out: SoldOutSettings {
                recheck: Duration::from_millis(self.sold_out_recheck_ms),
                ..SoldOutSettings::default()
            },
        }
    }
}

impl WorkerArgs {
    pub(crate) fn settings(&self) -> WorkerSettings {
        WorkerSettings {
            writer: WriterSettings {
                read_max: self.writer_read_max as usize,
                batch_min: self.writer_batch as usize,
                block: Duration::from_millis(self.writer_block_ms),
                keep: Duration::from_secs(self.stream_keep_s),
            },
            writer_linger: Duration::from_millis(self.writer_linger_ms),
            lease_ttl: Duration::from_millis(self.lease_ttl_ms),
            expiry: self.expiry,
            reconcile: ReconcileSchedule {
                every: Duration::from_secs(self.reconcile_every_s),
                full_hour: self.reconcile_full_hour,
            },
        }
    }
}

impl PaymentArgs {
    fn check(&self, in_memory: bool) -> Result<Option<NoticeKey>, BadSetting> {
        let secret = match &self.payments_secret {
            Some(secret) => secret.reveal(),
            None if in_memory => DEMO_PAYMENTS_SECRET,
            None => return Ok(None),
        };
        let key = NoticeKey::new(secret.as_bytes());
        key.map(Some)
            .map_err(|short| bad("SECKILL_PAYMENTS_SECRET", short.to_string()))
    }
}

impl LogArgs {
    pub(crate) fn check(&self) -> Result<LogSettings, BadSetting> {
        self.check_with_default("info")
    }

    pub(crate) fn check_with_default(&self, level: &str) -> Result<LogSettings, BadSetting> {
        let filter = self
            .log
            .clone()
            .or_else(|| std::env::var("RUST_LOG").ok())
            .unwrap_or_else(|| level.to_owned());
        if EnvFilter::try_new(&filter).is_err() {
            let allowed = "must be a level (error, warn, info, debug, trace) or directives such as \
                           seckill=debug,info";
            return Err(bad("SECKILL_LOG", allowed));
        }
        Ok(LogSettings {
            filter,
            format: self.log_format,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::requests_by_cores;

    #[test]
    fn more_cores_work_on_more_requests() {
        assert_eq!(
            [1, 2, 3, 16].map(requests_by_cores),
            [1_024, 1_024, 1_536, 8_192]
        );
    }
}

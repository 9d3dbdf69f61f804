//! The settings as the command line and the environment have them.

#![expect(
    clippy::doc_markdown,
    clippy::struct_field_names,
    reason = "the comments are help texts for a terminal, and the fields the names of the flags"
)]

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};

use clap::value_parser;

use super::{Expiry, LogFormat, Role, Secret};

/// Settings of `serve`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServeArgs {
    /// What this process does
    #[arg(long, env = "SECKILL_ROLE", value_enum, default_value_t)]
    pub(crate) role: Role,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, env = "SECKILL_LISTEN", value_name = "IP:PORT", default_value = "127.0.0.1:8080",
          value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Leave the database's schema as it is; otherwise pending migrations are applied at start
    #[arg(long, env = "SECKILL_NO_MIGRATE")]
    pub(crate) no_migrate: bool,
    /// Put no demonstration voucher on sale in the in-memory profile
    #[arg(long, env = "SECKILL_NO_DEMO")]
    pub(crate) no_demo: bool,
    #[command(flatten)]
    pub(crate) stores: StoreArgs,
    #[command(flatten)]
    pub(crate) auth: AuthArgs,
    #[command(flatten)]
    pub(crate) payments: PaymentArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) workers: WorkerArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Which stores there are.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct UrlArgs {
    /// The gate: memory://, or redis://[[user:]password@]host[:port][/database]
    #[arg(
        long,
        env = "SECKILL_GATE",
        value_name = "URL",
        default_value = "memory://",
        hide_env_values = true
    )]
    pub(crate) gate: Secret,
    /// The ledger: memory://, or mysql://user:password@host[:port]/database
    #[arg(
        long,
        env = "SECKILL_LEDGER",
        value_name = "URL",
        default_value = "memory://",
        hide_env_values = true
    )]
    pub(crate) ledger: Secret,
}

/// Where gate and ledger are, and how they are used.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) urls: UrlArgs,
    /// Slices of the vouchers, each with its own stream; fixed for the life of a deployment (1 to
    /// 1024)
    #[arg(long, env = "SECKILL_PARTITIONS", value_name = "COUNT", default_value = "4",
          value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) partitions: u16,
    /// What all keys in Redis begin with; 1 to 64 visible ASCII characters without braces
    #[arg(
        long,
        env = "SECKILL_NAMESPACE",
        value_name = "PREFIX",
        default_value = "seckill"
    )]
    pub(crate) namespace: String,
    /// How order ids are made
    #[arg(long, env = "SECKILL_ORDER_IDS", value_enum, default_value_t)]
    pub(crate) order_ids: OrderIds,
    /// Decisions of a partition that the ledger may be behind; beyond it purchases are answered 503
    /// (1 to 10000000)
    #[arg(long, env = "SECKILL_BACKLOG_MAX", value_name = "COUNT", default_value = "200000",
          value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub(crate) backlog_max: u64,
    /// How long to wait for an answer of Redis, in milliseconds (50 to 60000)
    #[arg(long, env = "SECKILL_REDIS_TIMEOUT_MS", value_name = "MS", default_value = "2000",
          value_parser = value_parser!(u64).range(50..=60_000))]
    pub(crate) redis_timeout_ms: u64,
    /// Most connections to the database, beside those of the order writers (1 to 1000)
    #[arg(long, env = "SECKILL_LEDGER_CONNECTIONS", value_name = "COUNT", default_value = "16",
          value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) ledger_connections: u32,
    /// How long to wait for a statement of the database, in milliseconds (100 to 60000)
    #[arg(long, env = "SECKILL_LEDGER_TIMEOUT_MS", value_name = "MS", default_value = "5000",
          value_parser = value_parser!(u64).range(100..=60_000))]
    pub(crate) ledger_timeout_ms: u64,
    /// How long to wait at start for a neighbour that is down, in seconds (0 to 3600)
    #[arg(long, env = "SECKILL_START_PATIENCE_S", value_name = "S", default_value = "30",
          value_parser = value_parser!(u64).range(0..=3_600))]
    pub(crate) start_patience_s: u64,
}

/// How order ids are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum OrderIds {
    /// Milliseconds, a worker number leased in Redis, and a counter
    #[default]
    Snowflake,
    /// Seconds since 2022-01-01, and a counter in Redis that starts over every UTC day
    Daily,
}

/// How tokens are verified and issued.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct AuthArgs {
    /// The secret of HS256 tokens, at least 32 bytes; built in for the in-memory profile, required
    /// for the real one. Tokens hold 5 seconds longer than they say, and from 5 seconds earlier,
    /// for clocks that differ
    #[arg(
        long,
        env = "SECKILL_AUTH_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub(crate) auth_secret: Option<Secret>,
    /// In place of a secret: the issuer's public key as PEM, or a file that has it
    #[arg(
        long,
        env = "SECKILL_AUTH_PUBLIC_KEY",
        value_name = "PEM|FILE",
        hide_env_values = true
    )]
    pub(crate) auth_public_key: Option<String>,
    /// The algorithm of the public key
    #[arg(long, env = "SECKILL_AUTH_ALGORITHM", value_enum, default_value_t)]
    pub(crate) auth_algorithm: Algorithm,
    /// Take only tokens for this audience
    #[arg(long, env = "SECKILL_AUTH_AUDIENCE", value_name = "NAME")]
    pub(crate) auth_audience: Option<String>,
    /// Take only tokens of this issuer
    #[arg(long, env = "SECKILL_AUTH_ISSUER", value_name = "NAME")]
    pub(crate) auth_issuer: Option<String>,
}

/// How the payment provider is heard.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Payments")]
pub(crate) struct PaymentArgs {
    /// The secret that signs the payment provider's notifications, at least 32 bytes; built in for
    /// the in-memory profile; without one they are answered 503
    #[arg(
        long,
        env = "SECKILL_PAYMENTS_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub(crate) payments_secret: Option<Secret>,
    /// How far the timestamp of a notification may be from the time here, in seconds; beyond it it
    /// is answered 401 (1 to 86400)
    #[arg(long, env = "SECKILL_PAYMENTS_TOLERANCE_S", value_name = "S", default_value = "300",
          value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) payments_tolerance_s: u64,
}

/// The algorithm of a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Algorithm {
    /// RSA with SHA-256
    #[default]
    Rs256,
    /// ECDSA on P-256 with SHA-256
    Es256,
    /// Ed25519
    EdDsa,
}

/// What the HTTP edge allows.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// Longest request body in bytes; beyond it 413 (256 to 1048576)
    #[arg(long, env = "SECKILL_BODY_BYTES_MAX", value_name = "BYTES", default_value = "4096",
          value_parser = value_parser!(u32).range(256..=1_048_576))]
    pub(crate) body_bytes_max: u32,
    /// How long a request may take, in milliseconds; beyond it 503 (100 to 60000)
    #[arg(long, env = "SECKILL_REQUEST_DEADLINE_MS", value_name = "MS", default_value = "5000",
          value_parser = value_parser!(u64).range(100..=60_000))]
    pub(crate) request_deadline_ms: u64,
    /// How long the head of a request may take once it has begun, in milliseconds (100 to
    /// 600000)
    #[arg(long, env = "SECKILL_HEADER_TIMEOUT_MS", value_name = "MS", default_value = "10000",
          value_parser = value_parser!(u64).range(100..=600_000))]
    pub(crate) header_timeout_ms: u64,
    /// Most connections; further ones wait (1 to 1000000)
    #[arg(long, env = "SECKILL_CONNECTIONS_MAX", value_name = "COUNT", default_value = "10000",
          value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections_max: u32,
    /// Most requests worked on at once; beyond it 503; 0 stands for 512 per core, 1024 at least
    /// (0 to 1000000)
    #[arg(long, env = "SECKILL_REQUESTS_MAX", value_name = "COUNT", default_value = "0",
          value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(crate) requests_max: u32,
    /// Purchases of one buyer per second; beyond it 429
    #[arg(
        long,
        env = "SECKILL_RATE_PURCHASES",
        value_name = "PER_S",
        default_value = "50"
    )]
    pub(crate) rate_purchases: NonZeroU32,
    /// Purchases of one buyer at once
    #[arg(
        long,
        env = "SECKILL_RATE_PURCHASES_BURST",
        value_name = "COUNT",
        default_value = "100"
    )]
    pub(crate) rate_purchases_burst: NonZeroU32,
    /// Other calls of one buyer per second
    #[arg(
        long,
        env = "SECKILL_RATE_OTHERS",
        value_name = "PER_S",
        default_value = "200"
    )]
    pub(crate) rate_others: NonZeroU32,
    /// Calls of one address per second; 0 for no limit
    #[arg(
        long,
        env = "SECKILL_RATE_ADDRESS",
        value_name = "PER_S",
        default_value = "0"
    )]
    pub(crate) rate_address: u32,
    /// Most event streams, never more than half of the connections; beyond it 503 (0 to 1000000)
    #[arg(long, env = "SECKILL_STREAMS_MAX", value_name = "COUNT", default_value = "4096",
          value_parser = value_parser!(u32).range(0..=1_000_000))]
    pub(crate) streams_max: u32,
    /// Most event streams of one buyer; beyond it 429 (1 to 1000)
    #[arg(long, env = "SECKILL_STREAMS_PER_BUYER_MAX", value_name = "COUNT", default_value = "8",
          value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) streams_per_buyer_max: u32,
    /// How often an event stream without news says that it is still there, in seconds (1 to 3600)
    #[arg(long, env = "SECKILL_STREAM_HEARTBEAT_S", value_name = "S", default_value = "10",
          value_parser = value_parser!(u64).range(1..=3_600))]
    pub(crate) stream_heartbeat_s: u64,
    /// How long an event stream lasts until the client has to come again, in seconds (1 to 86400)
    #[arg(long, env = "SECKILL_STREAM_LASTS_S", value_name = "S", default_value = "600",
          value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) stream_lasts_s: u64,
    /// How long a stop waits for what was begun, in seconds (0 to 600)
    #[arg(long, env = "SECKILL_STOP_PATIENCE_S", value_name = "S", default_value = "10",
          value_parser = value_parser!(u64).range(0..=600))]
    pub(crate) stop_patience_s: u64,
}

/// How attempts reach the gate.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Gate")]
pub(crate) struct GateArgs {
    /// Most attempts on one voucher in one call of the gate (1 to 64)
    #[arg(long, env = "SECKILL_BATCH_MAX", value_name = "COUNT", default_value = "32",
          value_parser = value_parser!(u32).range(1..=64))]
    pub(crate) batch_max: u32,
    /// Most calls of the gate under way for one voucher (1 to 8)
    #[arg(long, env = "SECKILL_BATCH_CALLS", value_name = "COUNT", default_value = "1",
          value_parser = value_parser!(u32).range(1..=8))]
    pub(crate) batch_calls: u32,
    /// Most attempts that wait for one voucher; beyond it 503 (1 to 1000000)
    #[arg(long, env = "SECKILL_BATCH_QUEUE_MAX", value_name = "COUNT", default_value = "8192",
          value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) batch_queue_max: u32,
    /// How long an attempt may wait to be sent, in milliseconds; beyond it 503 (10 to 60000)
    #[arg(long, env = "SECKILL_BATCH_PATIENCE_MS", value_name = "MS", default_value = "1000",
          value_parser = value_parser!(u64).range(10..=60_000))]
    pub(crate) batch_patience_ms: u64,
    /// How often the gate is asked whether what was sold out still is, in milliseconds; in between,
    /// buyers are turned away without asking; 0 asks for every buyer (0 to 1000)
    #[arg(long, env = "SECKILL_SOLD_OUT_RECHECK_MS", value_name = "MS", default_value = "50",
          value_parser = value_parser!(u64).range(0..=1_000))]
    pub(crate) sold_out_recheck_ms: u64,
}

/// How the loops work.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Workers")]
pub(crate) struct WorkerArgs {
    /// Stream entries of one read (1 to 512)
    #[arg(long, env = "SECKILL_WRITER_READ_MAX", value_name = "COUNT", default_value = "200",
          value_parser = value_parser!(u32).range(1..=512))]
    pub(crate) writer_read_max: u32,
    /// Decisions after which a batch for the ledger is full (1 to 896)
    #[arg(long, env = "SECKILL_WRITER_BATCH", value_name = "COUNT", default_value = "500",
          value_parser = value_parser!(u32).range(1..=896))]
    pub(crate) writer_batch: u32,
    /// How long a read of the stream waits for something new, in milliseconds (10 to 60000)
    #[arg(long, env = "SECKILL_WRITER_BLOCK_MS", value_name = "MS", default_value = "2000",
          value_parser = value_parser!(u64).range(10..=60_000))]
    pub(crate) writer_block_ms: u64,
    /// How long a writer lets more come after two transactions that were not full, in milliseconds;
    /// the first order after a rest is written at once (0 to 1000)
    #[arg(long, env = "SECKILL_WRITER_LINGER_MS", value_name = "MS", default_value = "30",
          value_parser = value_parser!(u64).range(0..=1_000))]
    pub(crate) writer_linger_ms: u64,
    /// How long a lease on a partition lasts without being renewed, in milliseconds (300 to 600000)
    #[arg(long, env = "SECKILL_LEASE_TTL_MS", value_name = "MS", default_value = "10000",
          value_parser = value_parser!(u64).range(300..=600_000))]
    pub(crate) lease_ttl_ms: u64,
    /// How long applied entries stay in the stream, in seconds (1 to 86400)
    #[arg(long, env = "SECKILL_STREAM_KEEP_S", value_name = "S", default_value = "60",
          value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) stream_keep_s: u64,
    /// What finds orders whose payment window has ended
    #[arg(long, env = "SECKILL_EXPIRY", value_enum, default_value_t)]
    pub(crate) expiry: Expiry,
    /// How long after the last reconciliation the next begins, in seconds (1 to 86400)
    #[arg(long, env = "SECKILL_RECONCILE_EVERY_S", value_name = "S", default_value = "60",
          value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) reconcile_every_s: u64,
    /// The hour of the day, in UTC, of the full reconciliation (0 to 23)
    #[arg(long, env = "SECKILL_RECONCILE_FULL_HOUR", value_name = "HOUR", default_value = "3",
          value_parser = value_parser!(u8).range(0..=23))]
    pub(crate) reconcile_full_hour: u8,
}

/// Where log events go.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArgs {
    /// Which log events are written, such as info or seckill=debug,info; the variable RUST_LOG
    /// counts if this is not set [default: info]
    #[arg(long, env = "SECKILL_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// How log events look
    #[arg(long, env = "SECKILL_LOG_FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "an IP address and a port are needed, such as 127.0.0.1:8080".to_owned())
}

impl StoreArgs {
    /// For what needs the ledger alone: whatever the gate, as long as it goes with the ledger.
    pub(crate) fn with_any_gate(mut self) -> Self {
        let memory = self.urls.ledger.reveal().starts_with("memory:");
        let gate = if memory {
            "memory://"
        } else {
            "redis://127.0.0.1"
        };
        self.urls.gate = Secret::from(gate);
        self
    }

    pub(super) fn partition_count(&self) -> NonZeroU16 {
        NonZeroU16::new(self.partitions).unwrap_or(NonZeroU16::MIN)
    }
}

//! Where Redis is, and how it is used.

use std::fmt;
use std::time::Duration;

use seckill_application::Fault;
use seckill_domain::Partitions;

use crate::connection::read_url;
use crate::script_edits::ScriptEdit;

const CONFIG: &str = "redis.config";
const NAMESPACE_BYTES_MAX: usize = 64;

/// How order ids are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderIdScheme {
    /// Milliseconds, a worker number leased in Redis, and a counter.
    #[default]
    Snowflake,
    /// Seconds since 2022-01-01T00:00:00Z, and a counter in Redis that starts over every UTC day,
    /// taken in blocks of 1,000.
    DailyCounter,
}

/// Settings of the hot path in Redis.
#[derive(Clone)]
pub struct RedisConfig {
    /// `redis://[[user]:password@]host[:port][/database]`.
    pub url: String,
    /// What all keys begin with. Two deployments on one Redis need different ones.
    pub namespace: String,
    /// How many partitions the deployment has.
    pub partitions: Partitions,
    /// Decisions of a partition that may stand in its stream and not yet be in the ledger; from
    /// this many on nobody is admitted.
    pub backlog_limit: u64,
    /// How long to wait for an answer. Until then a call has not failed; after that its effect is
    /// unknown.
    pub response_timeout: Duration,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How order ids are made.
    pub order_ids: OrderIdScheme,
    /// How long a worker number is good for without being renewed; the same for all processes. On a
    /// Redis that is new or was restarted, the first Snowflake id of a process that holds no number
    /// takes this long.
    pub id_lease: Duration,
    /// Changes of the scripts' texts, for negative controls; a service has none.
    pub script_edits: Vec<ScriptEdit>,
}

impl RedisConfig {
    /// The defaults: namespace `seckill`, backlog limit 200,000, 2 s for an answer, 1 s for a
    /// connection, Snowflake ids with a lease of 3 s.
    pub fn new(url: impl Into<String>, partitions: Partitions) -> Self {
        Self {
            url: url.into(),
            namespace: "seckill".to_owned(),
            partitions,
            backlog_limit: 200_000,
            response_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(1),
            order_ids: OrderIdScheme::default(),
            id_lease: Duration::from_secs(3),
            script_edits: Vec::new(),
        }
    }

    /// Refuses settings that cannot work, a URL that is none among them, before anything is
    /// connected to or waited for.
    pub fn check(&self) -> Result<(), Fault> {
        read_url(&self.url)?;
        let fits = (1..=NAMESPACE_BYTES_MAX).contains(&self.namespace.len())
            && (self.namespace.bytes()).all(|b| b.is_ascii_graphic() && b != b'{' && b != b'}');
        if !fits {
            let allowed = "the namespace must be 1 to 64 visible ASCII characters without braces";
            return Err(Fault::broken(CONFIG, allowed));
        }
        if self.id_lease < Duration::from_millis(10) {
            return Err(Fault::broken(
                CONFIG,
                "the lease of ids must be at least 10 ms",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for RedisConfig {
    /// Leaves the URL out: it carries the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("namespace", &self.namespace)
            .field("partitions", &self.partitions)
            .field("backlog_limit", &self.backlog_limit)
            .field("response_timeout", &self.response_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("order_ids", &self.order_ids)
            .field("id_lease", &self.id_lease)
            .field("script_edits", &self.script_edits)
            .finish_non_exhaustive()
    }
}

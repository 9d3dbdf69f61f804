//! What kind of Redis it is.

use std::collections::HashMap;
use std::fmt;

use redis::{FromRedisValue, Value};
use seckill_application::Fault;

use crate::reply::malformed;
use crate::store::{Lane, Store};

const SERVER: &str = "redis.server";
/// The first version with everything the scripts use.
const MAJOR_MIN: u32 = 7;

/// When Redis makes its append-only file safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before it answers: no acknowledged write is lost.
    Always,
    /// Every second: up to about two seconds of acknowledged writes may be lost.
    EverySecond,
    /// When the system likes.
    No,
    /// It does not say.
    Unknown,
}

/// A Redis, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its version; Valkey reports the Redis version it is compatible with.
    pub version: String,
    /// How safe its append-only file is; `None` if it writes none.
    pub append_only: Option<AppendFsync>,
}

impl fmt::Display for Server {
    /// For a log: `redis 7.0.15, appendonly yes, appendfsync always`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fsync = match self.append_only {
            None => return write!(f, "redis {}, appendonly no", self.version),
            Some(AppendFsync::Always) => "always",
            Some(AppendFsync::EverySecond) => "everysec",
            Some(AppendFsync::No) => "no",
            Some(AppendFsync::Unknown) => "unknown",
        };
        write!(
            f,
            "redis {}, appendonly yes, appendfsync {fsync}",
            self.version
        )
    }
}

/// Asks Redis what it is, and refuses one that cannot be the gate: one that is too old, or that
/// throws keys away when memory is short.
pub(crate) async fn examine(store: &Store) -> Result<Server, Fault> {
    let facts = info(store).await?;
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let version = fact("redis_version").unwrap_or_default();
    let major = version.split('.').next().and_then(|it| it.parse().ok());
    if major.is_none_or(|major: u32| major < MAJOR_MIN) {
        let refusal = format!("Redis {version} is too old: {MAJOR_MIN}.0 or later is needed");
        return Err(Fault::broken(SERVER, refusal));
    }
    match fact("maxmemory_policy") {
        None | Some("noeviction") => {}
        Some(policy) => {
            let refusal = format!(
                "maxmemory-policy is {policy}: it would throw sales away; set it to noeviction"
            );
            return Err(Fault::broken(SERVER, refusal));
        }
    }
    let append_only = match fact("aof_enabled") {
        Some("1") => Some(append_fsync(store).await?),
        _ => None,
    };
    Ok(Server {
        version: version.to_owned(),
        append_only,
    })
}

async fn info(store: &Store) -> Result<HashMap<String, String>, Fault> {
    let info = redis::cmd("INFO");
    let text = match store.ask(SERVER, Lane::Gate, &info).await? {
        Value::VerbatimString { text, .. } => text,
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => return Err(malformed(SERVER, format!("{other:?}"))),
    };
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    Ok(pairs
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect())
}

async fn append_fsync(store: &Store) -> Result<AppendFsync, Fault> {
    let mut config = redis::cmd("CONFIG");
    config.arg("GET").arg("appendfsync");
    // Hosted servers hide CONFIG; that is no reason to refuse them.
    let Ok(answer) = store.try_ask(SERVER, Lane::Gate, &config).await? else {
        return Ok(AppendFsync::Unknown);
    };
    let settings = HashMap::<String, String>::from_redis_value(answer).unwrap_or_default();
    Ok(match settings.get("appendfsync").map(String::as_str) {
        Some("always") => AppendFsync::Always,
        Some("everysec") => AppendFsync::EverySecond,
        Some("no") => AppendFsync::No,
        _ => AppendFsync::Unknown,
    })
}

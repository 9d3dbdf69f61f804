//! A look behind the gate's back: its keys in Redis, and harm done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use seckill_domain::VoucherId;

/// As long as a busy machine may take for one look.
const PATIENCE: Duration = Duration::from_secs(20);

/// The keys of one deployment.
#[derive(Debug, Clone)]
pub struct Gate {
    connection: MultiplexedConnection,
    namespace: String,
}

/// A consumer group of a stream.
#[derive(Debug, Clone)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// How many entries were delivered to somebody and not acknowledged.
    pub pending: u64,
    /// The last entry that was delivered.
    pub delivered: String,
}

impl Gate {
    /// Looks into a namespace of a Redis.
    pub async fn connect(url: &str, namespace: &str) -> Self {
        let patient = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connection = redis::Client::open(url)
            .expect("an address of Redis")
            .get_multiplexed_async_connection_with_config(&patient)
            .await
            .expect("Redis answers");
        Self {
            connection,
            namespace: namespace.to_owned(),
        }
    }

    /// The key of this name, outside of partitions.
    pub fn name(&self, piece: &str) -> String {
        format!("{}:{piece}", self.namespace)
    }

    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// Every key of the deployment with its type.
    pub async fn keys(&self) -> BTreeMap<String, String> {
        let mut names: Vec<String> = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(format!("*{}*", self.namespace));
            let (next, page): (u64, Vec<String>) = self.run(scan.arg("COUNT").arg(1_000)).await;
            names.extend(page);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let mut keys = BTreeMap::new();
        for name in names {
            let kind: String = self.run(redis::cmd("TYPE").arg(&name)).await;
            keys.insert(name, kind);
        }
        keys
    }

    /// The keys of this type.
    pub async fn keys_of_type(&self, kind: &str) -> Vec<String> {
        let keys = self.keys().await;
        keys.into_iter()
            .filter(|(_, found)| found == kind)
            .map(|(name, _)| name)
            .collect()
    }

    /// The consumer groups of a stream.
    pub async fn groups(&self, stream: &str) -> Vec<Group> {
        let mut info = redis::cmd("XINFO");
        let groups: Vec<BTreeMap<String, redis::Value>> =
            self.run(info.arg("GROUPS").arg(stream)).await;
        let read = |group: &BTreeMap<String, redis::Value>| Group {
            name: redis::from_redis_value_ref(&group["name"]).expect("a name"),
            pending: redis::from_redis_value_ref(&group["pending"]).expect("a number"),
            delivered: redis::from_redis_value_ref(&group["last-delivered-id"]).expect("an id"),
        };
        groups.iter().map(read).collect()
    }

    /// What was decided and is not known to be in the ledger, by the gate's own books.
    pub async fn in_flight(&self) -> i64 {
        let mut behind = 0;
        let keys = self.keys().await.into_keys();
        for meta in keys.filter(|name| name.ends_with(":meta")) {
            let mut counts = redis::cmd("HMGET");
            counts.arg(meta).arg(&["seq", "applied"]);
            let (seq, applied): (Option<i64>, Option<i64>) = self.run(&counts).await;
            behind += seq.unwrap_or(0) - applied.unwrap_or(0);
        }
        behind
    }

    /// Entries of all streams that were delivered to some consumer and not acknowledged.
    pub async fn unacknowledged(&self) -> u64 {
        let mut pending = 0;
        for stream in self.keys_of_type("stream").await {
            let groups = self.groups(&stream).await;
            pending += groups.iter().map(|group| group.pending).sum::<u64>();
        }
        pending
    }

    /// The names under which a consumer group of a stream is read.
    pub async fn readers(&self, stream: &str, group: &str) -> BTreeSet<String> {
        let mut info = redis::cmd("XINFO");
        let consumers: Vec<BTreeMap<String, redis::Value>> =
            self.run(info.arg("CONSUMERS").arg(stream).arg(group)).await;
        let name = |it: &BTreeMap<String, redis::Value>| {
            redis::from_redis_value_ref(&it["name"]).expect("a name")
        };
        consumers.iter().map(name).collect()
    }

    /// Whatever a voucher still has is gone.
    pub async fn flush_voucher(&self, voucher: VoucherId) {
        let mark = format!(":v{voucher}:");
        for name in self.keys().await.into_keys() {
            if name.contains(&mark) {
                self.run::<i64>(redis::cmd("DEL").arg(&name)).await;
            }
        }
    }

    /// Everything is gone, as after `FLUSHALL`, whoever else uses the server.
    pub async fn flush_all(&self) {
        self.run::<()>(&redis::cmd("FLUSHALL")).await;
    }

    /// Runs any command.
    pub async fn run<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        command
            .query_async(&mut self.connection.clone())
            .await
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }
}

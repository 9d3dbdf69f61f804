//! The servers the tests run against.
//!
//! [`shared`] gives a test the Redis and the MySQL server that all tests of its
//! process share, and [`RealStack::fresh_database`] and
//! [`RealStack::fresh_namespace`] keep the tests apart. [`private`] gives it
//! servers of its own, which it may kill. [`memory`] is for tests that need
//! neither: it only counts them.
//!
//! Shared servers come from, in this order: addresses in
//! `SECKILL_TEST_REDIS_URL` and `SECKILL_TEST_MYSQL_URL`; a Docker daemon
//! (`SECKILL_TEST_REDIS_IMAGE`, `SECKILL_TEST_MYSQL_IMAGE`); `redis-server` and
//! `mysqld` or `mariadbd` on this machine (`SECKILL_TEST_REDIS_BIN`,
//! `SECKILL_TEST_MYSQL_BIN`). `SECKILL_TEST_STACK=containers|local|memory`
//! forces one. A source that is not to be had is reported and passed over,
//! unless it is forced; none at all fails the test and names the packages.
//!
//! Nothing is skipped silently: which servers were started, with the versions
//! they report themselves, and how many tests ran on them is printed per
//! process, and added to the file `SECKILL_TEST_REPORT`.

mod containers;
mod given;
mod isolation;
mod local;
mod mysql_data;
mod probe;
mod programs;
mod reaper;
mod report;
mod server;
mod shared;
mod source;
mod wait;

use std::path::PathBuf;

use tokio::sync::mpsc;

pub(crate) use reaper::kill_at_exit;

pub use isolation::FreshDatabase;
pub use local::PrivateStack;
pub use server::LocalServer;
pub use shared::{memory, private, shared};
pub use source::{MYSQL_URL, Plan, REDIS_URL, STACK, Source};
pub use wait::until;

/// A folder for what this process writes, removed when it ends.
pub(crate) fn run_folder() -> PathBuf {
    static FOLDER: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let make = || {
        let folder = local::new_folder().expect("a folder for temporary files");
        reaper::remove_folder(folder.path());
        folder.keep()
    };
    FOLDER.get_or_init(make).clone()
}

/// A Redis and a MySQL server: addresses and versions.
#[derive(Debug)]
pub struct RealStack {
    source: Source,
    redis_url: String,
    mysql_url: String,
    redis_version: String,
    mysql_version: String,
    drop_through: Option<mpsc::UnboundedSender<String>>,
}

impl RealStack {
    fn new(
        source: Source,
        redis_url: String,
        mysql_url: String,
        redis_version: String,
        mysql_version: String,
    ) -> Self {
        Self {
            source,
            redis_url,
            mysql_url,
            redis_version,
            mysql_version,
            drop_through: None,
        }
    }

    fn dropping_databases_through(mut self, sender: mpsc::UnboundedSender<String>) -> Self {
        self.drop_through = Some(sender);
        self
    }

    fn drop_through(&self) -> Option<mpsc::UnboundedSender<String>> {
        self.drop_through.clone()
    }

    /// Where the servers come from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The address of the Redis server.
    pub fn redis_url(&self) -> &str {
        &self.redis_url
    }

    /// The address of the MySQL server. Tests use [`Self::fresh_database`].
    pub fn mysql_url(&self) -> &str {
        &self.mysql_url
    }

    /// Product and version of the Redis server, such as `redis 8.0.6`, as it says itself.
    pub fn redis_version(&self) -> &str {
        &self.redis_version
    }

    /// Product and version of the MySQL server, such as `MariaDB 10.11.18`, as it says itself.
    pub fn mysql_version(&self) -> &str {
        &self.mysql_version
    }

    /// Whether the ledger's server is MariaDB, which reports some errors by other numbers.
    pub fn is_mariadb(&self) -> bool {
        self.mysql_version.starts_with("MariaDB")
    }

    fn versions(&self) -> String {
        format!("{}, {}", self.redis_version, self.mysql_version)
    }
}

//! Asking a server who it is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{Connection, Row};

/// How long a single question may take. A server that is being started, or is
/// frozen by a test, may accept a connection and never answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Which protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Redis,
    MySql,
}

/// What a server says about itself.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// Product and version, such as `redis 8.0.6` or `MariaDB 10.11.18`.
    pub(super) version: String,
    /// Where it keeps its data, if it tells: two servers are told apart by it.
    pub(super) data_dir: Option<PathBuf>,
}

/// Connects to the server and asks for its version and data folder.
pub(super) async fn ask(protocol: Protocol, url: &str) -> Result<Identity, String> {
    let answer = async {
        match protocol {
            Protocol::Redis => ask_redis(url).await.map_err(|error| error.to_string()),
            Protocol::MySql => ask_mysql(url).await.map_err(|error| error.to_string()),
        }
    };
    tokio::time::timeout(ANSWER_WITHIN, answer)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {ANSWER_WITHIN:?}")))
}

async fn ask_redis(url: &str) -> redis::RedisResult<Identity> {
    let mut connection = redis::Client::open(url)?
        .get_multiplexed_async_connection()
        .await?;
    let info: String = redis::cmd("INFO")
        .arg("server")
        .query_async(&mut connection)
        .await?;
    // A server that is reading its append-only file answers INFO before it
    // answers anything else; PING is refused until it has finished.
    let _: String = redis::cmd("PING").query_async(&mut connection).await?;
    // A managed server may forbid CONFIG.
    let data_dir = redis::cmd("CONFIG")
        .arg("GET")
        .arg("dir")
        .query_async::<Vec<String>>(&mut connection)
        .await
        .ok()
        .and_then(|pair| pair.into_iter().nth(1))
        .map(PathBuf::from)
        .or_else(|| folder_of_settings(&info));
    Ok(Identity {
        version: redis_version(&info),
        data_dir,
    })
}

/// A Sentinel has no CONFIG, and keeps its data in the file with its settings.
fn folder_of_settings(info: &str) -> Option<PathBuf> {
    let mut lines = info.lines();
    let file = lines.find_map(|line| line.strip_prefix("config_file:"))?;
    Some(Path::new(file.trim()).parent()?.to_owned())
}

fn redis_version(info: &str) -> String {
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    match field("valkey_version") {
        Some(version) => format!("valkey {version}"),
        None => format!(
            "redis {}",
            field("redis_version").unwrap_or("of unknown version")
        ),
    }
}

async fn ask_mysql(url: &str) -> Result<Identity, sqlx::Error> {
    let mut connection = sqlx::MySqlConnection::connect(url).await?;
    let row = sqlx::query("SELECT VERSION(), @@datadir")
        .fetch_one(&mut connection)
        .await?;
    let identity = Identity {
        version: mysql_version(&row.try_get::<String, _>(0)?),
        data_dir: Some(PathBuf::from(row.try_get::<String, _>(1)?)),
    };
    connection.close().await?;
    Ok(identity)
}

fn mysql_version(version: &str) -> String {
    match version.split_once("-MariaDB") {
        Some((number, _)) => format!("MariaDB {number}"),
        None => format!("MySQL {version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_the_product() {
        assert_eq!(
            redis_version("# Server\r\nredis_version:8.0.6\r\nos:Linux\r\n"),
            "redis 8.0.6"
        );
        assert_eq!(
            redis_version("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n"),
            "valkey 9.1.2"
        );
        assert_eq!(mysql_version("9.7.4-2"), "MySQL 9.7.4-2");
        assert_eq!(
            mysql_version("10.11.18-MariaDB-0+deb12u1"),
            "MariaDB 10.11.18"
        );
    }
}

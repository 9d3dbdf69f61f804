//! Servers that somebody else runs. They outlive the tests, so the tests clean
//! up after themselves: at once where they can, and what a killed run has left
//! when the next one begins.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{Connection as _, MySqlConnection};
use tokio::sync::mpsc;

use super::isolation::{DATABASE_PREFIX, NAMESPACE_PREFIX};
use super::probe::{self, Protocol};
use super::{RealStack, Source, report, source};

/// What is older than this cannot belong to a test that still runs.
const STALE_AFTER: Duration = Duration::from_hours(6);

/// Asks both servers who they are and removes what old runs have left there.
pub(super) async fn start() -> Result<RealStack, String> {
    let setting = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let (redis_url, mysql_url) = (setting(source::REDIS_URL)?, setting(source::MYSQL_URL)?);
    let redis = probe::ask(Protocol::Redis, &redis_url)
        .await
        .map_err(|error| format!("{}: {error}", source::REDIS_URL))?;
    let mysql = probe::ask(Protocol::MySql, &mysql_url)
        .await
        .map_err(|error| format!("{}: {error}", source::MYSQL_URL))?;
    if let Err(error) = remove_stale_keys(&redis_url).await {
        report::say(&format!("old keys stay in the given Redis: {error}"));
    }
    if let Err(error) = remove_stale_databases(&mysql_url).await {
        report::say(&format!("old databases stay in the given MySQL: {error}"));
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(drop_databases(mysql_url.clone(), receiver));
    let stack = RealStack::new(
        Source::Given,
        redis_url,
        mysql_url,
        redis.version,
        mysql.version,
    );
    Ok(stack.dropping_databases_through(sender))
}

/// Drops the databases whose tests have ended.
async fn drop_databases(url: String, mut names: mpsc::UnboundedReceiver<String>) {
    while let Some(name) = names.recv().await {
        if let Ok(mut connection) = MySqlConnection::connect(&url).await {
            let statement = sqlx::AssertSqlSafe(format!("DROP DATABASE IF EXISTS `{name}`"));
            let _ = sqlx::raw_sql(statement).execute(&mut connection).await;
        }
    }
}

async fn remove_stale_databases(url: &str) -> Result<(), sqlx::Error> {
    let mut connection = MySqlConnection::connect(url).await?;
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata \
         WHERE schema_name LIKE 'seckill\\_test\\_%'",
    )
    .fetch_all(&mut connection)
    .await?;
    for name in names.iter().filter(|name| is_stale(name, DATABASE_PREFIX)) {
        let statement = sqlx::AssertSqlSafe(format!("DROP DATABASE IF EXISTS `{name}`"));
        sqlx::raw_sql(statement).execute(&mut connection).await?;
    }
    connection.close().await
}

async fn remove_stale_keys(url: &str) -> redis::RedisResult<()> {
    let mut connection = redis::Client::open(url)?
        .get_multiplexed_async_connection()
        .await?;
    let mut cursor = 0_u64;
    loop {
        let (next, keys): (u64, Vec<String>) = redis::cmd("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(format!("*{NAMESPACE_PREFIX}*"))
            .arg("COUNT")
            .arg(1000)
            .query_async(&mut connection)
            .await?;
        for key in keys.iter().filter(|key| is_stale(key, NAMESPACE_PREFIX)) {
            redis::cmd("UNLINK")
                .arg(key)
                .query_async::<()>(&mut connection)
                .await?;
        }
        cursor = next;
        if cursor == 0 {
            return Ok(());
        }
    }
}

/// Whether the seconds that follow the prefix in this name lie too far back.
fn is_stale(name: &str, prefix: &str) -> bool {
    let Some((_, rest)) = name.split_once(prefix) else {
        return false;
    };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let Ok(made) = digits.parse::<u64>() else {
        return false;
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(Duration::from_secs(made)) > STALE_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_names_of_ours_are_stale() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        assert!(is_stale("seckill_test_1000_1_1", DATABASE_PREFIX));
        assert!(is_stale(
            "seckill-test-1000-1-1:{0}:stream",
            NAMESPACE_PREFIX
        ));
        assert!(!is_stale(
            &format!("seckill_test_{now}_1_1"),
            DATABASE_PREFIX
        ));
        assert!(!is_stale("seckill_test_", DATABASE_PREFIX));
        assert!(!is_stale("seckill", DATABASE_PREFIX));
    }
}

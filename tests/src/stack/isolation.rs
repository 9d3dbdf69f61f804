//! What keeps tests that share servers apart: a database and a key namespace each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::{Connection as _, MySqlConnection};
use tokio::sync::mpsc;

use super::RealStack;

/// Begin of the names of databases made for tests; then the second they were
/// made, the process and a number.
pub(super) const DATABASE_PREFIX: &str = "seckill_test_";
/// Begin of the key namespaces of tests, made up alike.
pub(super) const NAMESPACE_PREFIX: &str = "seckill-test-";

/// An empty database for one test. Keep it as long as the test runs: where the
/// server is not ours, dropping this drops the database.
#[derive(Debug)]
#[must_use = "the database may be dropped with this"]
pub struct FreshDatabase {
    url: String,
    name: String,
    drop_through: Option<mpsc::UnboundedSender<String>>,
}

impl FreshDatabase {
    /// The address with the database in it, as the service's setting wants it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        if let Some(sender) = &self.drop_through {
            // The receiver goes with the process; the next run cleans up then.
            let _ = sender.send(std::mem::take(&mut self.name));
        }
    }
}

impl RealStack {
    /// Creates an empty database.
    pub async fn fresh_database(&self) -> FreshDatabase {
        let name = format!("{DATABASE_PREFIX}{}", unique('_'));
        let mut connection = MySqlConnection::connect(self.mysql_url())
            .await
            .expect("the MySQL server of the test stack answers");
        let statement = sqlx::AssertSqlSafe(format!("CREATE DATABASE `{name}`"));
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .expect("the user of the test stack may create databases");
        connection.close().await.expect("the connection closes");
        FreshDatabase {
            url: with_database(self.mysql_url(), &name),
            name,
            drop_through: self.drop_through(),
        }
    }

    /// A key prefix that no other test uses: lower-case letters, digits, hyphens.
    pub fn fresh_namespace(&self) -> String {
        format!("{NAMESPACE_PREFIX}{}", unique('-'))
    }
}

fn unique(separator: char) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{now}{separator}{}{separator}{number}", std::process::id())
}

/// The address of a server with the database of the address replaced.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url
        .split_once('?')
        .map_or((url, None), |(a, q)| (a, Some(q)));
    let authority = address.find("://").map_or(0, |at| at + 3);
    let end = address[authority..]
        .find('/')
        .map_or(address.len(), |at| authority + at);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &address[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_an_address_is_replaced() {
        assert_eq!(with_database("mysql://u:p@h:1/", "x"), "mysql://u:p@h:1/x");
        assert_eq!(with_database("mysql://u:p@h:1", "x"), "mysql://u:p@h:1/x");
        assert_eq!(
            with_database("mysql://u@h/old?a=/b", "x"),
            "mysql://u@h/x?a=/b"
        );
    }

    #[test]
    fn names_differ() {
        assert_ne!(unique('-'), unique('-'));
    }
}

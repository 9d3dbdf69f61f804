//! Where the database is, and how much of it this process may use.

use std::fmt;
use std::time::Duration;

use crate::statement_edits::StatementEdit;

/// Settings of the ledger's connections.
#[derive(Clone)]
pub struct LedgerConfig {
    /// `mysql://user:password@host:port/database`. TLS is used if the server offers it;
    /// `?ssl-mode=VERIFY_IDENTITY&ssl-ca=…` insists on it.
    pub url: String,
    /// Most connections for reads and units of work; a quarter of them is kept for reads.
    pub max_connections: u32,
    /// Most connections for applying admissions, which never queue behind the others: as many as
    /// this process writes partitions at once. As many again are opened for the second halves of
    /// large batches.
    pub writer_connections: u32,
    /// How long to wait for a connection.
    pub acquire_timeout: Duration,
    /// How long to wait for the answer to one statement. Longer than the lock wait of the sessions
    /// (3 s), so that a lock shows as what it is.
    pub statement_timeout: Duration,
    /// Changes of statements' texts, for negative controls; a service has none.
    pub statement_edits: Vec<StatementEdit>,
}

impl LedgerConfig {
    /// The defaults for a database: 16 and 4 connections, 1 s for a connection, 5 s for a
    /// statement.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 16,
            writer_connections: 4,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
            statement_edits: Vec::new(),
        }
    }
}

impl fmt::Debug for LedgerConfig {
    /// Leaves the URL out: it carries the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerConfig")
            .field("max_connections", &self.max_connections)
            .field("writer_connections", &self.writer_connections)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("statement_edits", &self.statement_edits)
            .finish_non_exhaustive()
    }
}

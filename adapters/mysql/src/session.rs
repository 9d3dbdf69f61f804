//! One connection, in use: statements with a deadline, and transactions that cannot leak.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use seckill_application::Fault;
use sqlx::mysql::{MySqlArguments, MySqlQueryResult, MySqlRow};
use sqlx::pool::PoolConnection;
use sqlx::{MySql, MySqlConnection};

use crate::fault::Trouble;
use crate::meters::LedgerMeters;
use crate::statement_edits::Edits;
use crate::writer_sessions::Turn;

/// A statement with its parameters.
pub(crate) type Statement<'q> = sqlx::query::Query<'q, MySql, MySqlArguments>;

/// A statement; the text is always a literal.
pub(crate) fn statement<'q>(sql: &'static str) -> Statement<'q> {
    sqlx::query(sql)
}

/// A connection taken from the pool.
///
/// The client library cannot pick up a statement that was abandoned midway (it may take the reply
/// to a prepare for a result), so a session that is dropped while one is under way, or after an
/// error that leaves the protocol in doubt, closes its connection; the server then rolls back. A
/// session that is dropped between statements of a transaction has it rolled back and keeps the
/// connection.
pub(crate) struct Session {
    connection: Option<PoolConnection<MySql>>,
    meters: Arc<LedgerMeters>,
    statement_timeout: Duration,
    edits: Edits,
    /// A statement is under way, or broke off.
    unsound: bool,
    /// A transaction may be open.
    open: bool,
    /// The right to the connection, of a writer or a unit of work.
    turn: Option<Turn>,
}

impl Session {
    pub(crate) fn new(
        connection: PoolConnection<MySql>,
        meters: Arc<LedgerMeters>,
        statement_timeout: Duration,
        edits: Edits,
    ) -> Self {
        Self {
            connection: Some(connection),
            meters,
            statement_timeout,
            edits,
            unsound: false,
            open: false,
            turn: None,
        }
    }

    /// Holds a turn for as long as the session is in use.
    pub(crate) fn during(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Ends the turn.
    pub(crate) fn end_turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// Allows statements of this session more time.
    pub(crate) fn allow(&mut self, statement_timeout: Duration) {
        self.statement_timeout = statement_timeout;
    }

    /// Runs a statement that returns no rows.
    pub(crate) async fn execute(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<MySqlQueryResult, Trouble> {
        let limit = self.statement_timeout;
        let statement = self.edits.apply(statement)?;
        let work = statement.execute(self.raw()?);
        let answer = tokio::time::timeout(limit, work).await;
        self.settle(answer)
    }

    /// Runs a statement and reads every row it returns.
    pub(crate) async fn rows(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<Vec<MySqlRow>, Trouble> {
        let limit = self.statement_timeout;
        let statement = self.edits.apply(statement)?;
        let work = statement.fetch_all(self.raw()?);
        let answer = tokio::time::timeout(limit, work).await;
        self.settle(answer)
    }

    /// Runs a statement that returns at most one row.
    pub(crate) async fn row(
        &mut self,
        statement: Statement<'_>,
    ) -> Result<Option<MySqlRow>, Trouble> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&mut self) -> Result<(), Trouble> {
        self.open = true;
        self.text("BEGIN").await
    }

    /// Begins a transaction that only reads, and sees one moment however long it takes.
    pub(crate) async fn begin_snapshot(&mut self) -> Result<(), Trouble> {
        self.open = true;
        self.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .await?;
        self.text("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            .await
    }

    /// Commits. After an error nobody knows, except where the database says that it did not.
    pub(crate) async fn commit(&mut self) -> Result<(), Trouble> {
        self.text("COMMIT").await?;
        self.open = false;
        Ok(())
    }

    /// Gives up what the transaction did.
    pub(crate) async fn rollback(&mut self) -> Result<(), Trouble> {
        self.text("ROLLBACK").await?;
        self.open = false;
        Ok(())
    }

    async fn text(&mut self, sql: &'static str) -> Result<(), Trouble> {
        let limit = self.statement_timeout;
        let work = sqlx::raw_sql(sql).execute(self.raw()?);
        let answer = tokio::time::timeout(limit, work).await;
        self.settle(answer).map(drop)
    }

    /// The connection, marked as unsound until [`Session::settle`] hears that the statement ended.
    fn raw(&mut self) -> Result<&mut MySqlConnection, Trouble> {
        if self.unsound {
            return Err(Trouble::broken("used after the connection broke off"));
        }
        self.unsound = true;
        match self.connection.as_deref_mut() {
            Some(connection) => Ok(connection),
            None => Err(Trouble::broken("used after the connection was given back")),
        }
    }

    fn settle<T>(
        &mut self,
        answer: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, Trouble> {
        let trouble = match answer {
            Ok(Ok(value)) => {
                self.unsound = false;
                return Ok(value);
            }
            Ok(Err(error)) => Trouble::of(error),
            Err(_) => {
                LedgerMeters::add_one(&self.meters.statement_timeouts);
                Trouble::TimedOut
            }
        };
        self.unsound = !trouble.leaves_connection_sound();
        self.count(&trouble);
        Err(trouble)
    }

    fn count(&self, trouble: &Trouble) {
        let Trouble::Contended(sqlx::Error::Database(answer)) = trouble else {
            return;
        };
        // Both servers give a deadlock the SQLSTATE of a serialization failure.
        let counter = if answer.code().as_deref() == Some("40001") {
            &self.meters.deadlocks
        } else {
            &self.meters.lock_wait_timeouts
        };
        counter.fetch_add(1, Relaxed);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let runtime = tokio::runtime::Handle::try_current();
        match runtime {
            Ok(_) if !self.unsound && !self.open => drop(connection),
            // A drop cannot wait for an answer, and the locks should not wait for the next user of
            // the connection: a task of its own rolls back and gives the connection back.
            Ok(runtime) if !self.unsound => {
                let mut session = Self {
                    connection: Some(connection),
                    meters: self.meters.clone(),
                    edits: self.edits.clone(),
                    turn: self.turn.take(),
                    // Until the task runs: a runtime that shuts down drops it unheard.
                    unsound: true,
                    ..*self
                };
                runtime.spawn(async move {
                    session.unsound = false;
                    session.unsound = session.rollback().await.is_err();
                    drop(session);
                });
            }
            _ => {
                LedgerMeters::add_one(&self.meters.connections_dropped);
                drop(connection.detach());
            }
        }
    }
}

/// Gives up a transaction and says why as a fault; errors of the rollback itself only close the
/// connection.
pub(crate) async fn give_up(mut session: Session, port: &'static str, trouble: Trouble) -> Fault {
    if trouble.leaves_connection_sound() {
        let _ = session.rollback().await;
    }
    trouble.before_commit(port)
}

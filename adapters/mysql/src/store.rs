//! The connections to one database, and the ports over them.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::LedgerPorts;
use sqlx::mysql::{MySqlPoolOptions, MySqlRow};
use sqlx::{MySqlPool, Row};
use tokio::sync::Semaphore;

use crate::config::LedgerConfig;
use crate::connecting;
use crate::fault::Trouble;
use crate::meters::LedgerMeters;
use crate::session::{Session, Statement, statement};
use crate::statement_edits::Edits;
use crate::writer_sessions::{Turn, WriterSessions};

/// Idle connections are given up before the server ends them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// Reads of a whole sale may take longer than a statement of a purchase, by this factor.
const LONG_READ: u32 = 6;

/// The ledger in a MySQL or MariaDB database.
#[derive(Clone)]
pub struct MySqlLedger {
    pub(crate) store: Arc<Store>,
}

/// Which server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerServer {
    /// Its own version, such as `9.7.4` or `10.11.19-MariaDB`.
    pub version: String,
    /// What it calls itself.
    pub comment: String,
}

/// What the ports share.
pub(crate) struct Store {
    pool: MySqlPool,
    writers: MySqlPool,
    writer_sessions: WriterSessions,
    units: Arc<Semaphore>,
    acquire_timeout: Duration,
    statement_timeout: Duration,
    attempts_max: u32,
    edits: Edits,
    pub(crate) meters: Arc<LedgerMeters>,
}

/// What a transaction is for.
#[derive(Clone, Copy)]
enum Kind {
    Changes,
    Snapshot,
}

/// How many units of work may be under way at once, of so many connections.
fn units_of_work_max(connections: u32) -> usize {
    let kept = connections.div_ceil(4);
    usize::try_from(connections.saturating_sub(kept).max(1)).unwrap_or(1)
}

impl MySqlLedger {
    /// Connects, and asks the server once. A URL that cannot be read or names no database, a user
    /// who is not let in and a database that is not there are faults that are not retryable; a
    /// server that does not answer is one that is.
    pub async fn connect(config: LedgerConfig) -> Result<Self, Fault> {
        const PORT: &str = "ledger.connect";
        let options = connecting::options(PORT, &config.url)?;
        let reached = connecting::try_once(&options, config.acquire_timeout).await;
        reached.map_err(|trouble| trouble.before_commit(PORT))?;
        let meters = Arc::new(LedgerMeters::default());
        let pool = |size: u32, prepared: &'static [&'static str]| {
            let meters = meters.clone();
            MySqlPoolOptions::new()
                .max_connections(size.max(1))
                .acquire_timeout(config.acquire_timeout)
                .idle_timeout(IDLE_TIMEOUT)
                .test_before_acquire(false)
                .after_connect(move |connection, _| {
                    LedgerMeters::add_one(&meters.connects);
                    Box::pin(async move {
                        connecting::set_up(connection).await?;
                        connecting::prepare(connection, prepared).await;
                        Ok(())
                    })
                })
                .connect_lazy_with(options.clone())
        };
        let writers_max = 2 * config.writer_connections.max(1);
        let store = Store {
            pool: pool(config.max_connections, &[]),
            writers: pool(writers_max, &crate::admissions::EVERY_BATCH),
            writer_sessions: WriterSessions::new(config.writer_connections, config.acquire_timeout),
            units: Arc::new(Semaphore::new(units_of_work_max(config.max_connections))),
            acquire_timeout: config.acquire_timeout,
            statement_timeout: config.statement_timeout,
            attempts_max: config.max_connections.max(writers_max) + 1,
            edits: Edits::new(&config.statement_edits),
            meters: meters.clone(),
        };
        let ledger = Self {
            store: Arc::new(store),
        };
        ledger.describe().await?;
        Ok(ledger)
    }

    /// The ports over this database.
    pub fn ports(&self) -> LedgerPorts {
        LedgerPorts {
            ledger: self.store.clone(),
            admissions: self.store.clone(),
            updates: self.store.clone(),
            events: self.store.clone(),
            parked: self.store.clone(),
            money: self.store.clone(),
            reconciliations: self.store.clone(),
        }
    }

    /// Applies the migrations that the database does not have. Safe to run from several processes
    /// at once, and again after one was cut off.
    pub async fn migrate(&self) -> Result<(), Fault> {
        crate::migrate::run(&self.store.pool).await
    }

    /// Which server answers.
    pub async fn describe(&self) -> Result<LedgerServer, Fault> {
        const PORT: &str = "ledger.describe";
        let read = || statement("SELECT @@version, @@version_comment");
        let row = self.store.read_row(PORT, read).await?;
        let row = row.ok_or_else(|| Fault::broken(PORT, "no version"))?;
        let field = |index: usize| {
            row.try_get(index)
                .map_err(|error| Fault::broken(PORT, error))
        };
        Ok(LedgerServer {
            version: field(0)?,
            comment: field(1)?,
        })
    }

    /// What the connections went through.
    pub fn meters(&self) -> Arc<LedgerMeters> {
        self.store.meters.clone()
    }

    /// Closes the connections once they are given back; calls from now on fail.
    pub async fn close(&self) {
        self.store.pool.close().await;
        let closed = self.store.writers.close();
        self.store.writer_sessions.clear();
        closed.await;
    }
}

impl Store {
    async fn session(&self, pool: &MySqlPool) -> Result<Session, Trouble> {
        let connection = pool.acquire().await.map_err(Trouble::of)?;
        let meters = self.meters.clone();
        let edits = self.edits.clone();
        Ok(Session::new(
            connection,
            meters,
            self.statement_timeout,
            edits,
        ))
    }

    /// A transaction among those of commands.
    pub(crate) async fn begin(&self, port: &'static str) -> Result<Session, Fault> {
        self.begin_in(&self.pool, Kind::Changes, port).await
    }

    /// A transaction of a use case. Those may queue behind one row that everybody wants; a quarter of
    /// the connections is kept from them, for reads and upkeep.
    pub(crate) async fn begin_unit(&self, port: &'static str) -> Result<Session, Fault> {
        let turn = self.units.clone().acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(self.acquire_timeout, turn).await else {
            return Err(Trouble::Crowded.before_commit(port));
        };
        Ok(self.begin(port).await?.during(turn))
    }

    /// A transaction of an order writer.
    pub(crate) async fn begin_writing(&self, port: &'static str) -> Result<Session, Fault> {
        let turn = self.writer_sessions.turn().await;
        let turn = turn.map_err(|trouble| trouble.before_commit(port))?;
        self.begin_in_turn(port, turn).await
    }

    /// A second transaction of a writer, if there is a connection for it.
    pub(crate) async fn begin_beside(&self, port: &'static str) -> Result<Option<Session>, Fault> {
        match self.writer_sessions.turn_beside() {
            Some(turn) => self.begin_in_turn(port, turn).await.map(Some),
            None => Ok(None),
        }
    }

    async fn begin_in_turn(&self, port: &'static str, turn: Turn) -> Result<Session, Fault> {
        while let Some(mut session) = self.writer_sessions.next() {
            match session.begin().await {
                Ok(()) => return Ok(session.during(turn)),
                Err(trouble) if trouble.is_stale_connection() => {}
                Err(trouble) => return Err(trouble.before_commit(port)),
            }
        }
        let session = self.begin_in(&self.writers, Kind::Changes, port).await?;
        Ok(session.during(turn))
    }

    /// Keeps a writer's session, whose transaction has ended, for the next batch.
    pub(crate) fn keep(&self, session: Session) {
        self.writer_sessions
            .keep(session, || !self.writers.is_closed());
    }

    /// A transaction that reads one moment of the database, with more time for each statement.
    pub(crate) async fn begin_snapshot(&self, port: &'static str) -> Result<Session, Fault> {
        let mut session = self.begin_in(&self.pool, Kind::Snapshot, port).await?;
        session.allow(self.statement_timeout * LONG_READ);
        Ok(session)
    }

    /// Connections that went stale while idle (the server was restarted) are noticed here, where
    /// nothing has happened yet, and passed over.
    async fn begin_in(
        &self,
        pool: &MySqlPool,
        kind: Kind,
        port: &'static str,
    ) -> Result<Session, Fault> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let begun = async {
                let mut session = self.session(pool).await?;
                match kind {
                    Kind::Changes => session.begin().await?,
                    Kind::Snapshot => session.begin_snapshot().await?,
                }
                Ok(session)
            };
            match begun.await {
                Ok(session) => return Ok(session),
                Err(trouble) if self.may_retry(&trouble, attempts) => {}
                Err(trouble) => return Err(Trouble::before_commit(trouble, port)),
            }
        }
    }

    fn may_retry(&self, trouble: &Trouble, attempts: u32) -> bool {
        trouble.is_stale_connection() && attempts < self.attempts_max
    }

    /// Every row that a statement returns; it only reads, so a stale connection is passed over.
    pub(crate) async fn read<'q>(
        &self,
        port: &'static str,
        build: impl Fn() -> Statement<'q> + Send,
    ) -> Result<Vec<MySqlRow>, Fault> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let query = build();
            let read = async { self.session(&self.pool).await?.rows(query).await };
            match read.await {
                Ok(rows) => return Ok(rows),
                Err(trouble) if self.may_retry(&trouble, attempts) => {}
                Err(trouble) => return Err(trouble.before_commit(port)),
            }
        }
    }

    /// The one row that a statement returns, if it does.
    pub(crate) async fn read_row<'q>(
        &self,
        port: &'static str,
        build: impl Fn() -> Statement<'q> + Send,
    ) -> Result<Option<MySqlRow>, Fault> {
        Ok(self.read(port, build).await?.into_iter().next())
    }

    /// Runs a statement that is a transaction of its own and may be repeated. Returns how many rows
    /// it found.
    pub(crate) async fn write<'q>(
        &self,
        port: &'static str,
        build: impl Fn() -> Statement<'q> + Send,
    ) -> Result<u64, Fault> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let query = build();
            let write = async { self.session(&self.pool).await?.execute(query).await };
            match write.await {
                Ok(done) => return Ok(done.rows_affected()),
                Err(trouble) if self.may_retry(&trouble, attempts) => {}
                Err(trouble) => return Err(trouble.at_commit(port)),
            }
        }
    }
}

//! What an error of the database means.

use seckill_application::Fault;
use sqlx::mysql::MySqlDatabaseError;

/// Why a statement did not do what it says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// A constraint or a value: the same statement will be refused again.
    #[error("the database refused the statement")]
    Refused(#[source] sqlx::Error),
    /// Another transaction was in the way; everything may be tried again. The transaction is dead.
    #[error("another transaction was in the way")]
    Contended(#[source] sqlx::Error),
    /// The answer did not come, or the server is not able to work; the connection is of no more use.
    #[error("the connection to the database broke off")]
    Lost(#[source] sqlx::Error),
    /// No answer in time.
    #[error("no answer from the database in time")]
    TimedOut,
    /// No connection was to be had.
    #[error("no connection to the database")]
    Unreachable(#[source] sqlx::Error),
    /// The statement, the schema or a stored value is not what this version expects.
    #[error("the database holds something unexpected")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Trouble {
    /// What an error of a statement means.
    pub(crate) fn of(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) => {
                match database.try_downcast_ref::<MySqlDatabaseError>() {
                    Some(answer) => {
                        Self::of_answer(answer.number(), answer.code().unwrap_or(""))(error)
                    }
                    None => Self::Broken(error.into()),
                }
            }
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Self::Unreachable(error),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::BeginFailed
            | sqlx::Error::WorkerCrashed => Self::Lost(error),
            _ => Self::Broken(error.into()),
        }
    }

    /// Sorts by the server's error number, or else by the class of its SQLSTATE. The numbers are
    /// those of both servers; those without a class of their own are named.
    fn of_answer(number: u16, state: &str) -> fn(sqlx::Error) -> Self {
        const DEADLOCK: u16 = 1213;
        const LOCK_WAIT_TIMEOUT: u16 = 1205;
        const CHECK_VIOLATED: u16 = 3819;
        const CHECK_VIOLATED_MARIADB: u16 = 4025;
        const WRONG_VALUE_FOR_FIELD: u16 = 1366;
        const DATA_TRUNCATED: u16 = 1265;
        const NO_DEFAULT_FOR_FIELD: u16 = 1364;
        match (number, state.get(..2).unwrap_or("")) {
            (DEADLOCK | LOCK_WAIT_TIMEOUT, _) => Self::Contended,
            (CHECK_VIOLATED, _) | (CHECK_VIOLATED_MARIADB, "23") => Self::Refused,
            (WRONG_VALUE_FOR_FIELD | DATA_TRUNCATED | NO_DEFAULT_FOR_FIELD, _) => Self::Refused,
            (_, "22" | "23") => Self::Refused,
            (_, "40") => Self::Contended,
            (_, "21" | "28" | "42" | "0A") => |error| Self::Broken(error.into()),
            // Shutting down, read-only, out of space, killed: whatever it is, the server cannot
            // work now.
            _ => Self::Lost,
        }
    }

    /// A stored value that cannot be.
    pub(crate) fn broken(what: impl Into<String>) -> Self {
        Self::Broken(what.into().into())
    }

    /// The fault of a call that has not committed anything.
    pub(crate) fn before_commit(self, port: &'static str) -> Fault {
        match self {
            Self::Refused(_) | Self::Broken(_) => Fault::broken(port, self),
            _ => Fault::unavailable(port, self),
        }
    }

    /// The fault of a statement that commits, or that is a transaction of its own.
    pub(crate) fn at_commit(self, port: &'static str) -> Fault {
        match self {
            Self::Lost(_) | Self::TimedOut => Fault::unknown(port, self),
            _ => self.before_commit(port),
        }
    }

    /// Whether the connection can go on being used.
    pub(crate) fn leaves_connection_sound(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Contended(_))
            || matches!(self, Self::Broken(source) if is_answer(source.as_ref()))
    }

    /// Whether a fresh connection may fare better: this one had gone stale.
    pub(crate) fn is_stale_connection(&self) -> bool {
        matches!(self, Self::Lost(sqlx::Error::Io(_)))
    }
}

fn is_answer(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
}

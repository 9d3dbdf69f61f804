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
    /// Nobody answers where the database should be, or not as a database does.
    #[error("no database answers at {0}")]
    Silent(String, #[source] sqlx::Error),
    /// The server does not let this user in, or not do this.
    #[error("the database does not let this user in, or not do this")]
    Denied(#[source] sqlx::Error),
    /// The server has no database of this name.
    #[error("the server has no such database")]
    NoSuchDatabase(#[source] sqlx::Error),
    /// Others of this process had all connections for too long.
    #[error("no connection came free in time")]
    Crowded,
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

    /// Sorts by the class of the error's SQLSTATE, and by number where the class says too little.
    /// (MariaDB's violated check, 4025, is of class 23.)
    fn of_answer(number: u16, state: &str) -> fn(sqlx::Error) -> Self {
        const DEADLOCK: u16 = 1213;
        const LOCK_WAIT_TIMEOUT: u16 = 1205;
        const CHECK_VIOLATED: u16 = 3819;
        const WRONG_VALUE: u16 = 1366;
        const DATA_TRUNCATED: u16 = 1265;
        const NO_DEFAULT: u16 = 1364;
        const NO_SUCH_DATABASE: u16 = 1049;
        const HOST_NOT_ALLOWED: u16 = 1130;
        const TOO_MANY_CONNECTIONS: u16 = 1040;
        /// For a database, a table, a column, a privilege, a routine.
        const DENIED: [u16; 5] = [1044, 1142, 1143, 1227, 1370];
        match (number, state.get(..2).unwrap_or("")) {
            (DEADLOCK | LOCK_WAIT_TIMEOUT, _) | (_, "40") => Self::Contended,
            (CHECK_VIOLATED | WRONG_VALUE | DATA_TRUNCATED | NO_DEFAULT, _) | (_, "22" | "23") => {
                Self::Refused
            }
            (NO_SUCH_DATABASE, _) => Self::NoSuchDatabase,
            (HOST_NOT_ALLOWED, _) | (_, "28") => Self::Denied,
            (denied, _) if DENIED.contains(&denied) => Self::Denied,
            (TOO_MANY_CONNECTIONS, _) => Self::Unreachable,
            (_, "21" | "42" | "0A") => |error| Self::Broken(error.into()),
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
            Self::Refused(_) | Self::Broken(_) | Self::Denied(_) | Self::NoSuchDatabase(_) => {
                Fault::broken(port, self)
            }
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
        matches!(
            self,
            Self::Refused(_) | Self::Contended(_) | Self::Denied(_)
        ) || matches!(self, Self::Broken(source) if is_answer(source.as_ref()))
    }

    /// Whether a row with the same key was there already.
    pub(crate) fn is_duplicate(&self) -> bool {
        const DUPLICATE_KEY: u16 = 1062;
        match self {
            Self::Refused(sqlx::Error::Database(answer)) => {
                number(answer.as_ref()) == DUPLICATE_KEY
            }
            _ => false,
        }
    }

    /// Whether a fresh connection may fare better: this one had gone stale, or was ended by the
    /// server, which may still leave a last word (killed, or silent for too long) to be read.
    pub(crate) fn is_stale_connection(&self) -> bool {
        const KILLED: u16 = 1927;
        const SILENT: u16 = 4031;
        match self {
            Self::Lost(sqlx::Error::Io(_)) => true,
            Self::Lost(sqlx::Error::Database(answer)) => {
                matches!(number(answer.as_ref()), KILLED | SILENT)
            }
            _ => false,
        }
    }
}

/// The server's number of an error; 0 if the error is not of a server of this kind.
pub(crate) fn number(answer: &dyn sqlx::error::DatabaseError) -> u16 {
    answer
        .try_downcast_ref::<MySqlDatabaseError>()
        .map_or(0, MySqlDatabaseError::number)
}

/// Refuses a call that asks for more than its port allows.
pub(crate) fn at_most(port: &'static str, asked: usize, max: usize) -> Result<(), Fault> {
    if asked > max {
        let what = format!("{asked} at once, at most {max} are allowed");
        return Err(Fault::broken(port, what));
    }
    Ok(())
}

fn is_answer(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(sqlx::Error::Database(_)))
}

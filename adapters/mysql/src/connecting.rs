//! The way to a server, tried once by itself before there is a pool: a pool tries again and again
//! and says in the end that it took too long, whatever the reason.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use seckill_application::Fault;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, MySqlConnection};

use crate::fault::Trouble;

/// What every session is set to. A lock is waited for at most 3 s. A session that says nothing for
/// 10 s is ended by the server, which gives back the locks of a process that was stopped in the
/// middle of a transaction.
///
/// Without join buffers, in the words of either server: with them it reads a small table as a whole
/// rather than by its key, and a locking read of one order locks them all.
const SESSION: &str = "SET SESSION \
     sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', \
     innodb_lock_wait_timeout = 3, wait_timeout = 10, time_zone = '+00:00' \
     /*M! , join_cache_level = 0 */ /*!80000 , optimizer_switch = 'block_nested_loop=off' */";
const ISOLATION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Reads a URL. One that cannot be read, or that names no database, is a fault that is not
/// retryable.
pub(crate) fn options(port: &'static str, url: &str) -> Result<MySqlConnectOptions, Fault> {
    let options = MySqlConnectOptions::from_str(url).map_err(|error| Fault::broken(port, error))?;
    if options.get_database().is_none_or(str::is_empty) {
        let what = "the URL names no database: mysql://user:password@host:port/database";
        return Err(Fault::broken(port, what));
    }
    Ok(options
        .timezone(None)
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .disable_statement_logging())
}

/// Connects once, and says what is in the way.
pub(crate) async fn try_once(
    options: &MySqlConnectOptions,
    patience: Duration,
) -> Result<(), Trouble> {
    let address = options.get_socket().map_or_else(
        || format!("{}:{}", options.get_host(), options.get_port()),
        |socket| socket.display().to_string(),
    );
    let attempt = async {
        let mut connection = options.connect().await?;
        set_up(&mut connection).await?;
        connection.close().await
    };
    let done = tokio::time::timeout(patience, attempt).await;
    let too_long = || {
        let what = format!("no answer within {} ms", patience.as_millis());
        sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, what))
    };
    match done.unwrap_or_else(|_| Err(too_long())) {
        Ok(()) => Ok(()),
        Err(
            error @ (sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::Configuration(_)),
        ) => Err(Trouble::Silent(address, error)),
        Err(error) => Err(Trouble::of(error)),
    }
}

/// Makes a new connection a session of the ledger.
pub(crate) async fn set_up(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    connection.execute(SESSION).await?;
    connection.execute(ISOLATION).await?;
    Ok(())
}

/// Has statements prepared that a session is sure to need. What the server cannot prepare, because
/// the schema is not up to date, fails where it is run.
pub(crate) async fn prepare(connection: &mut MySqlConnection, statements: &[&'static str]) {
    for sql in statements {
        if let Err(error) = connection.prepare(sqlx::SqlStr::from_static(sql)).await {
            tracing::debug!(%error, "a statement could not be prepared ahead");
        }
    }
}

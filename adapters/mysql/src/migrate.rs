//! Bringing the schema up to date.

use seckill_application::Fault;
use sqlx::migrate::{Migrate, MigrateError};
use sqlx::{MySqlConnection, MySqlPool};

use crate::fault::Trouble;

const PORT: &str = "ledger.migrate";

/// Applies what is missing, on one connection that holds the database's lock for migrations.
pub(crate) async fn run(pool: &MySqlPool) -> Result<(), Fault> {
    let connection = pool
        .acquire()
        .await
        .map_err(|error| Fault::unavailable(PORT, error))?;
    // Not one of the pool any more: whatever becomes of it, its lock ends with it.
    let mut connection = connection.detach();
    if !lock(&mut connection).await? {
        return Err(Fault::unavailable(PORT, "another process is migrating"));
    }
    migrate(&mut connection).await.map_err(fault)
}

/// The library's own lock waits for -1 seconds, which MariaDB takes for no lock at all.
async fn lock(connection: &mut MySqlConnection) -> Result<bool, Fault> {
    const SQL: &str = "SELECT CAST(COALESCE(GET_LOCK( \
           CONCAT('seckill.migrate.', LEFT(SHA2(DATABASE(), 256), 40)), 60), 0) AS SIGNED)";
    let locked: i64 = sqlx::query_scalar(SQL)
        .fetch_one(connection)
        .await
        .map_err(|error| Trouble::of(error).before_commit(PORT))?;
    Ok(locked == 1)
}

async fn migrate(connection: &mut MySqlConnection) -> Result<(), MigrateError> {
    forget_cut_off(connection).await?;
    let mut migrations = sqlx::migrate!("../../migrations");
    migrations.set_locking(false);
    migrations.run_direct(None, connection, false).await
}

/// A migration that was cut off is on record as not successful, and would be refused for ever. Each
/// is one statement that may be repeated, so it is forgotten and runs again. Under the lock: another
/// process may be in the middle of it.
async fn forget_cut_off(connection: &mut MySqlConnection) -> Result<(), MigrateError> {
    connection
        .ensure_migrations_table("_sqlx_migrations")
        .await?;
    sqlx::query("DELETE FROM _sqlx_migrations WHERE success = FALSE")
        .execute(connection)
        .await?;
    Ok(())
}

fn fault(error: MigrateError) -> Fault {
    match error {
        MigrateError::Execute(sqlx::Error::Io(_)) => Fault::unknown(PORT, error),
        error => Fault::broken(PORT, error),
    }
}

//! Bringing the schema up to date.

use std::collections::HashSet;

use seckill_application::Fault;
use sqlx::migrate::{Migrate, MigrateError};
use sqlx::{MySqlConnection, MySqlPool};

use crate::fault::{Trouble, number};

const PORT: &str = "ledger.migrate";

/// Applies what is missing, on one connection that holds the database's lock for migrations.
pub(crate) async fn run(pool: &MySqlPool) -> Result<(), Fault> {
    let connection = pool.acquire().await;
    let connection = connection.map_err(|error| Trouble::of(error).before_commit(PORT))?;
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
    let mut cut_off = forget_cut_off(connection).await?;
    let mut migrations = sqlx::migrate!("../../migrations");
    migrations.set_locking(false);
    loop {
        match migrations.run_direct(None, connection, false).await {
            Err(MigrateError::ExecuteMigration(error, version))
                if was_done(&error) && cut_off.remove(&version) =>
            {
                note_success(connection, version).await?;
            }
            done => return done,
        }
    }
}

/// A migration that was cut off is on record as not successful, and would be refused for ever. Each
/// is one statement that may be repeated, so it is forgotten and runs again. Under the lock: another
/// process may be in the middle of it. Returns which there were.
async fn forget_cut_off(connection: &mut MySqlConnection) -> Result<HashSet<i64>, MigrateError> {
    connection
        .ensure_migrations_table("_sqlx_migrations")
        .await?;
    let cut_off = sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success = FALSE")
        .fetch_all(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM _sqlx_migrations WHERE success = FALSE")
        .execute(connection)
        .await?;
    Ok(cut_off.into_iter().collect())
}

/// Whether a statement fails because it was carried out before: MySQL has no `IF NOT EXISTS` for a
/// column, a key or a check.
fn was_done(error: &sqlx::Error) -> bool {
    const DUPLICATE_COLUMN: u16 = 1060;
    const DUPLICATE_KEY_NAME: u16 = 1061;
    const DUPLICATE_CHECK_NAME: u16 = 3822;
    matches!(
        error.as_database_error().map(number),
        Some(DUPLICATE_COLUMN | DUPLICATE_KEY_NAME | DUPLICATE_CHECK_NAME)
    )
}

/// The note that a migration has succeeded. The failed repetition has left its record.
async fn note_success(connection: &mut MySqlConnection, version: i64) -> Result<(), MigrateError> {
    sqlx::query("UPDATE _sqlx_migrations SET success = TRUE WHERE version = ?")
        .bind(version)
        .execute(connection)
        .await?;
    Ok(())
}

fn fault(error: MigrateError) -> Fault {
    match error {
        MigrateError::Execute(sqlx::Error::Io(_))
        | MigrateError::ExecuteMigration(sqlx::Error::Io(_), _) => Fault::unknown(PORT, error),
        error => Fault::broken(PORT, error),
    }
}

//! Bringing the schema up to date.

use seckill_application::Fault;
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::{MySqlConnection, MySqlPool};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

const PORT: &str = "ledger.migrate";

/// Applies what is missing, on one connection that holds the database's lock for migrations.
pub(crate) async fn run(pool: &MySqlPool) -> Result<(), Fault> {
    let connection = pool
        .acquire()
        .await
        .map_err(|error| Fault::unavailable(PORT, error))?;
    // Not one of the pool any more: whatever becomes of it, its lock ends with it.
    let mut connection = connection.detach();
    let done = migrate(&mut connection).await;
    drop(connection);
    done.map_err(fault)
}

async fn migrate(connection: &mut MySqlConnection) -> Result<(), MigrateError> {
    connection.lock().await?;
    forget_cut_off(connection).await?;
    // Takes the same lock again, which its holder may.
    MIGRATIONS.run_direct(None, connection, false).await?;
    connection.unlock().await
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

//! Migrations.

use crate::fixture::{connect, number, run};
use crate::server::FreshDatabase;

/// Ours, and the one that says which migrations ran.
const TABLES_EXPECTED: i64 = 19;
const TABLES: &str =
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";

#[tokio::test]
async fn migrations_may_run_again_and_from_many_processes_at_once() {
    let database = FreshDatabase::create().await;
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let url = FreshDatabase {
                name: database.name.clone(),
                url: database.url.clone(),
            };
            tokio::spawn(async move {
                let ledger = connect(&url).await;
                ledger.migrate().await.unwrap();
                ledger.migrate().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut connection = database.connect().await;
    assert_eq!(number(&mut connection, TABLES).await, TABLES_EXPECTED);
}

#[tokio::test]
async fn a_migration_that_was_cut_off_is_run_again() {
    let database = FreshDatabase::create().await;
    let ledger = connect(&database).await;
    ledger.migrate().await.unwrap();
    let mut meddler = database.connect().await;
    // As if the server had died between the statement and the note that it succeeded, and in another
    // file before the statement.
    run(
        &mut meddler,
        "UPDATE _sqlx_migrations SET success = FALSE WHERE description LIKE 'parked%' \
           OR description IN ('gate updates', 'vouchers retired', 'orders by voucher')",
    )
    .await;
    run(&mut meddler, "DROP TABLE gate_updates").await;
    ledger.migrate().await.unwrap();
    assert_eq!(number(&mut meddler, TABLES).await, TABLES_EXPECTED);
    let unsuccessful = "SELECT COUNT(*) FROM _sqlx_migrations WHERE success = FALSE";
    assert_eq!(number(&mut meddler, unsuccessful).await, 0);
}

/// As "is there already" means success only of what was cut off.
#[tokio::test]
async fn a_column_that_nobody_knows_of_is_not_taken_for_a_migration() {
    let database = FreshDatabase::create().await;
    let ledger = connect(&database).await;
    ledger.migrate().await.unwrap();
    let mut meddler = database.connect().await;
    let forgotten = "DELETE FROM _sqlx_migrations WHERE description = 'vouchers retired'";
    run(&mut meddler, forgotten).await;
    let fault = ledger.migrate().await.unwrap_err();
    assert!(!fault.is_retryable());
    assert!(fault.chain().contains("retired"), "{}", fault.chain());
}

#[tokio::test]
async fn an_edited_migration_is_refused() {
    let database = FreshDatabase::create().await;
    let ledger = connect(&database).await;
    ledger.migrate().await.unwrap();
    let mut meddler = database.connect().await;
    let edit = "UPDATE _sqlx_migrations SET checksum = 'x' WHERE description = 'orders'";
    run(&mut meddler, edit).await;
    let fault = ledger.migrate().await.unwrap_err();
    assert!(!fault.is_retryable());
}

#[tokio::test]
async fn nothing_of_the_schema_is_left_to_the_server() {
    let database = FreshDatabase::create().await;
    let ledger = connect(&database).await;
    ledger.migrate().await.unwrap();
    let mut connection = database.connect().await;
    let strange = "SELECT COUNT(*) FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name <> '_sqlx_migrations' \
           AND collation_name NOT IN ('utf8mb4_bin', 'ascii_bin', 'utf8mb4_unicode_ci')";
    assert_eq!(number(&mut connection, strange).await, 0);
    let engines = "SELECT COUNT(*) FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND engine <> 'InnoDB'";
    assert_eq!(number(&mut connection, engines).await, 0);
}

//! What a batch costs, by the server's own counters.

use sqlx::MySqlConnection;

use crate::fixture::{Fixture, number};
use crate::server::root;

/// Statements that the sessions on a database have sent so far: those that the server ran
/// (`Questions` counts an execution once and no preparation), and preparations.
async fn statements(root: &mut MySqlConnection, database: &str) -> (i64, i64) {
    let on = number(root, "SELECT CAST(@@performance_schema AS SIGNED)").await;
    assert_eq!(
        on, 1,
        "the server's performance_schema is off, and with it its counters"
    );
    let mut count = async |variable: &str| {
        let sql = format!(
            "SELECT CAST(COALESCE(SUM(s.variable_value), 0) AS SIGNED) \
             FROM performance_schema.status_by_thread s \
             JOIN performance_schema.threads t ON t.thread_id = s.thread_id \
             WHERE t.processlist_db = '{database}' AND s.variable_name = '{variable}'"
        );
        number(root, &sql).await
    };
    (count("Questions").await, count("Com_stmt_prepare").await)
}

#[tokio::test]
async fn a_batch_of_200_orders_costs_at_most_10_statements() {
    let mut fixture = Fixture::new(100_000, 1).await;
    let mut root = root().await;
    let mut next = 1;
    // The first pass prepares its statements; that counts, too.
    for pass in ["cold", "warm"] {
        let decisions: Vec<_> = (next..next + 200)
            .map(|n| fixture.granted(n, n, 1))
            .collect();
        next += 200;
        let batch = fixture.batch(decisions);
        let before = statements(&mut root, &fixture.database.name).await;
        let applied = fixture.ports.admissions.apply(&batch).await.unwrap();
        let after = statements(&mut root, &fixture.database.name).await;
        let seckill_application::ports::Applied::Committed { head, .. } = applied else {
            panic!("stale");
        };
        fixture.head = head;
        let (ran, prepared) = (after.0 - before.0, after.1 - before.1);
        println!("{pass}: {ran} statements, {prepared} prepared");
        assert!(ran > 0, "the counters count");
        assert!(
            ran + prepared <= 10,
            "{pass}: {ran} statements, {prepared} prepared"
        );
    }
    assert_eq!(fixture.number("SELECT COUNT(*) FROM orders").await, 400);
}

#[tokio::test]
async fn the_closer_look_costs_no_statement_per_order() {
    let fixture = Fixture::new(150, 1).await;
    let mut root = root().await;
    let decisions: Vec<_> = (1..=200).map(|n| fixture.granted(n, n, 1)).collect();
    let batch = fixture.batch(decisions);
    let before = statements(&mut root, &fixture.database.name).await;
    fixture.ports.admissions.apply(&batch).await.unwrap();
    let after = statements(&mut root, &fixture.database.name).await;
    let ran = after.0 - before.0;
    println!("{ran} statements for 50 refusals among 200");
    assert!(ran <= 25, "{ran}");
    assert_eq!(fixture.voucher().await.stock_units, 0);
}

//! What a batch costs, by the server's own counters.

use std::collections::BTreeMap;

use sqlx::MySqlConnection;

use crate::fixture::Fixture;
use crate::server::root;

/// How often the sessions on a database have run what so far, by the server's own counters:
/// preparations and all, but for the pool's pings.
pub(crate) async fn statements(
    root: &mut MySqlConnection,
    database: &str,
) -> BTreeMap<String, i64> {
    const SQL: &str = "SELECT e.event_name, CAST(SUM(e.count_star) AS SIGNED) \
         FROM performance_schema.events_statements_summary_by_thread_by_event_name e \
           JOIN performance_schema.threads t ON t.thread_id = e.thread_id \
         WHERE t.processlist_db = ? AND e.count_star > 0 AND e.event_name NOT LIKE '%/Ping' \
         GROUP BY e.event_name";
    let counts: Vec<(String, i64)> = sqlx::query_as(SQL)
        .bind(database)
        .fetch_all(root)
        .await
        .unwrap();
    counts.into_iter().collect()
}

/// What was run between two looks.
pub(crate) fn between(
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
) -> Vec<(String, i64)> {
    after
        .iter()
        .map(|(what, count)| (what.clone(), count - before.get(what).unwrap_or(&0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

pub(crate) fn sum(ran: &[(String, i64)]) -> i64 {
    ran.iter().map(|(_, count)| count).sum()
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
        let ran = between(&before, &after);
        println!("{pass}: {} statements: {ran:?}", sum(&ran));
        let says = "the server's performance schema counts statements";
        assert!(
            ran.iter().any(|(what, _)| what.contains("Execute")),
            "{says}: {ran:?}"
        );
        assert!(sum(&ran) <= 10, "{pass}: {ran:?}");
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
    let ran = between(&before, &after);
    println!(
        "{} statements for 50 refusals among 200: {ran:?}",
        sum(&ran)
    );
    assert!(sum(&ran) <= 40, "{ran:?}");
    assert_eq!(fixture.voucher().await.stock_units, 0);
}

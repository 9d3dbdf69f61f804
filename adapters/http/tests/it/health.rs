//! Health.

use serde_json::json;

use crate::stand::{Answer, BACKLOG_MAX, Stand};

impl Stand {
    async fn ready(&self) -> Answer {
        self.get("/readyz").answer().await
    }
}

#[tokio::test]
async fn a_healthy_process_is_ready() {
    let stand = Stand::new().await;
    stand.get("/livez").answer().await.is(200);
    let ready = stand.ready().await;
    ready.is(200);
    assert_eq!(ready.body["status"], "ready");
    assert_eq!(ready.body["not_ready"], json!([]));
    assert_eq!(ready.body["persistence"], "none: in memory");
    let checks = json!({"gate": "up", "ledger": "up", "backlog": "ok", "process": "running"});
    assert_eq!(ready.body["checks"], checks);
}

#[tokio::test]
async fn without_the_database_it_is_ready_and_degraded() {
    let stand = Stand::new().await;
    stand.ledger.down(true);
    let ready = stand.ready().await;
    ready.is(200);
    assert_eq!(
        (&ready.body["status"], &ready.body["not_ready"]),
        (&json!("degraded"), &json!(["ledger"]))
    );
}

#[tokio::test]
async fn without_the_gate_it_is_not_ready() {
    let stand = Stand::new().await;
    stand.hot.chaos().down(true);
    let ready = stand.ready().await;
    ready.refused(503, "not_ready");
    assert_eq!(ready.body["readiness"]["not_ready"], json!(["gate"]));
    assert_eq!(ready.body["readiness"]["checks"]["backlog"], "unknown");
    stand.get("/livez").answer().await.is(200);
    stand.hot.chaos().heal();
    // A look counts for a moment.
    stand
        .wait_until(async || stand.ready().await.status == 200)
        .await;
}

#[tokio::test]
async fn with_a_full_backlog_it_is_not_ready() {
    let stand = Stand::new().await;
    let voucher = stand.voucher(json!({"total_units": 100})).await;
    stand.pause_writer().await;
    for user in 1..=BACKLOG_MAX {
        stand.buy(&voucher, user).await.is(202);
    }
    let ready = stand.ready().await;
    ready.refused(503, "not_ready");
    assert_eq!(ready.body["readiness"]["not_ready"], json!(["backlog"]));
}

#[tokio::test]
async fn a_process_that_stops_is_not_ready_and_ends_its_connections() {
    let stand = Stand::new().await;
    assert_eq!(stand.ready().await.header("connection"), "");
    stand.stopping.cancel();
    let ready = stand.ready().await;
    ready.refused(503, "not_ready");
    assert_eq!(ready.body["readiness"]["not_ready"], json!(["process"]));
    assert_eq!(ready.header("connection"), "close");
    stand.get("/livez").answer().await.is(200);
}

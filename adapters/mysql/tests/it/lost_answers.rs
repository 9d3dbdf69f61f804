//! Answers that do not come.

use std::time::Duration;

use seckill_application::Effect;
use seckill_application::ports::Applied;
use seckill_domain::{OrderId, OrderStatus, Stage};

use crate::fixture::{Fixture, PARTITION};
use crate::swallow::Swallowing;

#[tokio::test]
async fn a_batch_whose_commit_is_not_answered_is_applied_once() {
    let mut fixture = Fixture::new(10, 1).await;
    let way = Swallowing::connect(&fixture.database).await;
    let admissions = way.ledger.ports().admissions;
    let batch = fixture.batch(vec![fixture.granted(1, 1, 1), fixture.granted(2, 2, 1)]);
    way.arm();
    let fault = admissions.apply(&batch).await.unwrap_err();
    assert_eq!(fault.effect(), Effect::Unknown);
    assert!(fault.is_retryable());
    let counts = way.ledger.meters().counts();
    assert_eq!(
        (counts.statement_timeouts, counts.connections_dropped),
        (1, 1)
    );

    let head = fixture.ports.admissions.head(PARTITION).await.unwrap();
    assert_eq!(head.applied.get(), 2, "it did commit");
    let again = fixture.ports.admissions.apply(&batch).await.unwrap();
    assert_eq!(again, Applied::Stale(head));
    let known = fixture
        .ports
        .admissions
        .has_applied(PARTITION, &batch.items);
    assert!(known.await.unwrap());
    assert_eq!(fixture.voucher().await.stock_units, 8);
    fixture.head = head;
    fixture.apply(vec![fixture.granted(3, 3, 1)]).await;
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_unit_whose_commit_is_not_answered_says_that_it_does_not_know() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let way = Swallowing::connect(&fixture.database).await;
    let mut unit = way.ledger.ports().ledger.begin().await.unwrap();
    let mut order = unit.lock_order(OrderId::new(1)).await.unwrap().unwrap();
    let now = unit.now().await.unwrap();
    order.pay(&"p".parse().unwrap(), now).unwrap();
    let saved = unit
        .save_orders(OrderStatus::PendingPayment, &[order])
        .await;
    assert_eq!(saved.unwrap(), 1);
    way.arm();
    let fault = unit.commit().await.unwrap_err();
    assert_eq!(fault.effect(), Effect::Unknown);
    let payment = "p".parse().unwrap();
    assert_eq!(
        fixture.order(1).await.unwrap().stage,
        Stage::Paid { payment }
    );
}

/// A process that is stopped in the middle of a transaction must not keep its locks until it is
/// woken: whoever takes over would wait as long.
#[tokio::test]
async fn the_locks_of_a_process_that_says_nothing_come_free() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let mut silent = fixture.ports.ledger.begin().await.unwrap();
    let order = silent.lock_order(OrderId::new(1)).await.unwrap();
    assert!(order.is_some());
    tokio::time::sleep(Duration::from_secs(11)).await;
    let mut other = fixture.ports.ledger.begin().await.unwrap();
    let order = other.lock_order(OrderId::new(1)).await.unwrap();
    assert!(order.is_some(), "the server has ended the silent session");
    let woken = silent.lock_order(OrderId::new(1)).await.unwrap_err();
    assert!(woken.is_retryable());
    assert!(silent.commit().await.is_err());
    // Connections that went stale meanwhile are passed over.
    fixture.ports.ledger.ping().await.unwrap();
}

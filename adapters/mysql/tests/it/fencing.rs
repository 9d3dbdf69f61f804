//! Who may write, and from where.

use std::time::Duration;

use seckill_application::ports::{Applied, EntryId};
use seckill_domain::{Epoch, PartitionId};

use crate::fixture::{Fixture, PARTITION, run};

#[tokio::test]
async fn a_new_partition_starts_at_nothing() {
    let fixture = Fixture::new(1, 1).await;
    let head = fixture
        .ports
        .admissions
        .head(PartitionId::new(9))
        .await
        .unwrap();
    assert_eq!(head.epoch, Epoch::new(1));
    assert_eq!(head.applied.get(), 0);
    assert_eq!(head.entry, EntryId::START);
}

#[tokio::test]
async fn whoever_takes_over_shuts_the_others_out() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let old = fixture.batch(vec![fixture.granted(2, 2, 1)]);
    let head = fixture.ports.admissions.take_over(PARTITION).await.unwrap();
    assert!(head.fence > fixture.head.fence);
    assert_eq!(head.applied.get(), 1, "the position is handed over");
    let late = fixture.ports.admissions.apply(&old).await.unwrap();
    assert_eq!(late, Applied::Stale(head));
    assert!(fixture.order(2).await.is_none());
    fixture.head = head;
    fixture.apply(vec![fixture.granted(2, 2, 1)]).await;
}

/// Negative control: with the fence set back, the old writer's batch goes through.
#[tokio::test]
async fn without_the_fence_the_old_writer_writes() {
    let fixture = Fixture::new(10, 1).await;
    let old = fixture.batch(vec![fixture.granted(1, 1, 1)]);
    fixture.ports.admissions.take_over(PARTITION).await.unwrap();
    let mut meddler = fixture.database.connect().await;
    run(&mut meddler, "UPDATE partitions SET fence = fence - 1").await;
    let late = fixture.ports.admissions.apply(&old).await.unwrap();
    assert!(matches!(late, Applied::Committed { .. }));
}

#[tokio::test]
async fn fences_are_drawn_once_each() {
    let fixture = Fixture::new(1, 1).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let admissions = fixture.ports.admissions.clone();
            tokio::spawn(async move { admissions.take_over(PARTITION).await.unwrap().fence })
        })
        .collect();
    let mut fences = Vec::new();
    for task in tasks {
        fences.push(task.await.unwrap());
    }
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 8);
}

#[tokio::test]
async fn an_epoch_is_raised_once_however_many_notice() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    let seen = fixture.head.epoch;
    let admissions = &fixture.ports.admissions;
    let first = admissions.next_epoch(PARTITION, seen).await.unwrap();
    let second = admissions.next_epoch(PARTITION, seen).await.unwrap();
    assert_eq!(first.epoch, seen.next());
    assert_eq!(second, first);
    assert_eq!(first.applied.get(), 1, "the sequence goes on");
    assert_eq!(first.entry, EntryId::START, "the entries start over");
    let old = fixture.batch(vec![fixture.granted(2, 2, 1)]);
    let stale = admissions.apply(&old).await.unwrap();
    assert_eq!(stale, Applied::Stale(first));
    fixture.head = first;
    fixture.apply(vec![fixture.granted(2, 2, 1)]).await;
}

#[tokio::test]
async fn the_namespace_is_settled_once() {
    let fixture = Fixture::new(1, 1).await;
    let ledger = &fixture.ledger;
    assert_eq!(ledger.settle_namespace("sale").await.unwrap(), "sale");
    assert_eq!(ledger.settle_namespace("sale").await.unwrap(), "sale");
    assert_eq!(ledger.settle_namespace("SALE").await.unwrap(), "sale");
}

#[tokio::test]
async fn a_gate_is_replaced_only_when_nobody_confirms_it() {
    let fixture = Fixture::new(1, 1).await;
    let ledger = &fixture.ledger;
    let (a, b) = ("a".repeat(32), "b".repeat(32));
    let minute = Duration::from_mins(1);
    assert_eq!(ledger.gate().await.unwrap(), None);
    assert!(!ledger.confirm_gate(&a).await.unwrap());
    assert!(ledger.adopt_gate(None, &a, minute).await.unwrap());
    // Another one comes too late, and a repeat finds it done.
    assert!(!ledger.adopt_gate(None, &b, minute).await.unwrap());
    assert!(ledger.adopt_gate(None, &a, minute).await.unwrap());
    assert!(!ledger.adopt_gate(Some(&a), &b, minute).await.unwrap());
    assert!(ledger.confirm_gate(&a).await.unwrap());
    assert!(!ledger.confirm_gate(&b).await.unwrap());
    let on_record = ledger.gate().await.unwrap().unwrap();
    assert_eq!(on_record.name, a);
    assert!(on_record.quiet < minute);
    let quiet = Duration::ZERO;
    assert!(!ledger.adopt_gate(Some(&b), &b, quiet).await.unwrap());
    assert!(ledger.adopt_gate(Some(&a), &b, quiet).await.unwrap());
    assert_eq!(ledger.gate().await.unwrap().unwrap().name, b);
}

#[tokio::test]
async fn the_number_of_partitions_is_settled_once() {
    let fixture = Fixture::new(1, 1).await;
    let admissions = &fixture.ports.admissions;
    assert_eq!(admissions.settle_partitions(4).await.unwrap(), 1);
    let fault = admissions.settle_partitions(0).await;
    assert!(fault.is_err() || fault.is_ok_and(|count| count == 1));
}

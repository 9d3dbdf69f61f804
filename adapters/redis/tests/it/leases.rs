//! Leases.

use std::time::Duration;

use seckill_application::ports::{Lease, LeaseOwner};

use crate::stage::{Stage, pause};

const TTL: Duration = Duration::from_secs(10);

fn owner(name: &str) -> LeaseOwner {
    LeaseOwner(name.to_owned())
}

/// Stands for: a lock released by another than its owner; a lock that its owner cannot take twice.
#[tokio::test]
async fn a_lease_is_counted_for_its_owner_and_never_released_by_another() {
    let stage = Stage::bare().await;
    let leases = &stage.hot.leases;
    let (a, b) = (owner("a"), owner("b"));
    let lease = leases.acquire("x", &a, TTL).await.unwrap().expect("free");
    assert_eq!(leases.acquire("x", &b, TTL).await.unwrap(), None);
    leases
        .acquire("x", &a, TTL)
        .await
        .unwrap()
        .expect("re-entrant");
    let stolen = Lease {
        owner: b.clone(),
        ..lease.clone()
    };
    assert!(!leases.release(&stolen).await.unwrap());
    assert!(!leases.renew(&stolen, TTL).await.unwrap());
    assert!(leases.release(&lease).await.unwrap());
    assert_eq!(
        leases.acquire("x", &b, TTL).await.unwrap(),
        None,
        "one hold is left"
    );
    assert!(leases.release(&lease).await.unwrap());
    assert!(!leases.release(&lease).await.unwrap(), "free at zero");
    assert!(leases.acquire("x", &b, TTL).await.unwrap().is_some());
    assert!(leases.acquire("y", &a, TTL).await.unwrap().is_some());
}

/// Stands for: an explicit lease time that switches the watchdog off (hole 7).
#[tokio::test]
async fn a_lease_runs_out_unless_renewed() {
    let stage = Stage::bare().await;
    let leases = &stage.hot.leases;
    let short = Duration::from_millis(200);
    let lease = leases
        .acquire("x", &owner("a"), short)
        .await
        .unwrap()
        .unwrap();
    for _ in 0..3 {
        pause(100).await;
        assert!(leases.renew(&lease, short).await.unwrap());
    }
    pause(250).await;
    assert!(!leases.renew(&lease, short).await.unwrap(), "it stays lost");
    assert!(
        leases
            .acquire("x", &owner("b"), TTL)
            .await
            .unwrap()
            .is_some()
    );
    assert!(!leases.release(&lease).await.unwrap());
}

#[tokio::test]
async fn a_key_of_another_type_is_a_lost_lease() {
    let stage = Stage::bare().await;
    stage.raw::<String>("SET seckill:lease:x nonsense").await;
    let leases = &stage.hot.leases;
    let lease = leases
        .acquire("x", &owner("a"), TTL)
        .await
        .unwrap()
        .expect("free");
    assert!(leases.release(&lease).await.unwrap());
}

//! `Leases`: exclusive, expiring, re-entrant for the owner and for nobody else.

use std::time::Duration;

use futures::future::join_all;
use seckill_application::ports::{HotPath, Lease, LeaseOwner};

use super::{HotHarness, promises};

promises! { leases over dyn HotHarness:
    a_free_lease_is_taken_and_kept_from_others,
    of_many_owners_one_gets_it,
    its_owner_takes_it_again_and_each_hold_counts,
    it_is_free_at_zero_and_not_before,
    a_lease_is_never_released_by_another,
    a_lease_is_never_renewed_by_another,
    a_lease_expires,
    renewing_keeps_it,
    taking_it_again_keeps_it,
    a_lost_lease_stays_lost,
    an_expired_lease_cannot_be_renewed_though_nobody_took_it,
    a_lost_lease_releases_nothing,
    holds_do_not_outlive_the_lease,
    leases_of_different_names_have_nothing_to_do_with_each_other,
    names_are_taken_literally,
}

const LONG: Duration = Duration::from_mins(2);
const SHORT: Duration = Duration::from_millis(250);
const NAME: &str = "writer:0";

fn owner(name: &str) -> LeaseOwner {
    LeaseOwner(name.to_owned())
}

async fn try_take(hot: &HotPath, name: &str, who: &str, ttl: Duration) -> Option<Lease> {
    let lease = hot.leases.acquire(name, &owner(who), ttl).await.unwrap();
    if let Some(lease) = &lease {
        let expected = Lease {
            name: name.to_owned(),
            owner: owner(who),
        };
        assert_eq!(*lease, expected);
    }
    lease
}

async fn take(hot: &HotPath, who: &str, ttl: Duration) -> Lease {
    let lease = try_take(hot, NAME, who, ttl).await;
    lease.unwrap_or_else(|| panic!("{who} should get it"))
}

async fn refused(hot: &HotPath, who: &str) {
    assert_eq!(try_take(hot, NAME, who, LONG).await, None);
}

async fn release(hot: &HotPath, lease: &Lease) -> bool {
    hot.leases.release(lease).await.unwrap()
}

async fn renew(hot: &HotPath, lease: &Lease, ttl: Duration) -> bool {
    hot.leases.renew(lease, ttl).await.unwrap()
}

async fn a_free_lease_is_taken_and_kept_from_others(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let other_process = harness.another_process().await;
    let lease = take(hot, "a", LONG).await;
    refused(hot, "b").await;
    refused(&other_process, "b").await;
    assert!(release(hot, &lease).await);
    take(&other_process, "b", LONG).await;
    refused(hot, "a").await;
}

async fn of_many_owners_one_gets_it(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let owners: Vec<String> = (0..20).map(|n| format!("owner-{n}")).collect();
    let tries = owners.iter().map(|who| try_take(hot, NAME, who, LONG));
    let taken = join_all(tries).await.into_iter().flatten().count();
    assert_eq!(taken, 1);
}

async fn its_owner_takes_it_again_and_each_hold_counts(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lease = take(hot, "a", LONG).await;
    assert_eq!(take(hot, "a", LONG).await, lease);
    assert!(release(hot, &lease).await);
    refused(hot, "b").await;
    assert!(renew(hot, &lease, LONG).await);
}

async fn it_is_free_at_zero_and_not_before(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let mut lease = take(hot, "a", LONG).await;
    for _ in 0..2 {
        lease = take(hot, "a", LONG).await;
    }
    for _ in 0..3 {
        refused(hot, "b").await;
        assert!(release(hot, &lease).await);
    }
    assert!(
        !release(hot, &lease).await,
        "there is nothing to release any more"
    );
    take(hot, "b", LONG).await;
}

/// Bug report B25: a worker whose lock expired deletes the lock of the next.
async fn a_lease_is_never_released_by_another(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lease = take(hot, "a", LONG).await;
    let forged = Lease {
        owner: owner("b"),
        ..lease.clone()
    };
    assert!(!release(hot, &forged).await);
    refused(hot, "b").await;
    assert!(release(hot, &lease).await);
}

async fn a_lease_is_never_renewed_by_another(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lease = take(hot, "a", SHORT).await;
    let forged = Lease {
        owner: owner("b"),
        ..lease
    };
    assert!(!renew(hot, &forged, LONG).await);
    harness.elapse(SHORT).await;
    take(hot, "c", LONG).await;
}

async fn a_lease_expires(harness: &dyn HotHarness) {
    let hot = harness.hot();
    take(hot, "a", SHORT).await;
    harness.elapse(SHORT).await;
    take(hot, "b", LONG).await;
}

async fn renewing_keeps_it(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lease = take(hot, "a", 4 * SHORT).await;
    assert!(renew(hot, &lease, LONG).await);
    harness.elapse(5 * SHORT).await;
    refused(hot, "b").await;
    assert!(renew(hot, &lease, LONG).await);
}

async fn taking_it_again_keeps_it(harness: &dyn HotHarness) {
    let hot = harness.hot();
    take(hot, "a", 4 * SHORT).await;
    let lease = take(hot, "a", LONG).await;
    harness.elapse(5 * SHORT).await;
    refused(hot, "b").await;
    assert!(release(hot, &lease).await);
    refused(hot, "b").await;
    assert!(release(hot, &lease).await);
}

async fn a_lost_lease_stays_lost(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lost = take(hot, "a", SHORT).await;
    harness.elapse(SHORT).await;
    let next = take(hot, "b", LONG).await;
    assert!(!renew(hot, &lost, LONG).await);
    assert!(release(hot, &next).await);
    assert!(!renew(hot, &lost, LONG).await, "though it is free");
    take(hot, "c", LONG).await;
}

async fn an_expired_lease_cannot_be_renewed_though_nobody_took_it(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lost = take(hot, "a", SHORT).await;
    harness.elapse(SHORT).await;
    assert!(!renew(hot, &lost, LONG).await);
    take(hot, "b", LONG).await;
}

async fn a_lost_lease_releases_nothing(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let lost = take(hot, "a", SHORT).await;
    harness.elapse(SHORT).await;
    take(hot, "b", LONG).await;
    assert!(!release(hot, &lost).await);
    refused(hot, "a").await;
}

async fn holds_do_not_outlive_the_lease(harness: &dyn HotHarness) {
    let hot = harness.hot();
    for _ in 0..3 {
        take(hot, "a", SHORT).await;
    }
    harness.elapse(SHORT).await;
    let lease = take(hot, "a", LONG).await;
    assert!(release(hot, &lease).await);
    take(hot, "b", LONG).await;
}

async fn leases_of_different_names_have_nothing_to_do_with_each_other(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let first = take(hot, "a", LONG).await;
    let second = try_take(hot, "writer:1", "b", LONG).await.unwrap();
    assert!(release(hot, &first).await);
    assert!(renew(hot, &second, LONG).await);
    assert_eq!(try_take(hot, "writer:1", "a", LONG).await, None);
}

async fn names_are_taken_literally(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let names = ["a", "a ", "A", "*", "a:b", "{a}", "é", ""];
    for name in names {
        let lease = try_take(hot, name, "owner \"*\" {x}", LONG).await;
        assert!(lease.is_some(), "{name:?}");
    }
    for name in names {
        assert_eq!(try_take(hot, name, "other", LONG).await, None, "{name:?}");
    }
}

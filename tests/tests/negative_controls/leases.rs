//! Guards of a lease.

use std::time::Duration;

use seckill_application::ports::LeaseOwner;
use seckill_tests::controls::{Bench, Control, Failure, Findings, gate};

const ONE_HOLDER: Failure = Failure::Rule("a lease has one holder");

/// A worker is paused beyond its lease, another takes it, and the first gives back what it believes
/// to hold; a third asks for it.
async fn a_late_release(bench: Bench) -> Findings {
    let mut findings = Findings::default();
    let leases = bench.stores().await.hot.leases;
    let [first, second, third] = ["a", "b", "c"].map(|name| LeaseOwner(name.to_owned()));
    let long = Duration::from_mins(1);
    let held = leases.acquire("writer:0", &first, long).await.unwrap();
    let held = held.expect("a free lease");
    assert!(leases.renew(&held, Duration::from_millis(1)).await.unwrap());
    let mut taken = None;
    for _ in 0..10_000 {
        taken = leases.acquire("writer:0", &second, long).await.unwrap();
        if taken.is_some() {
            break;
        }
    }
    let taken = taken.expect("a lease that has run out");
    leases.release(&held).await.unwrap();
    let third = leases.acquire("writer:0", &third, long).await.unwrap();
    let seen = format!("{taken:?} and {third:?}");
    findings.check(ONE_HOLDER, third.is_none(), seen);
    let still = leases.renew(&taken, long).await.unwrap();
    findings.check(ONE_HOLDER, still, "the holder has lost it");
    findings
}

/// Takes away the **owner check of a release**. A worker that was paused too long frees the lease of
/// the one who took over, and a third gets it while he works (a rule of the lease; the fence stands
/// behind it).
#[tokio::test]
async fn a_lease_is_given_back_only_by_its_owner() {
    let control = Control::of(gate::LEASE_OWNER);
    let Some(pair) = control.run(a_late_release).await else {
        return;
    };
    pair.assert_guards_against([ONE_HOLDER]);
}

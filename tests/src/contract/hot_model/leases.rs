//! A random life of leases.

use std::collections::HashSet;

use rand::RngExt as _;
use seckill_application::ports::{HotPath, Lease, LeaseOwner};

use super::{SHORT, STEPS, Sides};

const NAMES: [&str; 2] = ["writer:0", "reconciliation"];
const OWNERS: [&str; 3] = ["a", "b", "c"];

/// What came of a question: a lease, `true` or `false`, in words.
async fn ask(hot: &HotPath, question: &Question) -> String {
    let lease = &question.lease;
    let leases = &hot.leases;
    match question.kind {
        Kind::Acquire => {
            let taken = leases.acquire(&lease.name, &lease.owner, question.ttl);
            format!("{:?}", taken.await.unwrap())
        }
        Kind::Renew => leases.renew(lease, question.ttl).await.unwrap().to_string(),
        Kind::Release => leases.release(lease).await.unwrap().to_string(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Acquire,
    Renew,
    Release,
}

#[derive(Debug)]
struct Question {
    kind: Kind,
    lease: Lease,
    ttl: std::time::Duration,
}

/// Lives it, comparing each answer.
pub(super) async fn live(mut sides: Sides<'_>) {
    let mut seen = HashSet::new();
    for step in 0..STEPS {
        let kind = match sides.random.random_range(0..100) {
            0..45 => Kind::Acquire,
            45..65 => Kind::Renew,
            _ => Kind::Release,
        };
        let lease = Lease {
            name: NAMES[sides.random.random_range(0..NAMES.len())].to_owned(),
            owner: LeaseOwner(OWNERS[sides.random.random_range(0..OWNERS.len())].to_owned()),
        };
        let ttl = sides.span();
        let question = Question { kind, lease, ttl };
        let process = sides.random.random_range(0..2);
        let real = ask(&sides.real[process], &question).await;
        let model = ask(&sides.model[process], &question).await;
        let life = sides.seed;
        assert_eq!(real, model, "step {step} of seed {life}: {question:?}");
        if ttl == SHORT {
            sides.short_time_goes_by().await;
        }
        let refused = model == "None" || model == "false";
        seen.insert((kind, refused));
    }
    assert_eq!(seen.len(), 6, "only {seen:?}");
}

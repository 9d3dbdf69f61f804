//! Leases.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{Lease, LeaseOwner, Leases};
use seckill_domain::Timestamp;

use super::store::Shared;

/// A lease that was taken.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    owner: LeaseOwner,
    holds: u32,
    deadline: Timestamp,
}

impl Hold {
    fn alive(&self, now: Timestamp) -> bool {
        now < self.deadline
    }

    fn alive_for(&self, owner: &LeaseOwner, now: Timestamp) -> bool {
        self.alive(now) && self.owner == *owner
    }
}

#[async_trait]
impl Leases for Shared {
    async fn acquire(
        &self,
        name: &str,
        owner: &LeaseOwner,
        ttl: Duration,
    ) -> Result<Option<Lease>, Fault> {
        let call = self.chaos.enter("leases.acquire")?;
        let now = self.clock.now();
        let taken = self.store().change_leases(|leases| {
            let known = leases.get(name).filter(|hold| hold.alive(now));
            let holds = match known {
                Some(hold) if hold.owner != *owner => return (false, false),
                Some(hold) => hold.holds + 1,
                None => 1,
            };
            let hold = Hold {
                owner: owner.clone(),
                holds,
                deadline: now.plus(ttl),
            };
            leases.insert(name.to_owned(), hold);
            (true, true)
        });
        call.answer(taken.then(|| Lease {
            name: name.to_owned(),
            owner: owner.clone(),
        }))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, Fault> {
        let call = self.chaos.enter("leases.renew")?;
        let now = self.clock.now();
        let renewed = self.store().change_leases(|leases| {
            let mine = leases
                .get_mut(&lease.name)
                .filter(|hold| hold.alive_for(&lease.owner, now));
            let renewed = mine.map(|hold| hold.deadline = now.plus(ttl)).is_some();
            (renewed, renewed)
        });
        call.answer(renewed)
    }

    async fn release(&self, lease: &Lease) -> Result<bool, Fault> {
        let call = self.chaos.enter("leases.release")?;
        let now = self.clock.now();
        let released = self.store().change_leases(|leases| {
            let mine = leases
                .get_mut(&lease.name)
                .filter(|hold| hold.alive_for(&lease.owner, now));
            let Some(hold) = mine else {
                return (false, false);
            };
            hold.holds -= 1;
            if hold.holds == 0 {
                leases.remove(&lease.name);
            }
            (true, true)
        });
        call.answer(released)
    }
}

//! Who works on what.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{Lease, LeaseOwner, Leases};

use crate::keys::Address;
use crate::scripts::{LEASE_ACQUIRE, LEASE_RELEASE, LEASE_RENEW, Script};
use crate::store::{Args, Lane, Store, millis, words};

/// Leases in Redis.
pub(crate) struct RedisLeases(pub(crate) Arc<Store>);

impl RedisLeases {
    async fn run(
        &self,
        port: &'static str,
        script: &Script,
        name: &str,
        args: Args<'_>,
        yes: &str,
    ) -> Result<bool, Fault> {
        let address = Address {
            lease: name,
            ..self.0.plain_address()
        };
        let reply = self
            .0
            .run_at(port, Lane::Gate, script, address, args)
            .await?;
        Ok(reply.kind() == yes)
    }
}

#[async_trait]
impl Leases for RedisLeases {
    async fn acquire(
        &self,
        name: &str,
        owner: &LeaseOwner,
        ttl: Duration,
    ) -> Result<Option<Lease>, Fault> {
        let args = |command: &mut Cmd| words(command, &[&owner.0, &millis(ttl)]);
        let held = self
            .run("leases.acquire", &LEASE_ACQUIRE, name, &args, "HELD")
            .await?;
        Ok(held.then(|| Lease {
            name: name.to_owned(),
            owner: owner.clone(),
        }))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, Fault> {
        let args = |command: &mut Cmd| words(command, &[&lease.owner.0, &millis(ttl)]);
        self.run("leases.renew", &LEASE_RENEW, &lease.name, &args, "HELD")
            .await
    }

    async fn release(&self, lease: &Lease) -> Result<bool, Fault> {
        let args = |command: &mut Cmd| words(command, &[&lease.owner.0]);
        self.run(
            "leases.release",
            &LEASE_RELEASE,
            &lease.name,
            &args,
            "RELEASED",
        )
        .await
    }
}

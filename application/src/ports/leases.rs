//! Who works on what.

use std::time::Duration;

use async_trait::async_trait;

use crate::Fault;

/// Names one worker of one process for its whole life; unique among all processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseOwner(pub String);

/// Proof of holding a lease, until it runs out. It only saves work: whoever must not be doubled is
/// fenced by the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub name: String,
    /// By whom.
    pub owner: LeaseOwner,
}

/// Exclusive, expiring, re-entrant rights to work on something.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the lease for `ttl` if it is free or already this owner's. Atomic. An owner who holds
    /// it counts one hold more and gets the full `ttl` again. `None` while another holds it.
    async fn acquire(
        &self,
        name: &str,
        owner: &LeaseOwner,
        ttl: Duration,
    ) -> Result<Option<Lease>, Fault>;

    /// Extends it to `ttl` from now. `false` if it is no longer this owner's; then it stays lost.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, Fault>;

    /// Gives one hold back; the last one frees the lease. Never touches another owner's. `false` if
    /// it was no longer this owner's.
    async fn release(&self, lease: &Lease) -> Result<bool, Fault>;
}

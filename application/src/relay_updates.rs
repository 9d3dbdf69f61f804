//! The gate follows the ledger.

use std::sync::Arc;

use seckill_domain::{GateVersion, VoucherId};

use crate::ports::{
    FollowReply, GateLoader, GateUpdates, HotPath, LedgerPorts, NotLoaded, PurchaseGate,
};
use crate::serve_waitlist::serve_waitlist;
use crate::{Fault, Meters, WantedSales};

/// How far the gate got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    /// The gate has everything that was committed before the call.
    UpToDate,
    /// The gate does not have the voucher, and was asked to load it; a load brings everything.
    NotLoaded,
}

/// Updates of one read, and reads of one call.
const BATCH_MAX: usize = 100;
const ROUNDS_MAX: usize = 1_000;

/// Hands the ledger's updates to the gate, in order. May repeat, crash, or run twice: the gate
/// applies each version once.
pub struct RelayUpdates {
    gate: Arc<dyn PurchaseGate>,
    loader: Arc<dyn GateLoader>,
    updates: Arc<dyn GateUpdates>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
}

impl RelayUpdates {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        wanted: Arc<WantedSales>,
        meters: Arc<Meters>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            loader: hot.loader.clone(),
            updates: ledger.updates.clone(),
            wanted,
            meters,
        }
    }

    /// Relays what a voucher has waiting, right after a commit. A fault is only logged: the sweep
    /// comes by again.
    pub async fn nudge(&self, voucher: VoucherId) {
        if let Err(fault) = self.run(voucher).await {
            tracing::warn!(fault = fault.chain(), %voucher, "the gate follows later");
        }
    }

    /// Has a voucher loaded that the gate should have.
    pub(crate) fn want(&self, voucher: VoucherId) {
        self.wanted.request(voucher);
    }

    /// Relays for every voucher that has something waiting. Returns for how many.
    pub async fn sweep(&self) -> Result<usize, Fault> {
        let waiting = self.updates.waiting(1_000).await?;
        for voucher in &waiting {
            self.nudge(*voucher).await;
        }
        Ok(waiting.len())
    }

    /// Relays what a voucher has waiting.
    pub async fn run(&self, voucher: VoucherId) -> Result<Relayed, Fault> {
        let mut at = GateVersion::default();
        for _ in 0..ROUNDS_MAX {
            let batch = self.updates.after(voucher, at, BATCH_MAX).await?;
            let Some(last) = batch.last().map(|update| update.version) else {
                break;
            };
            let mut promote = false;
            for update in &batch {
                match self.gate.follow(update).await? {
                    FollowReply::Applied { more } => {
                        promote |= more;
                        self.meters.updates_followed.add(1);
                    }
                    FollowReply::Gap { at } => return self.reload(voucher, at).await,
                    FollowReply::AlreadyApplied | FollowReply::NotLoaded(NotLoaded::Retired) => {}
                    FollowReply::NotLoaded(_) => {
                        self.wanted.request(voucher);
                        return Ok(Relayed::NotLoaded);
                    }
                }
            }
            self.updates.forget(voucher, last).await?;
            at = last;
            if promote {
                self.promote(voucher).await?;
            }
        }
        Ok(Relayed::UpToDate)
    }

    /// Relays to a gate that was seen behind a version of the ledger. If nothing waits for it and it
    /// still is, it had the update and went back: the update is forgotten, only a load brings it.
    pub(crate) async fn catch_up(
        &self,
        voucher: VoucherId,
        version: GateVersion,
    ) -> Result<(), Fault> {
        if self.run(voucher).await? == Relayed::NotLoaded {
            return Ok(());
        }
        let facts = self.gate.facts(&[voucher]).await?;
        match facts.into_iter().flatten().next() {
            Some(facts) if facts.pulse.version < version => {
                self.reload(voucher, facts.pulse.version).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The gate is older than what it was told before: Redis went back. Its sale cannot be trusted.
    async fn reload(&self, voucher: VoucherId, at: GateVersion) -> Result<Relayed, Fault> {
        tracing::error!(%voucher, gate_version = %at, "the gate lost updates; loading it again");
        self.loader.unload(voucher).await?;
        self.wanted.request(voucher);
        Ok(Relayed::NotLoaded)
    }

    /// Serves the waitlist, or drains it when the sale is over, until there is nothing to do.
    pub async fn promote(&self, voucher: VoucherId) -> Result<(), Fault> {
        serve_waitlist(&*self.gate, voucher).await
    }
}

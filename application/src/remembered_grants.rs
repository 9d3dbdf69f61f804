//! The grants that this process answered and that the ledger does not have yet.
//!
//! If Redis loses acknowledged writes, these are what is left of them: they are offered again
//! before the gate reopens (promise I4).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seckill_domain::{Claim, Epoch, OrderId, PartitionId, Partitions, VoucherId};

use crate::ports::{
    Clock, GateLoader, HotPath, LOAD_CHUNK_MAX, Ledger, LedgerPorts, Offered, PartitionState,
};
use crate::{Fault, Meters, WantedSales};

/// Most grants remembered; beyond it the oldest protection is the stream alone.
const REMEMBERED_MAX: usize = 1_000_000;
/// A grant younger than this is not asked after: the order writer is about to store it.
const SETTLE_AFTER: Duration = Duration::from_millis(300);

/// Remembers grants until the ledger has them. One per process.
pub struct RememberedGrants {
    loader: Arc<dyn GateLoader>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    wanted: Arc<WantedSales>,
    meters: Arc<Meters>,
    partitions: Partitions,
    grants: Mutex<HashMap<OrderId, Remembered>>,
    epochs: Mutex<HashMap<PartitionId, Epoch>>,
}

struct Remembered {
    claim: Claim,
    since: Duration,
}

impl RememberedGrants {
    /// Remembers nothing yet.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        clock: Arc<dyn Clock>,
        wanted: Arc<WantedSales>,
        meters: Arc<Meters>,
        partitions: Partitions,
    ) -> Self {
        Self {
            loader: hot.loader.clone(),
            ledger: ledger.ledger.clone(),
            clock,
            wanted,
            meters,
            partitions,
            grants: Mutex::default(),
            epochs: Mutex::default(),
        }
    }

    /// Remembers a grant that is about to be answered.
    pub fn remember(&self, claim: Claim) {
        let since = self.clock.monotonic();
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        if grants.len() < REMEMBERED_MAX {
            grants.insert(claim.order, Remembered { claim, since });
        }
    }

    /// How many grants the ledger is not known to have.
    pub fn len(&self) -> usize {
        self.grants
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Whether every grant is known to be in the ledger.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what the ledger has by now. Bounded: at most 20 reads of 1,000.
    pub async fn settle(&self) -> Result<(), Fault> {
        for chunk in self.due().chunks(LOAD_CHUNK_MAX).take(20) {
            let stored = self.ledger.stages(chunk).await?;
            let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
            for (order, _) in stored {
                grants.remove(&order);
            }
        }
        Ok(())
    }

    fn due(&self) -> Vec<OrderId> {
        let now = self.clock.monotonic();
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let old = |grant: &Remembered| now.saturating_sub(grant.since) >= SETTLE_AFTER;
        grants
            .iter()
            .filter(|(_, grant)| old(grant))
            .map(|(order, _)| *order)
            .collect()
    }

    /// Offers every remembered grant of the partitions that began a new epoch since the last call.
    pub async fn offer(&self) -> Result<(), Fault> {
        for partition in self.partitions.all() {
            let PartitionState::Open { epoch, .. } = self.loader.partition(partition).await? else {
                continue;
            };
            let seen = self.seen(partition);
            if seen == Some(epoch) {
                continue;
            }
            if seen.is_some() && !self.offer_partition(partition).await? {
                continue;
            }
            let mut epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
            epochs.insert(partition, epoch);
        }
        Ok(())
    }

    fn seen(&self, partition: PartitionId) -> Option<Epoch> {
        let epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        epochs.get(&partition).copied()
    }

    /// Whether every grant of the partition was taken.
    async fn offer_partition(&self, partition: PartitionId) -> Result<bool, Fault> {
        let mut all_taken = true;
        for (voucher, claims) in self.claims_of(partition) {
            for chunk in claims.chunks(LOAD_CHUNK_MAX) {
                match self.loader.offer(voucher, chunk).await? {
                    Offered::Taken => self.meters.grants_offered.add(chunk.len()),
                    Offered::PartitionMissing => all_taken = false,
                    Offered::NotLoaded => {
                        self.wanted.request(voucher);
                        all_taken = false;
                    }
                }
            }
        }
        Ok(all_taken)
    }

    fn claims_of(&self, partition: PartitionId) -> HashMap<VoucherId, Vec<Claim>> {
        let grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut claims: HashMap<VoucherId, Vec<Claim>> = HashMap::new();
        for grant in grants.values() {
            let claim = &grant.claim;
            if self.partitions.of(claim.voucher) == partition {
                claims.entry(claim.voucher).or_default().push(claim.clone());
            }
        }
        claims
    }
}

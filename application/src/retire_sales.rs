//! Closed sales leave the gate.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use seckill_domain::{Partitions, VoucherId};

use crate::ports::{AdmissionLedger, HotPath, Ledger, LedgerPorts, PurchaseGate, VoucherFilter};
use crate::{Fault, RelayUpdates};

/// Most vouchers of one sweep.
const SWEEP_MAX: usize = 1_000;

/// Retires closed vouchers with nothing unpaid, waiting, parked or in flight: their keys leave the
/// gate, and repeats are answered from the ledger.
pub struct RetireSales {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    admissions: Arc<dyn AdmissionLedger>,
    relay: Arc<RelayUpdates>,
    partitions: Partitions,
    /// What the last sweep found settled.
    settled: Mutex<HashSet<VoucherId>>,
}

impl RetireSales {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        relay: Arc<RelayUpdates>,
        partitions: Partitions,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            admissions: ledger.admissions.clone(),
            relay,
            partitions,
            settled: Mutex::default(),
        }
    }

    /// One sweep; also drains the waitlists of sales that are over. Returns how many were retired:
    /// those that the sweep before had found settled, too.
    pub async fn run(&self) -> Result<usize, Fault> {
        let mut retired = 0;
        let closing = self
            .ledger
            .vouchers(VoucherFilter::Closing, None, SWEEP_MAX)
            .await?;
        for voucher in closing.items {
            self.relay.promote(voucher.id).await?;
            let settled = self.is_settled(voucher.id).await?;
            if self.still_settled(voucher.id, settled) && self.retire(voucher.id).await? {
                retired += 1;
            }
        }
        Ok(retired)
    }

    /// Notes whether a sale is settled; whether it was in the sweep before, too. Sweeps are seconds
    /// apart, so that a failover which loses the retirement does not lose the closing with it:
    /// nobody looks again after a sale that the ledger calls retired.
    fn still_settled(&self, voucher: VoucherId, settled: bool) -> bool {
        let mut known = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.remove(&voucher);
        if settled && !before {
            known.insert(voucher);
        }
        settled && before
    }

    /// The order of the looks matters. Nothing unsettled at first: the gate has followed the closing
    /// and decides nothing more. What it had decided before is in the ledger by the second look, and
    /// that is settled too.
    async fn is_settled(&self, voucher: VoucherId) -> Result<bool, Fault> {
        if self.ledger.is_unsettled(voucher).await? {
            return Ok(false);
        }
        let partition = self.partitions.of(voucher);
        let seen = self.admissions.head(partition).await?;
        let gate = self.gate.tally(voucher, seen.entry).await?;
        let head = self.admissions.head(partition).await?;
        let caught_up =
            gate.is_none_or(|gate| gate.epoch == head.epoch && gate.sequence <= head.applied);
        Ok(caught_up && !self.ledger.is_unsettled(voucher).await?)
    }

    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault> {
        if !self.gate.retire(voucher).await? {
            let facts = self.gate.facts(&[voucher]).await?;
            if facts.into_iter().flatten().next().is_none() {
                // Lost; what the gate had promised may come out when it is loaded.
                self.relay.want(voucher);
            }
            return Ok(false);
        }
        let mut unit = self.ledger.begin().await?;
        unit.mark_retired(voucher).await?;
        unit.commit().await?;
        Ok(true)
    }
}

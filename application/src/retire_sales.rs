//! Closed sales leave the gate.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use seckill_domain::{Partitions, VoucherId};

use crate::ports::{
    AdmissionLedger, GateTally, HotPath, Ledger, LedgerPorts, PurchaseGate, VoucherFilter,
};
use crate::{Fault, RecoverPartition, RelayUpdates};

/// Most vouchers of one sweep.
const SWEEP_MAX: usize = 1_000;
/// Faults after which a sweep is given up: it is not the vouchers.
const FAULTS_MAX: usize = 3;

/// Retires closed vouchers with nothing unpaid, waiting, parked, in flight or in dispute: their keys
/// leave the gate, and repeats are answered from the ledger.
pub struct RetireSales {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    admissions: Arc<dyn AdmissionLedger>,
    relay: Arc<RelayUpdates>,
    recover: Arc<RecoverPartition>,
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
        recover: Arc<RecoverPartition>,
        partitions: Partitions,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            admissions: ledger.admissions.clone(),
            relay,
            recover,
            partitions,
            settled: Mutex::default(),
        }
    }

    /// One sweep; also drains the waitlists of sales that are over. Returns how many were retired:
    /// those that the sweep before had found settled, too. One that cannot be looked at does not keep
    /// the others; its fault is answered in the end.
    pub async fn run(&self) -> Result<usize, Fault> {
        let mut retired = 0;
        let mut faults = Vec::new();
        let closing = self
            .ledger
            .vouchers(VoucherFilter::Closing, None, SWEEP_MAX)
            .await?;
        for voucher in closing.items {
            match self.look_at(voucher.id).await {
                Ok(left) => retired += usize::from(left),
                Err(fault) => faults.push(fault),
            }
            if faults.len() == FAULTS_MAX {
                break;
            }
        }
        faults.pop().map_or(Ok(retired), Err)
    }

    /// Whether the sale has left the gate now.
    async fn look_at(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.relay.promote(voucher).await?;
        let settled = self.is_settled(voucher).await?;
        Ok(self.still_settled(voucher, settled) && self.retire(voucher).await?)
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

    /// What the gate has decided and no stream tells of any more would keep every sale of its
    /// partition for ever, if nobody else comes to decide something: the partition begins anew, and
    /// what the gate still holds is appended again.
    ///
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
        if !caught_up {
            self.recover.restart_if_gone(partition, head.epoch).await?;
        }
        Ok(caught_up
            && self.agree(voucher, gate).await?
            && !self.ledger.is_unsettled(voucher).await?)
    }

    /// Whether both have the same units left. A message that is gone leaves a holder whom the ledger
    /// does not know: that is for reconciliation to mend, from what is at the gate.
    async fn agree(&self, voucher: VoucherId, gate: Option<GateTally>) -> Result<bool, Fault> {
        let Some(gate) = gate else {
            return Ok(true);
        };
        let ledger = self.ledger.tally(voucher, gate.version).await?;
        Ok(ledger.is_some_and(|ledger| ledger.stock == gate.free))
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

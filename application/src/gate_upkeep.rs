//! Keeps the gate complete: every sale loaded, every waitlist served, every ended sale closed.

use std::sync::Arc;

use seckill_domain::VoucherId;

use crate::ports::{HotPath, Ledger, LedgerPorts, PurchaseGate, VoucherFilter};
use crate::{Fault, RelayUpdates, SteerCommand, SteerSale, WantedSales};

/// Most vouchers looked at in one sweep.
const SWEEP_MAX: usize = 1_000;
/// Most vouchers of one question to the gate.
const FACTS_MAX: usize = 100;

/// Sweeps the vouchers on sale. Whatever it finds missing was lost by somebody else; it is the
/// second look that lets the first one fail.
pub struct GateUpkeep {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    steer: Arc<SteerSale>,
    relay: Arc<RelayUpdates>,
    wanted: Arc<WantedSales>,
}

impl GateUpkeep {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        steer: Arc<SteerSale>,
        relay: Arc<RelayUpdates>,
        wanted: Arc<WantedSales>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            steer,
            relay,
            wanted,
        }
    }

    /// One sweep.
    pub async fn run(&self) -> Result<(), Fault> {
        self.close_overdue().await?;
        let on_sale = self
            .ledger
            .vouchers(VoucherFilter::OnSale, None, SWEEP_MAX)
            .await?;
        let ids: Vec<VoucherId> = on_sale.items.iter().map(|voucher| voucher.id).collect();
        for chunk in ids.chunks(FACTS_MAX) {
            self.look_at(chunk).await?;
        }
        Ok(())
    }

    async fn look_at(&self, vouchers: &[VoucherId]) -> Result<(), Fault> {
        let facts = self.gate.facts(vouchers).await?;
        for (voucher, facts) in vouchers.iter().zip(facts) {
            match facts {
                None => self.wanted.request(*voucher),
                // Also without free units: the head may never be served and must make way.
                Some(facts) if facts.pulse.waiting > 0 => {
                    self.relay.promote(*voucher).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Sales whose window has ended are closed for good, and their waitlists drained and told.
    async fn close_overdue(&self) -> Result<(), Fault> {
        let overdue = self
            .ledger
            .vouchers(VoucherFilter::Overdue, None, SWEEP_MAX)
            .await?;
        for voucher in overdue.items {
            self.steer.run(voucher.id, SteerCommand::Close).await?;
            self.relay.promote(voucher.id).await?;
        }
        Ok(())
    }
}

//! Keeps the gate complete: every sale loaded, every waitlist served, every ended sale closed.

use std::sync::Arc;

use seckill_domain::{Voucher, VoucherId};

use crate::ports::{HotPath, Ledger, LedgerPorts, PurchaseGate, SaleFacts, VoucherFilter};
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
        let closing = self
            .ledger
            .vouchers(VoucherFilter::Closing, None, SWEEP_MAX)
            .await?;
        for chunk in on_sale.items.chunks(FACTS_MAX) {
            self.look_at(chunk).await?;
        }
        for chunk in closing.items.chunks(FACTS_MAX) {
            // Whoever waits for a sale that is over has to be told, and only the gate tells.
            let facts = self.follow(chunk).await?;
            let missing = chunk.iter().zip(facts).filter(|(_, facts)| facts.is_none());
            missing.for_each(|(voucher, _)| self.wanted.request(voucher.id));
        }
        Ok(())
    }

    async fn look_at(&self, vouchers: &[Voucher]) -> Result<(), Fault> {
        let facts = self.follow(vouchers).await?;
        for (voucher, facts) in vouchers.iter().zip(facts) {
            match facts {
                None => self.wanted.request(voucher.id),
                // Also without free units: the head may never be served and must make way.
                Some(facts) if facts.pulse.waiting > 0 => {
                    self.relay.promote(voucher.id).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// What the gate has of these vouchers, after it was told what it is behind in.
    async fn follow(&self, vouchers: &[Voucher]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        let ids: Vec<VoucherId> = vouchers.iter().map(|voucher| voucher.id).collect();
        let facts = self.gate.facts(&ids).await?;
        for (voucher, facts) in vouchers.iter().zip(&facts) {
            if facts.is_some_and(|facts| facts.pulse.version < voucher.version) {
                self.relay.catch_up(voucher.id, voucher.version).await?;
            }
        }
        Ok(facts)
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

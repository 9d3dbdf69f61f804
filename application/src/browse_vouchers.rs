//! What is on sale.

use std::sync::Arc;

use seckill_domain::{SaleStatus, Voucher, VoucherId};

use crate::Fault;
use crate::ports::{HotPath, Ledger, LedgerPorts, Page, PurchaseGate, SaleFacts, VoucherFilter};

/// A voucher as buyers and administrators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherView {
    /// The voucher.
    pub voucher: Voucher,
    /// Units nobody has: at the gate, or in the ledger while the gate does not have it.
    pub available_units: u32,
    /// How many wait.
    pub waitlist_length: u32,
}

/// Reads vouchers.
pub struct BrowseVouchers {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
}

impl BrowseVouchers {
    /// Over these ports.
    pub fn new(hot: &HotPath, ledger: &LedgerPorts) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
        }
    }

    /// A voucher that buyers may see; drafts they may not.
    pub async fn find(&self, id: VoucherId) -> Result<Option<VoucherView>, Fault> {
        let found = self.ledger.voucher(id).await?;
        match found.filter(|voucher| voucher.status != SaleStatus::Draft) {
            Some(voucher) => self.view(voucher).await.map(Some),
            None => Ok(None),
        }
    }

    /// Any voucher, for an administrator.
    pub async fn find_any(&self, id: VoucherId) -> Result<Option<VoucherView>, Fault> {
        match self.ledger.voucher(id).await? {
            Some(voucher) => self.view(voucher).await.map(Some),
            None => Ok(None),
        }
    }

    /// A voucher that was just read or changed.
    pub async fn view(&self, voucher: Voucher) -> Result<VoucherView, Fault> {
        let facts = self.facts(&[voucher.id]).await.into_iter().next().flatten();
        Ok(Self::merge(voucher, facts))
    }

    /// Vouchers that buyers may see, newest first; `limit` 1 to 100.
    pub async fn list(
        &self,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<VoucherView>, Fault> {
        let page = self
            .ledger
            .vouchers(VoucherFilter::Public, before, limit)
            .await?;
        let ids: Vec<VoucherId> = page.items.iter().map(|voucher| voucher.id).collect();
        let facts = self.facts(&ids).await;
        let items = page
            .items
            .into_iter()
            .zip(facts)
            .map(|(v, f)| Self::merge(v, f))
            .collect();
        Ok(Page {
            items,
            next: page.next,
        })
    }

    /// The gate's view, or nothing while it is away: the ledger's stock is shown then.
    async fn facts(&self, ids: &[VoucherId]) -> Vec<Option<SaleFacts>> {
        match self.gate.facts(ids).await {
            Ok(facts) => facts,
            Err(fault) => {
                tracing::warn!(fault = fault.chain(), "showing the ledger's stock");
                vec![None; ids.len()]
            }
        }
    }

    fn merge(voucher: Voucher, facts: Option<SaleFacts>) -> VoucherView {
        VoucherView {
            available_units: facts.map_or(voucher.stock_units, |facts| facts.pulse.free),
            waitlist_length: facts.map_or(0, |facts| facts.pulse.waiting),
            voucher,
        }
    }
}

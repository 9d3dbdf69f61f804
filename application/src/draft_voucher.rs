//! An administrator prepares a voucher.

use std::sync::Arc;

use seckill_domain::{Voucher, VoucherRefusal};

use crate::Fault;
use crate::ports::{Ledger, LedgerPorts, NewVoucher};

/// Creates drafts.
pub struct DraftVoucher {
    ledger: Arc<dyn Ledger>,
}

impl DraftVoucher {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts) -> Self {
        Self {
            ledger: ledger.ledger.clone(),
        }
    }

    /// Creates a draft, or says every setting that does not fit. Not repeatable: each call creates
    /// one.
    pub async fn run(&self, new: &NewVoucher) -> Result<Result<Voucher, VoucherRefusal>, Fault> {
        if let Err(refusal) = new.terms.check(new.total_units) {
            return Ok(Err(refusal));
        }
        let mut unit = self.ledger.begin().await?;
        let voucher = unit.insert_voucher(new).await?;
        unit.commit().await?;
        Ok(Ok(voucher))
    }
}

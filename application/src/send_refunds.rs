//! Refund records reach the payment provider.

use std::sync::Arc;

use crate::Fault;
use crate::ports::{LedgerPorts, MoneyMovements, Payments};

/// Most refunds of one round.
const BATCH_MAX: usize = 100;

/// Tells the provider of refunds, oldest first. May repeat: the provider knows a refund by its
/// number.
pub struct SendRefunds {
    money: Arc<dyn MoneyMovements>,
    payments: Arc<dyn Payments>,
}

impl SendRefunds {
    /// Over these ports.
    pub fn new(ledger: &LedgerPorts, payments: Arc<dyn Payments>) -> Self {
        Self {
            money: ledger.money.clone(),
            payments,
        }
    }

    /// One round. Returns how many were sent. A refund that fails does not hold up the others.
    pub async fn run(&self) -> Result<usize, Fault> {
        let mut sent = 0;
        for refund in self.money.unsent(BATCH_MAX).await? {
            match self.payments.refund(&refund).await {
                Ok(()) => {
                    self.money.sent(refund.id).await?;
                    sent += 1;
                }
                Err(fault) => {
                    tracing::warn!(
                        fault = fault.chain(),
                        refund = refund.id,
                        "refund comes later"
                    );
                }
            }
        }
        Ok(sent)
    }
}

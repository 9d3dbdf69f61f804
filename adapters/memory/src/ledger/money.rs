//! Payments that were notified, and refunds.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{MoneyMovements, Page, PaymentRecord};
use seckill_domain::{Money as Amount, OrderId, PaymentId, Refund, RefundReason, Timestamp};

use super::MemoryLedger;
use super::reads::page;
use crate::chaos::at_most;

const REFUNDS_MAX: usize = 100;

/// Payments and refunds, each once per provider's id.
#[derive(Debug, Default)]
pub(super) struct Money {
    pub(super) payments: HashMap<PaymentId, PaymentRecord>,
    refunds: BTreeMap<u64, Refund>,
    unsent: BTreeSet<u64>,
    refunded: HashMap<PaymentId, u64>,
    last: u64,
}

/// A refund that has no number yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewRefund {
    pub(super) order: OrderId,
    pub(super) amount: Amount,
    pub(super) reason: RefundReason,
    pub(super) at: Timestamp,
}

impl Money {
    pub(super) fn has_refund(&self, payment: &PaymentId) -> bool {
        self.refunded.contains_key(payment)
    }

    pub(super) fn add_refund(&mut self, payment: PaymentId, refund: NewRefund) {
        self.last += 1;
        let id = self.last;
        self.unsent.insert(id);
        self.refunded.insert(payment.clone(), id);
        let row = Refund {
            id,
            order: refund.order,
            payment,
            amount: refund.amount,
            reason: refund.reason,
            sent: false,
            created_at: refund.at,
        };
        self.refunds.insert(id, row);
    }
}

#[async_trait]
impl MoneyMovements for MemoryLedger {
    async fn refunds(&self, before: Option<u64>, limit: usize) -> Result<Page<Refund>, Fault> {
        const REFUNDS: &str = "money_movements.refunds";
        at_most(REFUNDS, limit, REFUNDS_MAX)?;
        self.read(REFUNDS, |book, _| {
            let found = book.money.refunds.range(..before.unwrap_or(u64::MAX)).rev();
            page(found.map(|(_, refund)| refund.clone()), limit, |refund| {
                refund.id
            })
        })
    }

    async fn unsent(&self, max: usize) -> Result<Vec<Refund>, Fault> {
        const UNSENT: &str = "money_movements.unsent";
        at_most(UNSENT, max, REFUNDS_MAX)?;
        self.read(UNSENT, |book, _| {
            let unsent = book.money.unsent.iter().take(max);
            let refunds = unsent.filter_map(|id| book.money.refunds.get(id));
            refunds.cloned().collect()
        })
    }

    async fn sent(&self, refund: u64) -> Result<(), Fault> {
        self.write("money_movements.sent", |book, _| {
            book.money.unsent.remove(&refund);
            if let Some(row) = book.money.refunds.get_mut(&refund) {
                row.sent = true;
            }
        })
    }
}

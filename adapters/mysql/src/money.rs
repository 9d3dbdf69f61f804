//! Payments that were notified, and refunds.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{MoneyMovements, Page};
use seckill_domain::Refund;

use crate::store::Store;

#[async_trait]
impl MoneyMovements for Store {
    async fn refunds(&self, _: Option<u64>, _: usize) -> Result<Page<Refund>, Fault> {
        Err(Fault::broken("money.refunds", "not there yet"))
    }

    async fn unsent(&self, _: usize) -> Result<Vec<Refund>, Fault> {
        Err(Fault::broken("money.unsent", "not there yet"))
    }

    async fn sent(&self, _: u64) -> Result<(), Fault> {
        Err(Fault::broken("money.sent", "not there yet"))
    }
}

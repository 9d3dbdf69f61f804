//! The ledger's side of reconciliation.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{DifferenceKind, LedgerOrder, Page, Reconciliations, Report};
use seckill_domain::{Claim, OrderId, OrderStatus, VoucherId};

use crate::store::Store;

#[async_trait]
impl Reconciliations for Store {
    async fn live_orders(
        &self,
        _: VoucherId,
        _: OrderId,
        _: usize,
    ) -> Result<Vec<LedgerOrder>, Fault> {
        Err(Fault::broken("r.live_orders", "not there yet"))
    }

    async fn orders(&self, _: &[OrderId]) -> Result<Vec<LedgerOrder>, Fault> {
        Err(Fault::broken("r.orders", "not there yet"))
    }

    async fn being_released(&self, _: VoucherId, _: &[OrderId]) -> Result<Vec<OrderId>, Fault> {
        Err(Fault::broken("r.being_released", "not there yet"))
    }

    async fn repair(
        &self,
        _: DifferenceKind,
        _: &Claim,
        _: Option<OrderStatus>,
    ) -> Result<bool, Fault> {
        Err(Fault::broken("r.repair", "not there yet"))
    }

    async fn store(&self, _: &Report) -> Result<u64, Fault> {
        Err(Fault::broken("r.store", "not there yet"))
    }

    async fn reports(&self, _: Option<u64>, _: usize) -> Result<Page<Report>, Fault> {
        Err(Fault::broken("r.reports", "not there yet"))
    }
}

//! Bugs of what reconciliation is told: the use case stays as it is.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    Ledger, LedgerTally, Page, ParkedOrder, PlaceReply, PurchaseGate, SaleFacts, SaleSnapshot,
    UnitOfWork, VoucherFilter, WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, GateUpdate, GateVersion, IdempotencyKey, Order, OrderId,
    OrderStatus, Voucher, VoucherId,
};

use super::hand_on;

/// Counts what the gate has now, and nothing of what it has decided and the ledger does not have.
pub(super) struct LiveGate {
    pub(super) inner: Arc<dyn PurchaseGate>,
}

hand_on!(PurchaseGate for LiveGate {
    admit(voucher: VoucherId, attempts: &[Attempt]) -> Admitted;
    follow(update: &GateUpdate) -> FollowReply;
    promote(voucher: VoucherId) -> bool;
    leave(voucher: VoucherId, buyer: BuyerId) -> LeaveReply;
    withdraw(voucher: VoucherId, units: u32, adjustment: AdjustmentId) -> WithdrawReply;
    place(voucher: VoucherId, buyer: BuyerId) -> PlaceReply;
    find_order(order: OrderId) -> Option<GateOrder>;
    has_decided(order: OrderId) -> bool;
    facts(vouchers: &[VoucherId]) -> Vec<Option<SaleFacts>>;
    claimants(voucher: VoucherId, buyers: &[BuyerId]) -> Option<Vec<Claimant>>;
    holders(voucher: VoucherId, cursor: u64) -> Option<HoldersPage>;
    waiters(voucher: VoucherId, cursor: u64) -> Option<WaitersPage>;
    retire(voucher: VoucherId) -> bool;
    ping() -> ();
} but {
    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault> {
        let tally = self.inner.tally(voucher, after).await?;
        Ok(tally.map(|tally| GateTally { units_after: 0, ..tally }))
    }
});

/// Counts what the ledger has now, and nothing of what it has returned and the gate has not heard of.
pub(super) struct LiveLedger {
    pub(super) inner: Arc<dyn Ledger>,
}

hand_on!(Ledger for LiveLedger {
    begin() -> Box<dyn UnitOfWork>;
    voucher(id: VoucherId) -> Option<Voucher>;
    vouchers(filter: VoucherFilter, before: Option<VoucherId>, limit: usize) -> Page<Voucher>;
    order(id: OrderId) -> Option<Order>;
    parked_order(id: OrderId) -> Option<ParkedOrder>;
    stages(ids: &[OrderId]) -> Vec<(OrderId, OrderStatus)>;
    orders_of(buyer: BuyerId, before: Option<OrderId>, limit: usize) -> Page<Order>;
    orders_on(voucher: VoucherId, buyer: BuyerId, key: Option<&IdempotencyKey>) -> Vec<Order>;
    sale_snapshot(voucher: VoucherId) -> Option<SaleSnapshot>;
    waiting_position(order: OrderId) -> Option<u32>;
    is_unsettled(voucher: VoucherId) -> bool;
    ping() -> ();
} but {
    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault> {
        let tally = self.inner.tally(voucher, gate_version).await?;
        Ok(tally.map(|tally| LedgerTally { units_returned_after: 0, ..tally }))
    }
});

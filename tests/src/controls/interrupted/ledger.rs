//! The ports of the database.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, DifferenceKind, EventOutbox, GateUpdates,
    LastRuns, LeaseOwner, Ledger, LedgerOrder, LedgerTally, MoneyMovements, Page, ParkedMessage,
    ParkedMessages, ParkedOrder, ParkedReply, PartitionHead, Reconciliations, Report, SaleSnapshot,
    Told, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    BuyerId, Claim, Epoch, Event, EventId, GateUpdate, GateVersion, IdempotencyKey, Order, OrderId,
    OrderStatus, PartitionId, Refund, Timestamp, Voucher, VoucherId,
};

use super::unit::InterruptedUnit;
use super::{Interrupted, counted};

#[async_trait]
impl Ledger for Interrupted<dyn Ledger> {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let unit = self.fuse.call("ledger.begin", self.inner.begin()).await?;
        Ok(Box::new(InterruptedUnit::new(unit, self.fuse.clone())))
    }

    async fn voucher(&self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        let call = self.inner.voucher(id);
        self.fuse.call("ledger.voucher", call).await
    }

    async fn vouchers(
        &self,
        filter: VoucherFilter,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<Voucher>, Fault> {
        let call = self.inner.vouchers(filter, before, limit);
        self.fuse.call("ledger.vouchers", call).await
    }

    async fn order(&self, id: OrderId) -> Result<Option<Order>, Fault> {
        self.fuse.call("ledger.order", self.inner.order(id)).await
    }

    async fn parked_order(&self, id: OrderId) -> Result<Option<ParkedOrder>, Fault> {
        let call = self.inner.parked_order(id);
        self.fuse.call("ledger.parked_order", call).await
    }

    async fn stages(&self, ids: &[OrderId]) -> Result<Vec<(OrderId, OrderStatus)>, Fault> {
        let call = self.inner.stages(ids);
        self.fuse.call("ledger.stages", call).await
    }

    async fn orders_of(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<Order>, Fault> {
        let call = self.inner.orders_of(buyer, before, limit);
        self.fuse.call("ledger.orders_of", call).await
    }

    async fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Order>, Fault> {
        let call = self.inner.orders_on(voucher, buyer, key);
        self.fuse.call("ledger.orders_on", call).await
    }

    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
        let call = self.inner.sale_snapshot(voucher);
        self.fuse.call("ledger.sale_snapshot", call).await
    }

    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault> {
        let call = self.inner.tally(voucher, gate_version);
        self.fuse.call("ledger.tally", call).await
    }

    async fn waiting_position(&self, order: OrderId) -> Result<Option<u32>, Fault> {
        let call = self.inner.waiting_position(order);
        self.fuse.call("ledger.waiting_position", call).await
    }

    async fn is_unsettled(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let call = self.inner.is_unsettled(voucher);
        self.fuse.call("ledger.is_unsettled", call).await
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.fuse.call("ledger.ping", self.inner.ping()).await
    }
}

counted!(AdmissionLedger as "admission_ledger" {
    head(partition: PartitionId) -> PartitionHead;
    take_over(partition: PartitionId) -> PartitionHead;
    next_epoch(partition: PartitionId, seen: Epoch) -> PartitionHead;
    apply(batch: &AdmissionBatch) -> Applied;
    has_applied(partition: PartitionId, items: &[BatchItem]) -> bool;
    settle_partitions(count: u16) -> u16;
});

counted!(GateUpdates as "gate_updates" {
    after(voucher: VoucherId, after: GateVersion, max: usize) -> Vec<GateUpdate>;
    waiting(max: usize) -> Vec<VoucherId>;
    forget(voucher: VoucherId, up_to: GateVersion) -> ();
});

counted!(EventOutbox as "event_outbox" {
    claim(owner: &LeaseOwner, max: usize, hold: Duration) -> Vec<Event>;
    published(ids: &[EventId]) -> ();
    unpublished() -> u64;
    of_order(order: OrderId, after: EventId, max: usize) -> Vec<Event>;
    prune(age: Duration) -> usize;
});

counted!(ParkedMessages as "parked_messages" {
    list(waiting: bool, before: Option<u64>, limit: usize) -> Page<ParkedMessage>;
    replay(id: u64) -> ParkedReply;
    discard(id: u64, reason: &str) -> ParkedReply;
});

counted!(MoneyMovements as "money_movements" {
    refunds(before: Option<u64>, limit: usize) -> Page<Refund>;
    unsent(max: usize) -> Vec<Refund>;
    sent(refund: u64) -> ();
});

counted!(Reconciliations as "reconciliations" {
    open_orders(voucher: VoucherId, after: OrderId, max: usize) -> Vec<LedgerOrder>;
    orders(ids: &[OrderId]) -> Vec<LedgerOrder>;
    being_released(voucher: VoucherId, ids: &[OrderId]) -> Vec<OrderId>;
    repair(kind: DifferenceKind, claim: &Claim, seen: Option<OrderStatus>) -> bool;
    told_before(voucher: VoucherId) -> Vec<Told>;
    note_load(voucher: VoucherId) -> bool;
    reloads(vouchers: &[VoucherId]) -> Vec<(VoucherId, u32)>;
    store(report: &Report) -> u64;
    last_runs() -> LastRuns;
    forget(before: Timestamp, max: usize) -> usize;
    reports(before: Option<u64>, limit: usize) -> Page<Report>;
});

//! Ports that take their time, so that others act between any two looks.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Admitted, Claimant, Clock, DifferenceKind, EntryId, FollowReply, GateOrder, GateTally,
    HoldersPage, LastRuns, LeaveReply, LedgerOrder, Page, PlaceReply, PurchaseGate,
    Reconciliations, Report, SaleFacts, Told, WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, GateUpdate, OrderId, OrderStatus, Timestamp, VoucherId,
};

/// Numbers that look like chance and are the same in every run.
pub(crate) struct Dice(Mutex<Cell<u64>>);

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Mutex::new(Cell::new(seed)))
    }

    /// A number below `sides`.
    pub(crate) fn roll(&self, sides: u64) -> u64 {
        let state = self.0.lock().unwrap();
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut mixed = state.get();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Up to so many milliseconds.
    pub(crate) fn ms(&self, below: u64) -> Duration {
        Duration::from_millis(self.roll(below))
    }
}

/// A port whose calls begin and end late.
pub(crate) struct Slow<P: ?Sized> {
    pub(crate) inner: Arc<P>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dice: Arc<Dice>,
}

impl<P: ?Sized> Slow<P> {
    async fn late<T>(&self, call: impl Future<Output = T>) -> T {
        self.clock.sleep(self.dice.ms(12)).await;
        let answer = call.await;
        self.clock.sleep(self.dice.ms(12)).await;
        answer
    }
}

#[async_trait]
impl PurchaseGate for Slow<dyn PurchaseGate> {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        self.late(self.inner.admit(voucher, attempts)).await
    }

    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        self.late(self.inner.follow(update)).await
    }

    async fn promote(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.late(self.inner.promote(voucher)).await
    }

    async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeaveReply, Fault> {
        self.late(self.inner.leave(voucher, buyer)).await
    }

    async fn withdraw(
        &self,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        self.late(self.inner.withdraw(voucher, units, adjustment))
            .await
    }

    async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Result<PlaceReply, Fault> {
        self.late(self.inner.place(voucher, buyer)).await
    }

    async fn has_decided(&self, order: OrderId) -> Result<bool, Fault> {
        self.late(self.inner.has_decided(order)).await
    }

    async fn find_order(&self, order: OrderId) -> Result<Option<GateOrder>, Fault> {
        self.late(self.inner.find_order(order)).await
    }

    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        self.late(self.inner.facts(vouchers)).await
    }

    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault> {
        self.late(self.inner.tally(voucher, after)).await
    }

    async fn claimants(
        &self,
        voucher: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault> {
        self.late(self.inner.claimants(voucher, buyers)).await
    }

    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        self.late(self.inner.holders(voucher, cursor)).await
    }

    async fn waiters(&self, voucher: VoucherId, cursor: u64) -> Result<Option<WaitersPage>, Fault> {
        self.late(self.inner.waiters(voucher, cursor)).await
    }

    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.late(self.inner.retire(voucher)).await
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.late(self.inner.ping()).await
    }
}

#[async_trait]
impl Reconciliations for Slow<dyn Reconciliations> {
    async fn open_orders(
        &self,
        voucher: VoucherId,
        after: OrderId,
        max: usize,
    ) -> Result<Vec<LedgerOrder>, Fault> {
        self.late(self.inner.open_orders(voucher, after, max)).await
    }

    async fn orders(&self, ids: &[OrderId]) -> Result<Vec<LedgerOrder>, Fault> {
        self.late(self.inner.orders(ids)).await
    }

    async fn being_released(
        &self,
        voucher: VoucherId,
        ids: &[OrderId],
    ) -> Result<Vec<OrderId>, Fault> {
        self.late(self.inner.being_released(voucher, ids)).await
    }

    async fn repair(
        &self,
        kind: DifferenceKind,
        claim: &Claim,
        seen: Option<OrderStatus>,
    ) -> Result<bool, Fault> {
        self.late(self.inner.repair(kind, claim, seen)).await
    }

    async fn told_before(&self, voucher: VoucherId) -> Result<Vec<Told>, Fault> {
        self.late(self.inner.told_before(voucher)).await
    }

    async fn note_load(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.inner.note_load(voucher).await
    }

    async fn reloads(&self, vouchers: &[VoucherId]) -> Result<Vec<(VoucherId, u32)>, Fault> {
        self.inner.reloads(vouchers).await
    }

    async fn last_runs(&self) -> Result<LastRuns, Fault> {
        self.inner.last_runs().await
    }

    async fn forget(&self, before: Timestamp, max: usize) -> Result<usize, Fault> {
        self.inner.forget(before, max).await
    }

    async fn store(&self, report: &Report) -> Result<u64, Fault> {
        self.inner.store(report).await
    }

    async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault> {
        self.inner.reports(before, limit).await
    }
}

//! A purchase gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_domain::{AdjustmentId, Attempt, BuyerId, GateUpdate, OrderId, VoucherId};

use crate::controls::{Checkpoint, Meanwhile};

/// Loses answers, does not hear, stops after an update, or lets others in.
pub struct TamperedGate {
    /// What it stands before.
    pub inner: Arc<dyn PurchaseGate>,
    /// So many answers to attempts get lost.
    pub answers_lost: AtomicU32,
    /// Whether it does not hear of updates.
    pub deaf: bool,
    /// Where a relay stops that has handed an update over.
    pub after_follow: Option<Checkpoint>,
    /// What happens before a place is given up.
    pub before_leave: Meanwhile,
    /// What happens after somebody has looked what buyers have.
    pub after_claimants: Meanwhile,
    /// What happens after somebody has looked who waits.
    pub after_waiters: Meanwhile,
}

impl TamperedGate {
    /// Changes nothing yet.
    pub fn before(inner: Arc<dyn PurchaseGate>) -> Self {
        Self {
            inner,
            answers_lost: AtomicU32::new(0),
            deaf: false,
            after_follow: None,
            before_leave: Meanwhile::default(),
            after_claimants: Meanwhile::default(),
            after_waiters: Meanwhile::default(),
        }
    }

    fn loses_this(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let taken = self
            .answers_lost
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        taken.is_ok()
    }
}

#[async_trait]
impl PurchaseGate for TamperedGate {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let answer = self.inner.admit(voucher, attempts).await?;
        if self.loses_this() {
            return Err(Fault::unknown("purchase_gate.admit", "the answer got lost"));
        }
        Ok(answer)
    }

    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        if self.deaf {
            return Err(Fault::unavailable("purchase_gate.follow", "does not hear"));
        }
        let reply = self.inner.follow(update).await?;
        if let Some(checkpoint) = &self.after_follow {
            checkpoint.stop().await;
        }
        Ok(reply)
    }

    async fn promote(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.inner.promote(voucher).await
    }

    async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeaveReply, Fault> {
        self.before_leave.happen().await;
        self.inner.leave(voucher, buyer).await
    }

    async fn withdraw(
        &self,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<WithdrawReply, Fault> {
        self.inner.withdraw(voucher, units, adjustment).await
    }

    async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Result<PlaceReply, Fault> {
        self.inner.place(voucher, buyer).await
    }

    async fn has_decided(&self, order: OrderId) -> Result<bool, Fault> {
        self.inner.has_decided(order).await
    }

    async fn find_order(&self, order: OrderId) -> Result<Option<GateOrder>, Fault> {
        self.inner.find_order(order).await
    }

    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault> {
        self.inner.facts(vouchers).await
    }

    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault> {
        self.inner.tally(voucher, after).await
    }

    async fn claimants(
        &self,
        voucher: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault> {
        let found = self.inner.claimants(voucher, buyers).await?;
        self.after_claimants.happen().await;
        Ok(found)
    }

    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault> {
        self.inner.holders(voucher, cursor).await
    }

    async fn waiters(&self, voucher: VoucherId, cursor: u64) -> Result<Option<WaitersPage>, Fault> {
        let waiters = self.inner.waiters(voucher, cursor).await;
        self.after_waiters.happen().await;
        waiters
    }

    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.inner.retire(voucher).await
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.inner.ping().await
    }
}

//! Bugs of a gate.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::ports::{
    Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    OrderIds, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_application::{Effect, Fault};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, GateChange, GateUpdate, OrderId, VoucherId,
};
use seckill_memory::MemoryHotPath;

use super::hand_on;

/// Applies every update as often as it comes, whatever its version.
pub(super) struct Repeating {
    pub(super) inner: Arc<dyn PurchaseGate>,
    pub(super) memory: MemoryHotPath,
    /// Whether units come back from buyers who hold none, too.
    pub(super) unchecked: bool,
}

impl Repeating {
    /// Units that an update brings once more.
    async fn units_again(&self, update: &GateUpdate) -> Result<u32, Fault> {
        let mut units = 0;
        for change in &update.changes {
            units += match change {
                GateChange::AddUnits { units } if !self.unchecked => *units,
                GateChange::Release {
                    order,
                    buyer,
                    quantity,
                } if self.unchecked => {
                    let of = self.inner.claimants(update.voucher, &[*buyer]).await?;
                    let mut held = of.into_iter().flatten().flat_map(|it| it.held);
                    let holds = held.any(|it| it.order == *order);
                    if holds { 0 } else { *quantity }
                }
                _ => 0,
            };
        }
        Ok(units)
    }
}

hand_on!(PurchaseGate for Repeating {
    admit(voucher: VoucherId, attempts: &[Attempt]) -> Admitted;
    promote(voucher: VoucherId) -> bool;
    leave(voucher: VoucherId, buyer: BuyerId) -> LeaveReply;
    withdraw(voucher: VoucherId, units: u32, adjustment: AdjustmentId) -> WithdrawReply;
    place(voucher: VoucherId, buyer: BuyerId) -> PlaceReply;
    find_order(order: OrderId) -> Option<GateOrder>;
    has_decided(order: OrderId) -> bool;
    facts(vouchers: &[VoucherId]) -> Vec<Option<SaleFacts>>;
    tally(voucher: VoucherId, after: EntryId) -> Option<GateTally>;
    claimants(voucher: VoucherId, buyers: &[BuyerId]) -> Option<Vec<Claimant>>;
    holders(voucher: VoucherId, cursor: u64) -> Option<HoldersPage>;
    waiters(voucher: VoucherId, cursor: u64) -> Option<WaitersPage>;
    retire(voucher: VoucherId) -> bool;
    ping() -> ();
} but {
    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault> {
        let reply = self.inner.follow(update).await?;
        if reply == FollowReply::AlreadyApplied {
            let units = self.units_again(update).await?;
            let units = i32::try_from(units).unwrap_or(0);
            self.memory.shift_free(update.voucher, units);
        }
        Ok(reply)
    }
});

/// Asks again under another order id when an answer is lost, and takes "you have it" for a grant of
/// that id.
pub(super) struct Renumbering {
    pub(super) inner: Arc<dyn PurchaseGate>,
    pub(super) order_ids: Arc<dyn OrderIds>,
}

impl Renumbering {
    async fn again(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let mut renumbered = attempts.to_vec();
        for attempt in &mut renumbered {
            attempt.order = self.order_ids.next().await?;
        }
        let mut reply = self.inner.admit(voucher, &renumbered).await?;
        if let Admitted::Decided { admissions, .. } = &mut reply {
            for (admission, attempt) in admissions.iter_mut().zip(&renumbered) {
                if matches!(admission, Admission::AlreadyHeld { .. }) {
                    let order = attempt.order;
                    *admission = Admission::Granted { order };
                }
            }
        }
        Ok(reply)
    }
}

hand_on!(PurchaseGate for Renumbering {
    follow(update: &GateUpdate) -> FollowReply;
    promote(voucher: VoucherId) -> bool;
    leave(voucher: VoucherId, buyer: BuyerId) -> LeaveReply;
    withdraw(voucher: VoucherId, units: u32, adjustment: AdjustmentId) -> WithdrawReply;
    place(voucher: VoucherId, buyer: BuyerId) -> PlaceReply;
    find_order(order: OrderId) -> Option<GateOrder>;
    has_decided(order: OrderId) -> bool;
    facts(vouchers: &[VoucherId]) -> Vec<Option<SaleFacts>>;
    tally(voucher: VoucherId, after: EntryId) -> Option<GateTally>;
    claimants(voucher: VoucherId, buyers: &[BuyerId]) -> Option<Vec<Claimant>>;
    holders(voucher: VoucherId, cursor: u64) -> Option<HoldersPage>;
    waiters(voucher: VoucherId, cursor: u64) -> Option<WaitersPage>;
    retire(voucher: VoucherId) -> bool;
    ping() -> ();
} but {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        match self.inner.admit(voucher, attempts).await {
            Err(fault) if fault.effect() == Effect::Unknown => self.again(voucher, attempts).await,
            settled => settled,
        }
    }
});

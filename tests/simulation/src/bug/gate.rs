//! Bugs of a gate.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::ports::{
    Admitted, Claimant, EntryId, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    OrderIds, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};
use seckill_application::{Effect, Fault};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, GateChange, GateUpdate, Held, OrderId, SaleStatus,
    VoucherId,
};
use seckill_memory::MemoryHotPath;

use super::hand_on;

/// Has the gate take every update for the next one, and, if unchecked, find whoever gives units
/// back among its holders. What it then does is its own: only its questions are answered for it.
pub(super) struct Repeating {
    pub(super) inner: Arc<dyn PurchaseGate>,
    pub(super) memory: MemoryHotPath,
    pub(super) unchecked: bool,
}

impl Repeating {
    fn find_holders(&self, update: &GateUpdate) {
        for change in &update.changes {
            if let GateChange::Release {
                order,
                buyer,
                quantity,
            } = change
            {
                let held = Held {
                    order: *order,
                    quantity: *quantity,
                    promoted: false,
                };
                self.memory.plant_holder(update.voucher, *buyer, held);
            }
        }
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
        let facts = self.inner.facts(&[update.voucher]).await?;
        let Some(facts) = facts.into_iter().flatten().next() else {
            return self.inner.follow(update).await;
        };
        let next = facts.pulse.version.next();
        if update.version > next {
            return self.inner.follow(update).await;
        }
        if self.unchecked {
            self.find_holders(update);
        }
        let changes = update.changes.clone();
        let next = GateUpdate { version: next, changes, ..*update };
        self.inner.follow(&next).await
    }
});

/// Takes a pause for a resumption.
pub(super) struct Restless {
    pub(super) inner: Arc<dyn PurchaseGate>,
}

hand_on!(PurchaseGate for Restless {
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
        let mut update = update.clone();
        for change in &mut update.changes {
            if let GateChange::SetTerms(terms) = change
                && terms.status == SaleStatus::Paused
            {
                terms.status = SaleStatus::Published;
            }
        }
        self.inner.follow(&update).await
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

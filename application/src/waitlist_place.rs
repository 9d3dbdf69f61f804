//! A buyer asks for his place on the waitlist, or gives it up.

use std::sync::Arc;

use seckill_domain::{BuyerId, OrderId, VoucherId};

use crate::ports::{HotPath, LeaveReply, NotLoaded, Place, PurchaseGate};
use crate::serve_waitlist::nudge_waitlist;
use crate::{Fault, WantedSales};

/// What became of leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavePlace {
    /// He does not wait, now or already.
    NotWaiting,
    /// He has been given his units.
    AlreadyPromoted(OrderId),
}

/// Reads and gives up places.
pub struct WaitlistPlace {
    gate: Arc<dyn PurchaseGate>,
    wanted: Arc<WantedSales>,
}

impl WaitlistPlace {
    /// Over these ports.
    pub fn new(hot: &HotPath, wanted: Arc<WantedSales>) -> Self {
        Self {
            gate: hot.gate.clone(),
            wanted,
        }
    }

    /// A buyer's place, if he has or had one.
    pub async fn find(&self, voucher: VoucherId, buyer: BuyerId) -> Result<Option<Place>, Fault> {
        self.gate.place(voucher, buyer).await
    }

    /// Gives a place up. Repeatable. What had accumulated for it serves the next.
    pub async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeavePlace, Fault> {
        match self.gate.leave(voucher, buyer).await? {
            LeaveReply::Left(_) => {
                nudge_waitlist(&*self.gate, voucher).await;
                Ok(LeavePlace::NotWaiting)
            }
            LeaveReply::NotWaiting | LeaveReply::NotLoaded(NotLoaded::Retired) => {
                Ok(LeavePlace::NotWaiting)
            }
            LeaveReply::AlreadyPromoted(order) => Ok(LeavePlace::AlreadyPromoted(order)),
            LeaveReply::NotLoaded(_) => {
                self.wanted.request(voucher);
                Err(Fault::unavailable(
                    "waitlist_place",
                    "the gate is being loaded",
                ))
            }
        }
    }
}

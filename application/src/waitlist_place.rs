//! A buyer asks for his place on the waitlist, or gives it up.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};

use crate::ports::{
    Clock, HotPath, LeaveReply, LedgerPorts, NotLoaded, Place, PlaceReply, PurchaseGate,
};
use crate::serve_waitlist::nudge_waitlist;
use crate::standing::{Standing, Standings};
use crate::{Fault, WantedSales};

/// Where a buyer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindPlace {
    /// He waits, or was given his units.
    At(Place),
    /// Neither.
    NotWaiting,
    /// There is no such voucher for buyers.
    VoucherNotFound,
}

/// What became of leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavePlace {
    /// He does not wait, now or already.
    NotWaiting,
    /// He has been given his units.
    AlreadyPromoted(OrderId),
    /// There is no such voucher for buyers.
    VoucherNotFound,
}

/// How long a buyer waits for a gate that is being loaded.
const LOADING_PATIENCE: Duration = Duration::from_secs(1);
const LOADING_PAUSE: Duration = Duration::from_millis(15);

/// Reads and gives up places.
pub struct WaitlistPlace {
    gate: Arc<dyn PurchaseGate>,
    clock: Arc<dyn Clock>,
    wanted: Arc<WantedSales>,
    standings: Standings,
}

impl WaitlistPlace {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        clock: Arc<dyn Clock>,
        wanted: Arc<WantedSales>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            standings: Standings::new(ledger.ledger.clone(), clock.clone()),
            clock,
            wanted,
        }
    }

    /// A buyer's place, if he has or had one. Waits up to 1 s for a gate that is being loaded.
    pub async fn find(&self, voucher: VoucherId, buyer: BuyerId) -> Result<FindPlace, Fault> {
        let deadline = self.clock.monotonic() + LOADING_PATIENCE;
        loop {
            let why = match self.gate.place(voucher, buyer).await? {
                PlaceReply::At(place) => return Ok(FindPlace::At(place)),
                PlaceReply::Nowhere => return Ok(FindPlace::NotWaiting),
                PlaceReply::NotLoaded(why) => why,
            };
            match self.standing(voucher, why).await? {
                Standing::Unknown => return Ok(FindPlace::VoucherNotFound),
                Standing::Retired => return Ok(FindPlace::NotWaiting),
                Standing::AtGate => self.wait_for_gate(deadline).await?,
            }
        }
    }

    /// Gives a place up. Repeatable. What had accumulated for it serves the next. Waits up to 1 s
    /// for a gate that is being loaded.
    pub async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeavePlace, Fault> {
        let deadline = self.clock.monotonic() + LOADING_PATIENCE;
        loop {
            let why = match self.gate.leave(voucher, buyer).await? {
                LeaveReply::Left(_) => {
                    nudge_waitlist(&*self.gate, voucher).await;
                    return Ok(LeavePlace::NotWaiting);
                }
                LeaveReply::NotWaiting => return Ok(LeavePlace::NotWaiting),
                LeaveReply::AlreadyPromoted(order) => {
                    return Ok(LeavePlace::AlreadyPromoted(order));
                }
                LeaveReply::NotLoaded(why) => why,
            };
            match self.standing(voucher, why).await? {
                Standing::Unknown => return Ok(LeavePlace::VoucherNotFound),
                Standing::Retired => return Ok(LeavePlace::NotWaiting),
                Standing::AtGate => self.wait_for_gate(deadline).await?,
            }
        }
    }

    /// Where a voucher stands that the gate does not have. One that should be there is asked for.
    async fn standing(&self, voucher: VoucherId, why: NotLoaded) -> Result<Standing, Fault> {
        let standing = match why {
            NotLoaded::Retired => Standing::Retired,
            NotLoaded::Loading => Standing::AtGate,
            NotLoaded::Voucher | NotLoaded::Partition => self.standings.of(voucher).await?,
        };
        if standing == Standing::AtGate && why != NotLoaded::Loading {
            self.wanted.request(voucher);
        }
        Ok(standing)
    }

    async fn wait_for_gate(&self, deadline: Duration) -> Result<(), Fault> {
        if self.clock.monotonic() >= deadline {
            let loading = "the gate is being loaded";
            return Err(Fault::unavailable("waitlist_place", loading));
        }
        self.clock.sleep(LOADING_PAUSE).await;
        Ok(())
    }
}

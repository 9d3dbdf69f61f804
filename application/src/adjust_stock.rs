//! An administrator adds units to a sale, or takes free ones out, while it runs.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{EventKind, NewEvent, SaleStatus, Voucher};

use crate::ports::{
    Adjustment, AdjustmentReply, AdjustmentState, Clock, HotPath, Ledger, LedgerPorts,
    NewAdjustment, PurchaseGate, WithdrawReply,
};
use crate::retrying::retrying;
use crate::serve_waitlist::nudge_waitlist;
use crate::{Fault, SteerSale};

/// What became of an adjustment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdjustStockReply {
    /// Ledger and gate have it.
    Done(Voucher),
    /// There is no such voucher.
    NotFound,
    /// A draft's units are set by amending it; a closed sale's stay as they are. A repeat is answered
    /// as the first call was.
    WrongStatus(SaleStatus),
    /// Fewer units are free; nothing changed.
    NotEnoughFree,
    /// A voucher never has so many units; nothing changed.
    TooMany,
    /// The key was used for another delta.
    KeyReused,
}

/// How long a withdrawal waits for the ledger.
const LEDGER_PATIENCE: Duration = Duration::from_secs(3);
const LEDGER_PAUSE: Duration = Duration::from_millis(20);

/// Adjusts stock: units are added ledger first and taken gate first, so a healthy gate is never
/// refused by the ledger.
pub struct AdjustStock {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    steer: Arc<SteerSale>,
    clock: Arc<dyn Clock>,
}

enum Recorded {
    Adjustment(Adjustment),
    Refused(AdjustStockReply),
}

impl AdjustStock {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        steer: Arc<SteerSale>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            steer,
            clock,
        }
    }

    /// Adjusts. Repeatable with the same key.
    pub async fn run(&self, wish: &NewAdjustment) -> Result<AdjustStockReply, Fault> {
        // Without a key a lost answer cannot be told from a second wish, so it is not repeated.
        let recorded = if wish.key.is_some() {
            retrying(&*self.clock, || self.record(wish)).await?
        } else {
            self.record(wish).await?
        };
        let adjustment = match recorded {
            Recorded::Adjustment(adjustment) => adjustment,
            Recorded::Refused(reply) => return Ok(reply),
        };
        match adjustment.state {
            AdjustmentState::Refused => return Ok(AdjustStockReply::NotEnoughFree),
            AdjustmentState::Pending if !self.withdraw(wish, &adjustment).await? => {
                return Ok(AdjustStockReply::NotEnoughFree);
            }
            AdjustmentState::Pending | AdjustmentState::Applied => {}
        }
        let Some(voucher) = self.ledger.voucher(wish.voucher).await? else {
            return Ok(AdjustStockReply::NotFound);
        };
        self.steer.followed(&voucher).await?;
        Ok(AdjustStockReply::Done(voucher))
    }

    /// Writes the wish down; units to add are added in the same transaction.
    async fn record(&self, wish: &NewAdjustment) -> Result<Recorded, Fault> {
        let mut unit = self.ledger.begin().await?;
        let Some(voucher) = unit.lock_voucher(wish.voucher).await? else {
            return Ok(Recorded::Refused(AdjustStockReply::NotFound));
        };
        let mut adjustment = match unit.record_adjustment(wish).await? {
            AdjustmentReply::Recorded(adjustment) => adjustment,
            AdjustmentReply::KeyReused => {
                return Ok(Recorded::Refused(AdjustStockReply::KeyReused));
            }
        };
        if !matches!(voucher.status, SaleStatus::Published | SaleStatus::Paused) {
            drop(unit);
            return self.recorded_before(&voucher, wish, adjustment).await;
        }
        if adjustment.state == AdjustmentState::Pending
            && let Ok(units) = u32::try_from(adjustment.delta)
        {
            if !voucher.has_room_for(units) {
                return Ok(Recorded::Refused(AdjustStockReply::TooMany));
            }
            unit.add_units(wish.voucher, adjustment.id, units).await?;
            let event = NewEvent::of_voucher(wish.voucher, EventKind::StockAdjusted);
            unit.append_events(&[event]).await?;
            adjustment.state = AdjustmentState::Applied;
        }
        unit.commit().await?;
        Ok(Recorded::Adjustment(adjustment))
    }

    /// What a sale that no longer takes adjustments says: a wish of before is answered as it was then.
    /// What the transaction that was given up would have written down is not there.
    async fn recorded_before(
        &self,
        voucher: &Voucher,
        wish: &NewAdjustment,
        adjustment: Adjustment,
    ) -> Result<Recorded, Fault> {
        let stored = if wish.key.is_some() {
            let mut unit = self.ledger.begin().await?;
            unit.adjustment(adjustment.id).await?
        } else {
            None
        };
        Ok(match stored {
            Some(stored) => Recorded::Adjustment(stored),
            None => Recorded::Refused(AdjustStockReply::WrongStatus(voucher.status)),
        })
    }

    /// Takes units at the gate, and waits until the ledger has that. `false` if too few are free.
    async fn withdraw(&self, wish: &NewAdjustment, to: &Adjustment) -> Result<bool, Fault> {
        let units = to.delta.unsigned_abs();
        let reply = retrying(&*self.clock, || {
            self.gate.withdraw(wish.voucher, units, to.id)
        })
        .await?;
        match reply {
            WithdrawReply::Withdrawn => {
                // The head may want more than there will ever be now.
                nudge_waitlist(&*self.gate, wish.voucher).await;
                self.in_ledger(to).await.map(|()| true)
            }
            WithdrawReply::NotEnough { .. } => self.refuse(to).await.map(|()| false),
            WithdrawReply::NotLoaded(_) => {
                Err(Fault::unknown("adjust_stock", "the gate is being loaded"))
            }
        }
    }

    async fn in_ledger(&self, adjustment: &Adjustment) -> Result<(), Fault> {
        let deadline = self.clock.monotonic() + LEDGER_PATIENCE;
        loop {
            let mut unit = self.ledger.begin().await?;
            let stored = unit.adjustment(adjustment.id).await?;
            drop(unit);
            if stored.is_some_and(|stored| stored.state == AdjustmentState::Applied) {
                return Ok(());
            }
            if self.clock.monotonic() >= deadline {
                let waiting = "the gate has it; the ledger follows later";
                return Err(Fault::unknown("adjust_stock", waiting));
            }
            self.clock.sleep(LEDGER_PAUSE).await;
        }
    }

    async fn refuse(&self, adjustment: &Adjustment) -> Result<(), Fault> {
        let mut unit = self.ledger.begin().await?;
        unit.refuse_adjustment(adjustment.id).await?;
        unit.commit().await
    }
}

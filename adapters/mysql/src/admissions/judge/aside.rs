//! What cannot be applied is put aside, with the units that it took.

use seckill_application::ports::{EntryId, ParkReason, Taken, Unreadable, Verdict};
use seckill_domain::{Decision, OrderStatus};

use super::super::plan::{Park, add};
use super::{Judge, Place};
use crate::fault::Trouble;
use crate::parked::park_word;
use crate::wire;

impl Judge<'_> {
    /// What an entry of the gate names is put aside as a decision is.
    pub(super) fn unreadable(
        &mut self,
        entry: EntryId,
        body: &Unreadable,
        taken: Option<Taken>,
    ) -> Result<Verdict, Trouble> {
        let reason = ParkReason::Unreadable;
        if let (Some(taken), Some(named)) = (taken, &body.named) {
            let payload = wire::write_unreadable(body, Some(named))?;
            return Ok(self.put_aside((taken.first, entry), named, reason, payload));
        }
        self.plan.parked.push(Park {
            seq: 0,
            millis: entry.millis,
            counter: entry.counter,
            voucher: None,
            order: None,
            units: 0,
            unheld: 0,
            reason: park_word(reason),
            payload: wire::write_unreadable(body, None)?,
        });
        Ok(Verdict::Parked(reason))
    }

    pub(super) fn park(
        &mut self,
        place: Place,
        decision: &Decision,
        reason: ParkReason,
    ) -> Result<Verdict, Trouble> {
        let payload = wire::write_decision(decision)?;
        Ok(self.put_aside(place, decision, reason, payload))
    }

    /// Whether the order that a decision is about has its units in the ledger.
    fn is_live(&self, decision: &Decision) -> bool {
        let live =
            |claim| self.is_sound(claim) && self.status(claim).is_some_and(OrderStatus::is_live);
        decision.claim().is_some_and(live)
    }

    /// Parks a decision. What it took is taken out of the stock, as far as there is any; of a voucher
    /// that is not there, once it is. An order that has its units takes none.
    fn put_aside(
        &mut self,
        (sequence, entry): Place,
        decision: &Decision,
        reason: ParkReason,
        payload: String,
    ) -> Verdict {
        let voucher = decision.voucher();
        let (mut units, mut unheld) = (0, decision.units_taken());
        if self.is_live(decision) {
            unheld = 0;
        }
        if let Some(sale) = self.known.sales.get_mut(&voucher) {
            units = sale.stock.min(unheld.into());
            unheld = 0;
            sale.stock -= units;
            add(&mut self.plan.takes, voucher, units);
        }
        self.plan.parked.push(Park {
            seq: sequence.get(),
            millis: entry.millis,
            counter: entry.counter,
            voucher: Some(voucher.get()),
            order: decision.claim().map(|claim| claim.order.get()),
            units,
            unheld,
            reason: park_word(reason),
            payload,
        });
        Verdict::Parked(reason)
    }
}

//! A verdict for each item, given what the ledger knows: the closer look at a batch that the
//! database refused as a whole. Pure; the database's constraints still have the last word.

mod aside;

use std::collections::HashMap;

use seckill_application::ports::{AdjustmentState, BatchItem, EntryId, ParkReason, Verdict};
use seckill_domain::{
    AdjustmentId, Claim, Decision, EventKind, LeftReason, NewEvent, OrderId, OrderStatus,
    RejectReason, Sequence, Ticket, VoucherId,
};

use super::known::{Known, KnownOrder};
use super::plan::{Move, NewOrder, Plan, Settled, add, left_into};
use crate::events::of_claim;
use crate::fault::Trouble;
use crate::row::{adjustment_word, reason_word, status_word};

/// Judges the items of a slice in order.
pub(super) fn judge(known: Known, items: &[BatchItem]) -> Result<Plan<'_>, Trouble> {
    let mut judge = Judge::over(known);
    for item in items {
        let verdict = judge.item(item)?;
        judge.plan.verdicts.push(verdict);
    }
    Ok(judge.finish())
}

/// Parks items whatever they say: the database refused them for a reason of its own.
pub(super) fn park_all(known: Known, items: &[BatchItem]) -> Result<Plan<'_>, Trouble> {
    let mut judge = Judge::over(known);
    for item in items {
        let verdict = match item {
            BatchItem::Unreadable { entry, body, taken } => {
                judge.unreadable(*entry, body, *taken)?
            }
            BatchItem::Decision {
                sequence,
                entry,
                decision,
            } => judge.park((*sequence, *entry), decision, ParkReason::BadValues)?,
        };
        judge.plan.verdicts.push(verdict);
    }
    Ok(judge.finish())
}

/// The number of a decision and the entry it came in.
type Place = (Sequence, EntryId);

/// An order as it will be written.
struct Draft<'b> {
    claim: &'b Claim,
    entry: EntryId,
    /// The stage that is stored; `None` for an order that is not there yet.
    was: Option<OrderStatus>,
    with_key: bool,
    ticket: Option<Ticket>,
    joined: Option<Sequence>,
    settled: Option<Sequence>,
}

struct Judge<'b> {
    /// Kept up to date item by item.
    known: Known,
    drafts: HashMap<OrderId, Draft<'b>>,
    plan: Plan<'b>,
}

impl<'b> Judge<'b> {
    fn over(known: Known) -> Self {
        let (drafts, plan) = (HashMap::new(), Plan::default());
        Self {
            known,
            drafts,
            plan,
        }
    }

    fn item(&mut self, item: &'b BatchItem) -> Result<Verdict, Trouble> {
        match item {
            BatchItem::Unreadable { entry, body, taken } => self.unreadable(*entry, body, *taken),
            BatchItem::Decision {
                sequence,
                entry,
                decision,
            } => match self.decision((*sequence, *entry), decision) {
                Ok(verdict) => Ok(verdict),
                Err(reason) => self.park((*sequence, *entry), decision, reason),
            },
        }
    }

    fn decision(&mut self, place: Place, decision: &'b Decision) -> Result<Verdict, ParkReason> {
        let sale = self.known.sales.get(&decision.voucher());
        if sale.is_none_or(|sale| sale.is_draft) {
            return Err(ParkReason::UnknownVoucher);
        }
        if decision.claim().is_some_and(|claim| !self.is_sound(claim)) {
            return Err(ParkReason::BadValues);
        }
        match decision {
            Decision::Granted(claim) => Ok(self.grant(place, claim, false)),
            Decision::Promoted(claim) => Ok(self.grant(place, claim, true)),
            Decision::Joined { claim, ticket } => Ok(self.join(place, claim, *ticket)),
            Decision::Left { claim, reason } => Ok(self.leave(place, claim, *reason)),
            Decision::Lost(claim) => Ok(self.lose(place, claim)),
            Decision::Withdrawn {
                voucher,
                units,
                adjustment,
            } => self.withdraw(place, *voucher, *units, *adjustment),
        }
    }

    /// Whether an order id is new, or belongs to the very same order.
    fn is_sound(&self, claim: &Claim) -> bool {
        let same = |known: &KnownOrder| {
            known.voucher == claim.voucher
                && known.buyer == claim.buyer
                && known.quantity == claim.quantity
        };
        claim.quantity > 0 && self.known.orders.get(&claim.order).is_none_or(same)
    }

    fn status(&self, claim: &Claim) -> Option<OrderStatus> {
        let known = self.known.orders.get(&claim.order);
        known.map(|known| known.status)
    }

    /// A grant or a promotion: the units are the buyer's, if he may have them and they are there.
    fn grant(&mut self, place: Place, claim: &'b Claim, promoted: bool) -> Verdict {
        let waited = promoted || self.status(claim).is_some();
        let refusal = match self.status(claim) {
            None | Some(OrderStatus::Waiting) => self.refusal(claim),
            // The gate gave units to an order that had ended without: it is wrong about it.
            Some(OrderStatus::Rejected) => Some(self.stored_reason(claim)),
            Some(OrderStatus::Withdrawn | OrderStatus::ClosedOut) => Some(RejectReason::Lost),
            Some(_) => {
                self.touch(place, claim);
                return Verdict::AlreadyThere;
            }
        };
        let waits = matches!(self.status(claim), None | Some(OrderStatus::Waiting));
        self.touch(place, claim);
        if let Some(reason) = refusal {
            if waits {
                self.set(claim, OrderStatus::Rejected, Some(reason));
            }
            return Verdict::Rejected(reason);
        }
        self.take(claim);
        let kind = if waited {
            EventKind::Promoted
        } else {
            EventKind::Order(OrderStatus::PendingPayment)
        };
        self.plan.confirm(claim, kind);
        self.note(claim, OrderStatus::PendingPayment, None);
        Verdict::Confirmed
    }

    fn stored_reason(&self, claim: &Claim) -> RejectReason {
        let known = self.known.orders.get(&claim.order);
        known
            .and_then(|known| known.reason)
            .unwrap_or(RejectReason::Lost)
    }

    fn refusal(&self, claim: &Claim) -> Option<RejectReason> {
        let sale = self.known.sales.get(&claim.voucher)?;
        let holder = (claim.voucher, claim.buyer);
        let held = self.known.holdings.get(&holder).copied().unwrap_or(0);
        let quantity = u64::from(claim.quantity);
        if held + quantity > sale.per_buyer_limit || self.key_is_taken(claim) {
            Some(RejectReason::LimitReached)
        } else if quantity > sale.stock {
            Some(RejectReason::NoStock)
        } else {
            None
        }
    }

    /// Whether another order has the claim's key: the same purchase, twice.
    fn key_is_taken(&self, claim: &Claim) -> bool {
        let key = claim.key.clone();
        key.and_then(|key| self.known.keys.get(&(claim.voucher, claim.buyer, key)))
            .is_some_and(|order| *order != claim.order)
    }

    fn take(&mut self, claim: &Claim) {
        let units = u64::from(claim.quantity);
        let holder = (claim.voucher, claim.buyer);
        *self.known.holdings.entry(holder).or_default() += units;
        if let Some(sale) = self.known.sales.get_mut(&claim.voucher) {
            sale.stock = sale.stock.saturating_sub(units);
        }
    }

    fn join(&mut self, place: Place, claim: &'b Claim, ticket: Ticket) -> Verdict {
        let is_new = self.status(claim).is_none();
        let refusal = self.refusal_of_place(claim);
        let draft = self.draft(place, claim);
        draft.joined = Some(place.0);
        if !is_new {
            return Verdict::AlreadyThere;
        }
        draft.ticket = Some(ticket);
        if let Some(reason) = refusal {
            self.set(claim, OrderStatus::Rejected, Some(reason));
            return Verdict::Rejected(reason);
        }
        self.set(claim, OrderStatus::Waiting, None);
        Verdict::Confirmed
    }

    fn refusal_of_place(&self, claim: &Claim) -> Option<RejectReason> {
        let waits = self.known.waiting.get(&(claim.voucher, claim.buyer));
        if self.key_is_taken(claim) {
            Some(RejectReason::LimitReached)
        } else if waits.is_some_and(|order| *order != claim.order) {
            // Redis has lost the place that he has.
            Some(RejectReason::Lost)
        } else {
            None
        }
    }

    fn leave(&mut self, place: Place, claim: &'b Claim, reason: LeftReason) -> Verdict {
        let (status, reason) = left_into(reason);
        self.end(place, claim, status, reason)
    }

    fn lose(&mut self, place: Place, claim: &'b Claim) -> Verdict {
        let reason = Some(RejectReason::Lost);
        self.end(place, claim, OrderStatus::Rejected, reason)
    }

    /// Ends an order without units, if it waits or is not there.
    fn end(
        &mut self,
        place: Place,
        claim: &'b Claim,
        status: OrderStatus,
        reason: Option<RejectReason>,
    ) -> Verdict {
        let ends = matches!(self.status(claim), None | Some(OrderStatus::Waiting));
        self.touch(place, claim);
        if !ends {
            return Verdict::AlreadyThere;
        }
        self.set(claim, status, reason);
        Verdict::Confirmed
    }

    /// Follows the gate, which has taken the units out, even if the adjustment was given up.
    fn withdraw(
        &mut self,
        place: Place,
        voucher: VoucherId,
        units: u32,
        id: AdjustmentId,
    ) -> Result<Verdict, ParkReason> {
        let known = self.known.adjustments.get_mut(&id);
        let known = known.ok_or(ParkReason::BadValues)?;
        let taken = u64::from(units);
        if known.voucher != voucher || -i64::from(known.delta) != i64::from(units) {
            return Err(ParkReason::BadValues);
        }
        let verdict = match (known.state, self.known.sales.get_mut(&voucher)) {
            (AdjustmentState::Applied, _) => Verdict::AlreadyThere,
            (_, Some(sale)) if sale.stock >= taken => {
                sale.stock -= taken;
                known.state = AdjustmentState::Applied;
                add(&mut self.plan.takes, voucher, taken);
                add(&mut self.plan.withdrawn, voucher, taken);
                let event = NewEvent::of_voucher(voucher, EventKind::StockAdjusted);
                self.plan.events.push(event);
                Verdict::Confirmed
            }
            _ => {
                known.state = AdjustmentState::Refused;
                Verdict::Rejected(RejectReason::NoStock)
            }
        };
        let state = adjustment_word(known.state);
        self.plan.settled.retain(|settled| settled.id != id.get());
        self.plan.settled.push(Settled {
            id: id.get(),
            state,
            sequence: place.0.get(),
        });
        Ok(verdict)
    }

    /// The order's draft; a new one is of an order that waits, until it is set otherwise.
    fn draft(&mut self, (_, entry): Place, claim: &'b Claim) -> &mut Draft<'b> {
        let was = self.status(claim);
        let with_key = !self.key_is_taken(claim);
        if was.is_none() {
            let known = KnownOrder {
                voucher: claim.voucher,
                buyer: claim.buyer,
                quantity: claim.quantity,
                status: OrderStatus::Waiting,
                reason: None,
            };
            self.known.orders.insert(claim.order, known);
            if let Some(key) = claim.key.clone().filter(|_| with_key) {
                let key = (claim.voucher, claim.buyer, key);
                self.known.keys.insert(key, claim.order);
            }
        }
        self.drafts.entry(claim.order).or_insert(Draft {
            claim,
            entry,
            was,
            with_key,
            ticket: None,
            joined: None,
            settled: None,
        })
    }

    /// Notes the decision that settles an order.
    fn touch(&mut self, place: Place, claim: &'b Claim) {
        self.draft(place, claim).settled = Some(place.0);
    }

    /// Moves an order into a stage without units.
    fn set(&mut self, claim: &Claim, status: OrderStatus, reason: Option<RejectReason>) {
        self.plan.events.push(of_claim(claim, status));
        self.note(claim, status, reason);
    }

    fn note(&mut self, claim: &Claim, status: OrderStatus, reason: Option<RejectReason>) {
        if let Some(known) = self.known.orders.get_mut(&claim.order) {
            known.status = status;
            known.reason = reason;
        }
        let place = (claim.voucher, claim.buyer);
        if status == OrderStatus::Waiting {
            self.known.waiting.insert(place, claim.order);
        } else if self.known.waiting.get(&place) == Some(&claim.order) {
            self.known.waiting.remove(&place);
        }
    }

    fn finish(mut self) -> Plan<'b> {
        for (id, draft) in self.drafts {
            let Some(known) = self.known.orders.get(&id) else {
                continue;
            };
            match draft.was {
                None => self.plan.orders.push(draft.insert(known)),
                Some(was) => self.plan.moves.push(draft.update(known, was)),
            }
        }
        self.plan.sort();
        self.plan
    }
}

impl<'b> Draft<'b> {
    fn insert(self, known: &KnownOrder) -> NewOrder<'b> {
        let sequence = self.settled.or(self.joined).unwrap_or_default();
        let order = NewOrder::settled(self.claim, sequence, self.entry, known.status);
        NewOrder {
            reason: known.reason.map(reason_word),
            ticket: self.ticket.map(Ticket::get),
            key: order.key.filter(|_| self.with_key),
            joined: self.joined.map(Sequence::get),
            settled: self.settled.map(Sequence::get),
            ..order
        }
    }

    fn update(self, known: &KnownOrder, was: OrderStatus) -> Move {
        Move {
            id: self.claim.order.get(),
            voucher: known.voucher.get(),
            buyer: known.buyer.get(),
            quantity: known.quantity,
            was: status_word(was),
            status: status_word(known.status),
            reason: known.reason.map(reason_word),
            joined: self.joined.map(Sequence::get),
            settled: self.settled.map(Sequence::get),
        }
    }
}

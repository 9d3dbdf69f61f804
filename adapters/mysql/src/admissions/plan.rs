//! What a transaction writes: rows, sorted by key so that every transaction takes its locks in the
//! same order.

use std::collections::{BTreeMap, HashSet};

use crate::events::of_claim;
use crate::row::{reason_word, status_word};
use seckill_application::ports::{BatchItem, EntryId, Verdict};
use seckill_domain::{
    BuyerId, Claim, Decision, EventKind, LeftReason, NewEvent, OrderStatus, RejectReason, Sequence,
    VoucherId,
};

/// An order to insert. The amount, the currency and the end of the payment window come from its
/// voucher's row.
#[derive(Debug)]
pub(super) struct NewOrder<'b> {
    pub(super) id: u64,
    pub(super) voucher: u64,
    pub(super) buyer: u64,
    pub(super) quantity: u32,
    pub(super) status: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) ticket: Option<u64>,
    pub(super) key: Option<&'b str>,
    pub(super) joined: Option<u64>,
    pub(super) settled: Option<u64>,
    /// Unix milliseconds; without, the database's clock.
    pub(super) created: Option<i64>,
}

/// An order to move on, if it still is as it was.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) id: u64,
    pub(super) voucher: u64,
    pub(super) buyer: u64,
    pub(super) quantity: u32,
    pub(super) was: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) joined: Option<u64>,
    pub(super) settled: Option<u64>,
}

/// An adjustment that the gate has settled.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) id: u64,
    pub(super) state: &'static str,
    pub(super) sequence: u64,
}

/// A message to park.
#[derive(Debug)]
pub(super) struct Park {
    pub(super) seq: u64,
    pub(super) millis: u64,
    pub(super) counter: u64,
    pub(super) voucher: Option<u64>,
    pub(super) order: Option<u64>,
    /// Taken out of the stock.
    pub(super) units: u64,
    /// Taken at the gate, while there is no stock to take them out of.
    pub(super) unheld: u32,
    pub(super) reason: &'static str,
    pub(super) payload: String,
}

/// Everything that one transaction writes, and the verdicts if it commits.
#[derive(Debug, Default)]
pub(super) struct Plan<'b> {
    pub(super) orders: Vec<NewOrder<'b>>,
    pub(super) moves: Vec<Move>,
    pub(super) holds: Units<(VoucherId, BuyerId)>,
    pub(super) takes: Units<VoucherId>,
    pub(super) withdrawn: Units<VoucherId>,
    pub(super) settled: Vec<Settled>,
    pub(super) parked: Vec<Park>,
    pub(super) verdicts: Vec<Verdict>,
    /// What happens to orders and vouchers by this, in the order of the items.
    pub(super) events: Vec<NewEvent>,
}

/// Units by key, sorted.
pub(super) type Units<K> = BTreeMap<K, u64>;

pub(super) fn add<K: Ord>(units: &mut Units<K>, key: K, more: u64) {
    *units.entry(key).or_default() += more;
}

impl<'b> Plan<'b> {
    /// What is to be written if nothing of it is there yet, every buyer is within his limit and
    /// there is stock: nearly always. The database refuses it otherwise. `None` if an item needs a
    /// closer look anyway.
    pub(super) fn of_news(items: &'b [BatchItem]) -> Option<Self> {
        let mut plan = Self {
            orders: Vec::with_capacity(items.len()),
            events: Vec::with_capacity(items.len()),
            verdicts: vec![Verdict::Confirmed; items.len()],
            ..Self::default()
        };
        let mut joining = HashSet::new();
        for item in items {
            let BatchItem::Decision {
                sequence,
                entry,
                decision,
            } = item
            else {
                return None;
            };
            if let Decision::Joined { claim, .. } = decision
                && !joining.insert((claim.voucher, claim.buyer))
            {
                return None;
            }
            plan.add_news(*sequence, *entry, decision)?;
        }
        plan.sort();
        Some(plan)
    }

    fn add_news(
        &mut self,
        sequence: Sequence,
        entry: EntryId,
        decision: &'b Decision,
    ) -> Option<()> {
        match decision {
            Decision::Granted(claim) => {
                let order = NewOrder::settled(claim, sequence, entry, OrderStatus::PendingPayment);
                self.orders.push(order);
                self.confirm(claim, EventKind::Order(OrderStatus::PendingPayment));
            }
            Decision::Joined { claim, ticket } => {
                self.orders.push(NewOrder {
                    ticket: Some(ticket.get()),
                    joined: Some(sequence.get()),
                    settled: None,
                    ..NewOrder::settled(claim, sequence, entry, OrderStatus::Waiting)
                });
                self.events.push(of_claim(claim, OrderStatus::Waiting));
            }
            Decision::Lost(claim) => {
                self.orders.push(NewOrder {
                    reason: Some(reason_word(RejectReason::Lost)),
                    ..NewOrder::settled(claim, sequence, entry, OrderStatus::Rejected)
                });
                self.events.push(of_claim(claim, OrderStatus::Rejected));
            }
            Decision::Promoted(claim) => {
                let to = (OrderStatus::PendingPayment, None);
                self.moves.push(Move::from_waiting(claim, sequence, to));
                self.confirm(claim, EventKind::Promoted);
            }
            Decision::Left { claim, reason } => {
                let to = left_into(*reason);
                self.moves.push(Move::from_waiting(claim, sequence, to));
                self.events.push(of_claim(claim, to.0));
            }
            Decision::Withdrawn { .. } => return None,
        }
        Some(())
    }

    /// Takes a claim's units out of the stock and into the buyer's holding.
    pub(super) fn confirm(&mut self, claim: &Claim, kind: EventKind) {
        self.events.push(NewEvent {
            kind,
            ..of_claim(claim, OrderStatus::PendingPayment)
        });
        let units = u64::from(claim.quantity);
        add(&mut self.holds, (claim.voucher, claim.buyer), units);
        add(&mut self.takes, claim.voucher, units);
    }

    /// Puts the rows in the order of their keys.
    pub(super) fn sort(&mut self) {
        self.orders.sort_unstable_by_key(|order| order.id);
        self.moves.sort_unstable_by_key(|order| order.id);
        self.settled.sort_unstable_by_key(|settled| settled.id);
    }
}

impl<'b> NewOrder<'b> {
    /// An order that is inserted in the stage `status`, by a decision that settles it.
    pub(super) fn settled(
        claim: &'b Claim,
        sequence: Sequence,
        entry: EntryId,
        status: OrderStatus,
    ) -> Self {
        Self {
            id: claim.order.get(),
            voucher: claim.voucher.get(),
            buyer: claim.buyer.get(),
            quantity: claim.quantity,
            status: status_word(status),
            reason: None,
            ticket: None,
            key: claim
                .key
                .as_ref()
                .map(seckill_domain::IdempotencyKey::as_str),
            joined: None,
            settled: Some(sequence.get()),
            created: storable(entry),
        }
    }

    /// Whether its payment window begins.
    pub(super) fn is_due(&self) -> bool {
        self.status == status_word(OrderStatus::PendingPayment)
    }
}

impl Move {
    /// Whether its payment window begins.
    pub(super) fn is_due(&self) -> bool {
        self.was == status_word(OrderStatus::Waiting)
            && self.status == status_word(OrderStatus::PendingPayment)
    }

    /// Takes an order off the waitlist, into a stage and, if that is a rejection, its reason.
    fn from_waiting(
        claim: &Claim,
        sequence: Sequence,
        (status, reason): (OrderStatus, Option<RejectReason>),
    ) -> Self {
        Self {
            id: claim.order.get(),
            voucher: claim.voucher.get(),
            buyer: claim.buyer.get(),
            quantity: claim.quantity,
            was: status_word(OrderStatus::Waiting),
            status: status_word(status),
            reason: reason.map(reason_word),
            joined: None,
            settled: Some(sequence.get()),
        }
    }
}

/// Where an order goes that leaves the waitlist.
pub(super) fn left_into(reason: LeftReason) -> (OrderStatus, Option<RejectReason>) {
    match reason {
        LeftReason::Withdrawn => (OrderStatus::Withdrawn, None),
        LeftReason::ClosedOut => (OrderStatus::ClosedOut, None),
        LeftReason::NotEnoughUnits => (OrderStatus::Rejected, Some(RejectReason::NotEnoughUnits)),
        LeftReason::LimitReached => (OrderStatus::Rejected, Some(RejectReason::LimitReached)),
    }
}

/// When the gate wrote an entry, if the database can store it: entries may be numbered by hand.
fn storable(entry: EntryId) -> Option<i64> {
    let at = entry.written_at();
    crate::row::moment(at).map(|_| at.as_millis())
}

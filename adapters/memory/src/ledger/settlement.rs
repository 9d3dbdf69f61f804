//! What becomes of each item of a batch.

use seckill_application::ports::{
    AdjustmentState, BatchItem, EntryId, ParkReason, Taken, Unreadable, Verdict,
};
use seckill_domain::{
    AdjustmentId, Claim, Decision, EventKind, LeftReason, NewEvent, Order, OrderId, PartitionId,
    RejectReason, SaleStatus, Sequence, Stage, Ticket, Timestamp, Transition, Voucher, VoucherId,
};

use super::LedgerGuard;
use super::book::{AdjustmentRow, Book};
use super::changes::Changes;
use super::parked::NewParked;

/// A batch being settled, item by item; committed as a whole or not at all.
pub(super) struct Settlement<'a> {
    pub(super) book: &'a Book,
    pub(super) partition: PartitionId,
    /// The ledger's time.
    pub(super) now: Timestamp,
    pub(super) changes: Changes,
    /// When the orders confirmed so far have to be paid.
    pub(super) due: Vec<(OrderId, Timestamp)>,
}

/// A decision with its number and entry.
#[derive(Clone, Copy)]
struct Item<'a> {
    sequence: Sequence,
    entry: EntryId,
    decision: &'a Decision,
}

impl Settlement<'_> {
    pub(super) fn settle(&mut self, item: &BatchItem) -> Verdict {
        match item {
            BatchItem::Unreadable { entry, body, taken } => {
                self.park_unreadable(*entry, body, *taken)
            }
            BatchItem::Decision {
                sequence,
                entry,
                decision,
            } => self.settle_decision(Item {
                sequence: *sequence,
                entry: *entry,
                decision,
            }),
        }
    }

    fn settle_decision(&mut self, item: Item<'_>) -> Verdict {
        let voucher = self.changes.voucher(self.book, item.decision.voucher());
        if voucher.is_none_or(|voucher| voucher.status == SaleStatus::Draft) {
            return self.park_unknown(item);
        }
        if item.decision.claim().is_some_and(|it| !self.is_sound(it)) {
            let detail = "no units, or not what its order says";
            return self.park(item, ParkReason::BadValues, detail);
        }
        match item.decision {
            Decision::Granted(claim) | Decision::Promoted(claim) => self.grant(item, claim),
            Decision::Joined { claim, ticket } => self.join(item, claim, *ticket),
            Decision::Left { claim, reason } => self.end(item, claim, left_into(*reason)),
            Decision::Lost(claim) => {
                let reason = RejectReason::Lost;
                self.end(item, claim, Stage::Rejected { reason })
            }
            Decision::Withdrawn {
                voucher,
                units,
                adjustment,
            } => self.withdraw(item, *voucher, *units, *adjustment),
        }
    }

    /// Whether an order id is new, or belongs to the very same order.
    fn is_sound(&self, claim: &Claim) -> bool {
        let same = |order: &Order| {
            (order.voucher, order.buyer, order.quantity)
                == (claim.voucher, claim.buyer, claim.quantity)
        };
        let known = self.changes.order(self.book, claim.order);
        claim.quantity > 0 && known.is_none_or(same)
    }

    /// Units for an order: a new one, or one that waits.
    fn grant(&mut self, item: Item<'_>, claim: &Claim) -> Verdict {
        let known = self.changes.order(self.book, claim.order).cloned();
        let waited = known.is_some() || matches!(item.decision, Decision::Promoted(_));
        let order = match known.as_ref().map(|order| &order.stage) {
            None => self.new_order(item.entry, claim),
            Some(Stage::Waiting) => known,
            // The gate gave units to an order that had ended without: it is wrong about it.
            Some(Stage::Rejected { reason }) => return Verdict::Rejected(*reason),
            Some(Stage::Withdrawn | Stage::ClosedOut) => {
                return Verdict::Rejected(RejectReason::Lost);
            }
            Some(_) if self.lacks(LedgerGuard::UniqueOrders) => {
                return match self.take_units(claim) {
                    Ok(_) => Verdict::Confirmed,
                    Err(reason) => Verdict::Rejected(reason),
                };
            }
            Some(_) => return Verdict::AlreadyThere,
        };
        let Some(mut order) = order else {
            return self.park_unknown(item);
        };
        let (moved, verdict) = match self.take_units(claim) {
            Ok(expires_at) => (order.promote(expires_at), Verdict::Confirmed),
            Err(reason) => (
                order.leave_waitlist(Stage::Rejected { reason }),
                Verdict::Rejected(reason),
            ),
        };
        debug_assert_eq!(
            moved,
            Ok(Transition::Applied),
            "a waiting order can do both"
        );
        match (verdict, order.expires_at) {
            (Verdict::Confirmed, Some(expires_at)) => {
                self.due.push((order.id, expires_at));
                let happened = if waited {
                    EventKind::Promoted
                } else {
                    EventKind::Order(order.status())
                };
                self.put(order, happened);
            }
            _ => self.put_as_it_is(order),
        }
        verdict
    }

    /// Takes units out of the stock into a buyer's holding, if both allow. Returns the end of the
    /// payment window that begins.
    fn take_units(&mut self, claim: &Claim) -> Result<Timestamp, RejectReason> {
        let voucher = self
            .changes
            .voucher_mut(self.book, claim.voucher)
            .ok_or(RejectReason::NoStock)?;
        let stock = voucher.stock_units.checked_sub(claim.quantity);
        let (limit, window) = (voucher.terms.per_buyer_limit, voucher.terms.payment_window);
        if self.key_is_taken(claim) {
            return Err(RejectReason::LimitReached);
        }
        let holding = self
            .changes
            .holding_mut(self.book, claim.voucher, claim.buyer, limit);
        let mut raised = *holding;
        let within = raised.add(claim.quantity);
        if within.is_err() && self.book.lacks != Some(LedgerGuard::Limit) {
            return Err(RejectReason::LimitReached);
        }
        let unguarded = self.book.lacks == Some(LedgerGuard::Stock);
        let stock = stock.or(unguarded.then_some(0));
        let stock = stock.ok_or(RejectReason::NoStock)?;
        *holding = raised;
        if let Some(voucher) = self.changes.voucher_mut(self.book, claim.voucher) {
            voucher.stock_units = stock;
        }
        Ok(self.now.plus(window))
    }

    fn lacks(&self, guard: LedgerGuard) -> bool {
        self.book.lacks == Some(guard)
    }

    /// Whether another order has the claim's key: the same purchase, twice.
    fn key_is_taken(&self, claim: &Claim) -> bool {
        let user = self.changes.user_of_key(self.book, claim);
        user.is_some_and(|order| order != claim.order)
    }

    fn join(&mut self, item: Item<'_>, claim: &Claim, ticket: Ticket) -> Verdict {
        if self.changes.order(self.book, claim.order).is_some() {
            return Verdict::AlreadyThere;
        }
        let Some(order) = self.new_order(item.entry, claim) else {
            return self.park_unknown(item);
        };
        let refusal = if self.key_is_taken(claim) {
            Some(RejectReason::LimitReached)
        } else if self.changes.waits_already(self.book, claim) && !self.lacks(LedgerGuard::OnePlace)
        {
            // Redis has lost the place that he has.
            Some(RejectReason::Lost)
        } else {
            None
        };
        let (stage, verdict) = match refusal {
            Some(reason) => (Stage::Rejected { reason }, Verdict::Rejected(reason)),
            None => (Stage::Waiting, Verdict::Confirmed),
        };
        self.put_as_it_is(Order {
            ticket: Some(ticket),
            stage,
            ..order
        });
        verdict
    }

    /// Ends an order without units, if it waits or is not there: what was never stored still has to
    /// be readable.
    fn end(&mut self, item: Item<'_>, claim: &Claim, into: Stage) -> Verdict {
        let known = self.changes.order(self.book, claim.order).cloned();
        let Some(mut order) = known.or_else(|| self.new_order(item.entry, claim)) else {
            return self.park_unknown(item);
        };
        if order.leave_waitlist(into) != Ok(Transition::Applied) {
            return Verdict::AlreadyThere;
        }
        self.put_as_it_is(order);
        Verdict::Confirmed
    }

    /// Rejects the order that a discarded message was about, writing it first if there is none.
    /// `false` if the order lives after all, and its units with it.
    pub(super) fn reject_discarded(&mut self, entry: EntryId, claim: &Claim) -> bool {
        let known = self.changes.order(self.book, claim.order).cloned();
        let known = known.or_else(|| self.new_order(entry, claim));
        let ours = |order: &Order| {
            (order.voucher, order.buyer) == (claim.voucher, claim.buyer) && order.quantity > 0
        };
        let Some(mut order) = known.filter(ours) else {
            return true;
        };
        let reason = RejectReason::Discarded;
        if order.leave_waitlist(Stage::Rejected { reason }) == Ok(Transition::Applied) {
            self.put_as_it_is(order);
            return true;
        }
        !order.status().is_live()
    }

    /// Writes an order that has reached the stage it is in.
    fn put_as_it_is(&mut self, order: Order) {
        let happened = EventKind::Order(order.status());
        self.put(order, happened);
    }

    fn put(&mut self, order: Order, kind: EventKind) {
        let event = NewEvent {
            kind,
            ..NewEvent::of_order(&order)
        };
        self.changes.events.push((event, self.now));
        self.changes.put_order(order);
    }

    /// An order that is not there yet, without units so far.
    fn new_order(&self, entry: EntryId, claim: &Claim) -> Option<Order> {
        let voucher = self.changes.voucher(self.book, claim.voucher)?;
        let key = claim.key.clone().filter(|_| !self.key_is_taken(claim));
        Some(Order {
            id: claim.order,
            voucher: claim.voucher,
            buyer: claim.buyer,
            quantity: claim.quantity,
            amount: voucher.terms.price.times(claim.quantity),
            key,
            created_at: entry.written_at(),
            ticket: None,
            expires_at: None,
            stage: Stage::Waiting,
        })
    }

    /// Follows the gate, which has taken the units out, even if the adjustment was given up.
    fn withdraw(
        &mut self,
        item: Item<'_>,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Verdict {
        let row = self.changes.adjustment(self.book, adjustment);
        let fits = |row: &&AdjustmentRow| {
            row.voucher == voucher && i64::from(row.adjustment.delta) == -i64::from(units)
        };
        let Some(row) = row.filter(fits) else {
            let detail = "no such adjustment of so many units";
            return self.park(item, ParkReason::BadValues, detail);
        };
        if row.adjustment.state == AdjustmentState::Applied {
            return Verdict::AlreadyThere;
        }
        let mut row = row.clone();
        let taken = self
            .changes
            .voucher_mut(self.book, voucher)
            .is_some_and(|voucher| shrink(voucher, units));
        let (state, verdict) = if taken {
            let event = NewEvent::of_voucher(voucher, EventKind::StockAdjusted);
            self.changes.events.push((event, self.now));
            (AdjustmentState::Applied, Verdict::Confirmed)
        } else {
            let reason = RejectReason::NoStock;
            (AdjustmentState::Refused, Verdict::Rejected(reason))
        };
        row.adjustment.state = state;
        self.changes.adjustments.insert(adjustment, row);
        verdict
    }

    /// What an entry of the gate names is put aside as a decision is.
    fn park_unreadable(
        &mut self,
        entry: EntryId,
        body: &Unreadable,
        taken: Option<Taken>,
    ) -> Verdict {
        let named = taken.and_then(|taken| Some((taken.first, body.named.clone()?)));
        let aside = named.as_ref().map(|(_, named)| self.set_aside(named));
        let (units, unheld) = aside.unwrap_or_default();
        self.changes.parked.push(NewParked {
            partition: self.partition,
            entry,
            decision: named,
            raw: body.raw.clone(),
            reason: ParkReason::Unreadable,
            detail: body.reason.clone(),
            units,
            unheld,
            at: self.now,
        });
        Verdict::Parked(ParkReason::Unreadable)
    }

    fn park_unknown(&mut self, item: Item<'_>) -> Verdict {
        let detail = "its voucher is not in the ledger, or a draft";
        self.park(item, ParkReason::UnknownVoucher, detail)
    }

    /// Whether the order that a decision is about has its units in the ledger.
    fn is_live(&self, decision: &Decision) -> bool {
        let live = |claim: &Claim| {
            let order = self.changes.order(self.book, claim.order);
            self.is_sound(claim) && order.is_some_and(|order| order.status().is_live())
        };
        decision.claim().is_some_and(live)
    }

    /// Takes the units of a decision out of the stock, as far as there are any. Returns how many, and
    /// how many there was no stock for: all of a voucher that is not there. An order that has its
    /// units takes none.
    fn set_aside(&mut self, decision: &Decision) -> (u32, u32) {
        if self.is_live(decision) {
            return (0, 0);
        }
        let taken = decision.units_taken();
        if self.lacks(LedgerGuard::Aside) {
            return (0, 0);
        }
        let voucher = self.changes.voucher_mut(self.book, decision.voucher());
        voucher.map_or((0, taken), |voucher| {
            let units = taken.min(voucher.stock_units);
            voucher.stock_units -= units;
            (units, 0)
        })
    }

    /// Puts a decision aside. The units that the gate took for it leave the stock, as far as there
    /// is any.
    fn park(&mut self, item: Item<'_>, reason: ParkReason, detail: &str) -> Verdict {
        let (units, unheld) = self.set_aside(item.decision);
        self.changes.parked.push(NewParked {
            partition: self.partition,
            entry: item.entry,
            decision: Some((item.sequence, item.decision.clone())),
            raw: format!("{:?}", item.decision),
            reason,
            detail: detail.to_owned(),
            units,
            unheld,
            at: self.now,
        });
        Verdict::Parked(reason)
    }
}

/// Where an order goes that leaves the waitlist.
fn left_into(reason: LeftReason) -> Stage {
    match reason {
        LeftReason::Withdrawn => Stage::Withdrawn,
        LeftReason::ClosedOut => Stage::ClosedOut,
        LeftReason::NotEnoughUnits => Stage::Rejected {
            reason: RejectReason::NotEnoughUnits,
        },
        LeftReason::LimitReached => Stage::Rejected {
            reason: RejectReason::LimitReached,
        },
    }
}

/// Takes units out of total and stock. `false`, changing nothing, if the stock has too few.
fn shrink(voucher: &mut Voucher, units: u32) -> bool {
    let Some(stock) = voucher.stock_units.checked_sub(units) else {
        return false;
    };
    voucher.stock_units = stock;
    voucher.total_units -= units;
    true
}

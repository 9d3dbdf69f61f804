//! What becomes of each item of a batch.

use seckill_application::ports::{
    AdjustmentState, BatchItem, EntryId, ParkReason, Unreadable, Verdict,
};
use seckill_domain::{
    AdjustmentId, Claim, Decision, LeftReason, Order, PartitionId, RejectReason, SaleStatus,
    Sequence, Stage, Ticket, Timestamp, Transition, Voucher, VoucherId,
};

use super::book::{Book, ParkedMessage};
use super::changes::Changes;

/// A batch being settled, item by item; committed as a whole or not at all.
pub(super) struct Settlement<'a> {
    pub(super) book: &'a Book,
    pub(super) partition: PartitionId,
    /// The ledger's time.
    pub(super) now: Timestamp,
    pub(super) changes: Changes,
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
            BatchItem::Unreadable { entry, body } => self.park_unreadable(*entry, body),
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
            return self.park(item, ParkReason::UnknownVoucher);
        }
        if let Some(claim) = item.decision.claim() {
            if self.changes.is_parked(self.book, claim.order) {
                return Verdict::AlreadyThere;
            }
            if claim.quantity == 0 || self.contradicts(claim) {
                return self.park(item, ParkReason::BadValues);
            }
        }
        match item.decision {
            Decision::Granted(claim) => self.take(item, claim, None),
            Decision::Promoted(claim) => {
                self.take(item, claim, Some(Ticket::drawn_at(item.sequence)))
            }
            Decision::Joined { claim, ticket } => {
                self.insert(item, claim, Some(*ticket), Stage::Waiting)
            }
            Decision::Left { claim, reason } => self.leave(item, claim, *reason),
            Decision::Lost(claim) => {
                let reason = RejectReason::Lost;
                self.insert(item, claim, None, Stage::Rejected { reason })
            }
            Decision::Withdrawn {
                voucher,
                units,
                adjustment,
            } => self.withdraw(item, *voucher, *units, *adjustment),
        }
    }

    /// Whether the ledger has another order under this id.
    fn contradicts(&self, claim: &Claim) -> bool {
        let known = self.changes.order(self.book, claim.order);
        known.is_some_and(|order| {
            (order.voucher, order.buyer, order.quantity)
                != (claim.voucher, claim.buyer, claim.quantity)
        })
    }

    /// Units for an order: a new one, or one that waits. A promotion whose joining never came gets
    /// the ticket it is given.
    fn take(&mut self, item: Item<'_>, claim: &Claim, ticket: Option<Ticket>) -> Verdict {
        let known = self.changes.order(self.book, claim.order).cloned();
        let mut order = match known {
            Some(order) if order.stage != Stage::Waiting => return Verdict::AlreadyThere,
            Some(order) => order,
            None => match self.new_order(item, claim, ticket, Stage::Waiting) {
                Some(order) => order,
                None => return self.park(item, ParkReason::UnknownVoucher),
            },
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
        self.changes.put_order(order);
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
        let holding = self
            .changes
            .holding_mut(self.book, claim.voucher, claim.buyer, limit);
        let mut raised = *holding;
        raised
            .add(claim.quantity)
            .map_err(|_| RejectReason::LimitReached)?;
        let stock = stock.ok_or(RejectReason::NoStock)?;
        *holding = raised;
        if let Some(voucher) = self.changes.voucher_mut(self.book, claim.voucher) {
            voucher.stock_units = stock;
        }
        Ok(self.now.plus(window))
    }

    fn insert(
        &mut self,
        item: Item<'_>,
        claim: &Claim,
        ticket: Option<Ticket>,
        stage: Stage,
    ) -> Verdict {
        if self.changes.order(self.book, claim.order).is_some() {
            return Verdict::AlreadyThere;
        }
        match self.new_order(item, claim, ticket, stage) {
            Some(order) => self.changes.put_order(order),
            None => return self.park(item, ParkReason::UnknownVoucher),
        }
        Verdict::Confirmed
    }

    fn new_order(
        &self,
        item: Item<'_>,
        claim: &Claim,
        ticket: Option<Ticket>,
        stage: Stage,
    ) -> Option<Order> {
        let voucher = self.changes.voucher(self.book, claim.voucher)?;
        Some(Order {
            id: claim.order,
            voucher: claim.voucher,
            buyer: claim.buyer,
            quantity: claim.quantity,
            amount: voucher.terms.price.times(claim.quantity),
            key: claim.key.clone(),
            created_at: item.entry.written_at(),
            ticket,
            expires_at: None,
            stage,
        })
    }

    fn leave(&mut self, item: Item<'_>, claim: &Claim, reason: LeftReason) -> Verdict {
        let into = match reason {
            LeftReason::Withdrawn => Stage::Withdrawn,
            LeftReason::ClosedOut => Stage::ClosedOut,
            LeftReason::NotEnoughUnits => Stage::Rejected {
                reason: RejectReason::NotEnoughUnits,
            },
            LeftReason::LimitReached => Stage::Rejected {
                reason: RejectReason::LimitReached,
            },
        };
        let Some(mut order) = self.changes.order(self.book, claim.order).cloned() else {
            // Its joining never came; the buyer still has to be able to read how it ended.
            let ticket = Some(Ticket::drawn_at(item.sequence));
            return self.insert(item, claim, ticket, into);
        };
        if order.leave_waitlist(into) != Ok(Transition::Applied) {
            return Verdict::AlreadyThere;
        }
        self.changes.put_order(order);
        Verdict::Confirmed
    }

    fn withdraw(
        &mut self,
        item: Item<'_>,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Verdict {
        let row = self.changes.adjustment(self.book, adjustment);
        let Some(row) = row.filter(|row| row.voucher == voucher) else {
            return self.park(item, ParkReason::BadValues);
        };
        if row.adjustment.delta.unsigned_abs() != units || row.adjustment.delta >= 0 {
            return self.park(item, ParkReason::BadValues);
        }
        if row.adjustment.state != AdjustmentState::Pending {
            return Verdict::AlreadyThere;
        }
        let taken = self
            .changes
            .voucher_mut(self.book, voucher)
            .is_some_and(|voucher| shrink(voucher, units));
        let (state, verdict) = if taken {
            (AdjustmentState::Applied, Verdict::Confirmed)
        } else {
            let reason = RejectReason::NoStock;
            (AdjustmentState::Refused, Verdict::Rejected(reason))
        };
        self.changes.settle_adjustment(self.book, adjustment, state);
        verdict
    }

    fn park_unreadable(&mut self, entry: EntryId, body: &Unreadable) -> Verdict {
        let reason = ParkReason::Unreadable;
        self.changes.parked.push(ParkedMessage {
            partition: self.partition,
            entry,
            sequence: None,
            decision: None,
            raw: Some(body.raw.clone()),
            reason,
            units: 0,
        });
        Verdict::Parked(reason)
    }

    /// Puts a decision aside. The units that the gate took for it leave the stock, as far as there
    /// is any.
    fn park(&mut self, item: Item<'_>, reason: ParkReason) -> Verdict {
        let taken = item.decision.units_taken();
        let voucher = self.changes.voucher_mut(self.book, item.decision.voucher());
        let units = voucher.map_or(0, |voucher| {
            let units = taken.min(voucher.stock_units);
            voucher.stock_units -= units;
            units
        });
        self.changes.parked.push(ParkedMessage {
            partition: self.partition,
            entry: item.entry,
            sequence: Some(item.sequence),
            decision: Some(item.decision.clone()),
            raw: None,
            reason,
            units,
        });
        Verdict::Parked(reason)
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

//! The rule, kept like a gate: with an index of decided orders, and numbers for decisions.

use std::collections::HashMap;

use seckill_application::ports::{
    FollowReply, Holder, KeyUse, LeaveReply, LoadChunk, OpenSale, Place, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, Epoch, Followed, GateUpdate, Leave,
    OrderId, PlaceAtFirst, Sale, SaleTerms, Seat, Sequence, Ticket, Timestamp, VoucherId,
};

use crate::contract::opening::FIRST_EPOCH;

/// More promotions than any of these lives needs at once.
const PROMOTIONS: usize = 100;

/// A sale by the rule.
pub(super) struct Rule {
    voucher: VoucherId,
    pub(super) sale: Sale,
    decided: HashMap<OrderId, PlaceAtFirst>,
    withdrawn: Vec<AdjustmentId>,
    pub(super) epoch: Epoch,
    pub(super) sequence: Sequence,
    /// Since the last time somebody looked.
    pub(super) decisions: Vec<Decision>,
}

impl Rule {
    pub(super) fn opened(voucher: VoucherId, open: &OpenSale) -> Self {
        Self {
            voucher,
            sale: Sale::new(voucher, open.terms, open.free, open.version),
            decided: HashMap::new(),
            withdrawn: Vec::new(),
            epoch: FIRST_EPOCH,
            sequence: Sequence::default(),
            decisions: Vec::new(),
        }
    }

    fn write(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        for decision in decisions {
            self.sequence = self.sequence.next();
            if let Some(claim) = decision.claim() {
                let first = match decision {
                    Decision::Granted(_) | Decision::Lost(_) => PlaceAtFirst::Granted,
                    _ => PlaceAtFirst::Waitlisted,
                };
                self.decided.entry(claim.order).or_insert(first);
            }
            self.decisions.push(decision);
        }
    }

    pub(super) fn admit(&mut self, attempts: &[Attempt], now: Timestamp) -> Vec<Admission> {
        let mut admissions = Vec::new();
        for attempt in attempts {
            if let Some(first) = self.decided.get(&attempt.order) {
                admissions.push(self.sale.settled(attempt, *first));
                continue;
            }
            let turn = Ticket::drawn_at(self.epoch, self.sequence.next());
            let (admission, decision) = self.sale.admit(attempt, now, turn);
            self.write(decision);
            admissions.push(admission);
        }
        admissions
    }

    /// Applies the update and serves the waitlist.
    pub(super) fn follow(&mut self, update: &GateUpdate, now: Timestamp) -> FollowReply {
        match self.sale.follow(update) {
            Followed::AlreadyApplied => FollowReply::AlreadyApplied,
            Followed::Gap { at } => FollowReply::Gap { at },
            Followed::Applied => {
                self.serve(now);
                FollowReply::Applied { more: false }
            }
        }
    }

    /// Serves the waitlist, or sends it home, until nothing is left to do.
    pub(super) fn serve(&mut self, now: Timestamp) {
        let promoted = self.sale.promote(now, PROMOTIONS);
        self.write(promoted);
        let sent_home = self.sale.drain_waitlist(now, PROMOTIONS);
        self.write(sent_home);
    }

    pub(super) fn leave(&mut self, buyer: BuyerId, now: Timestamp) -> LeaveReply {
        match self.sale.leave(buyer) {
            Leave::NotWaiting => LeaveReply::NotWaiting,
            Leave::AlreadyPromoted { order } => LeaveReply::AlreadyPromoted(order),
            Leave::Left(decision) => {
                let order = decision.claim().map(|claim| claim.order);
                self.write([decision]);
                self.serve(now);
                LeaveReply::Left(order.expect("leaving is about an order"))
            }
        }
    }

    pub(super) fn withdraw(&mut self, units: u32, adjustment: AdjustmentId) -> WithdrawReply {
        if self.withdrawn.contains(&adjustment) {
            return WithdrawReply::Withdrawn;
        }
        match self.sale.withdraw(units, adjustment) {
            Err(free) => WithdrawReply::NotEnough { free },
            Ok(decision) => {
                self.withdrawn.push(adjustment);
                self.write([decision]);
                WithdrawReply::Withdrawn
            }
        }
    }

    pub(super) fn offer(&mut self, claims: &[Claim], seats: &[Seat]) {
        for claim in claims {
            if self.decided.contains_key(&claim.order) || self.knows(claim) {
                continue;
            }
            let decision = if self.sale.retake(claim) {
                Decision::Granted(claim.clone())
            } else {
                Decision::Lost(claim.clone())
            };
            self.write([decision]);
        }
        for seat in seats {
            let claim = self.claim_of(seat);
            if self.decided.contains_key(&claim.order) || self.knows(&claim) {
                continue;
            }
            let ticket = seat.ticket;
            let decision = if self.sale.reseat(seat) {
                Decision::Joined { claim, ticket }
            } else {
                Decision::Lost(claim)
            };
            self.write([decision]);
        }
    }

    /// Whatever the gate holds: only what stands in the stream is not lost.
    pub(super) fn lose(&mut self, claims: &[Claim]) {
        for claim in claims {
            if !self.decided.contains_key(&claim.order) {
                self.write([Decision::Lost(claim.clone())]);
            }
        }
    }

    fn claim_of(&self, seat: &Seat) -> Claim {
        Claim {
            order: seat.order,
            voucher: self.voucher,
            buyer: seat.buyer,
            quantity: seat.quantity,
            key: seat.key.clone(),
        }
    }

    fn knows(&self, claim: &Claim) -> bool {
        let seat = self.sale.waitlist().seat(claim.buyer);
        let waits = seat.is_some_and(|seat| seat.order == claim.order);
        waits || self.sale.holds(claim.buyer, claim.order)
    }

    pub(super) fn place(&self, buyer: BuyerId) -> Option<Place> {
        let waitlist = self.sale.waitlist();
        let length = waitlist.len();
        if let (Some(seat), Some(position)) = (waitlist.seat(buyer), waitlist.position(buyer)) {
            return Some(Place::Waiting {
                order: seat.order,
                position,
                length,
            });
        }
        let held = self.sale.held_by(buyer);
        let promoted = held.iter().find(|held| held.promoted)?;
        Some(Place::Promoted {
            order: promoted.order,
            length,
        })
    }

    /// What a ledger that has applied everything would say: what opens the sale, and who is in it.
    pub(super) fn snapshot(&self) -> (OpenSale, LoadChunk) {
        let pulse = self.sale.pulse();
        let mut holders: Vec<Holder> = self
            .sale
            .holders()
            .map(|(buyer, held)| Holder { buyer, held: *held })
            .collect();
        // A buyer's orders keep their order; buyers need none.
        holders.sort_by_key(|holder| holder.buyer);
        let keys = self.sale.keys().map(|(buyer, key, first)| KeyUse {
            buyer,
            key: key.clone(),
            first: *first,
        });
        let mut seats: Vec<Seat> = self.sale.waitlist().seats().cloned().collect();
        // By id, which is not by turn.
        seats.sort_by_key(|seat| seat.order);
        let chunk = LoadChunk {
            holders,
            seats,
            keys: keys.collect(),
        };
        let terms: SaleTerms = *self.sale.terms();
        let open = OpenSale {
            terms,
            free: pulse.free,
            version: pulse.version,
            applied: self.sequence,
        };
        (open, chunk)
    }

    /// The same sale after it was loaded from its own snapshot into a new life: who is in it stays,
    /// and which orders were decided is forgotten.
    pub(super) fn reload(&mut self) {
        self.load_again();
        self.epoch = self.epoch.next();
        self.decided.clear();
        self.withdrawn.clear();
    }

    /// The same sale after it was loaded from its own snapshot.
    pub(super) fn load_again(&mut self) {
        let (open, chunk) = self.snapshot();
        let mut sale = Sale::new(self.voucher, open.terms, open.free, open.version);
        for holder in chunk.holders {
            sale.restore_holder(holder.buyer, holder.held);
        }
        for seat in chunk.seats {
            sale.restore_seat(seat);
        }
        for used in chunk.keys {
            sale.restore_key(used.buyer, used.key, used.first);
        }
        self.sale = sale;
    }
}

//! A sale at the gate: who gets a unit, decided one attempt at a time.
//!
//! This is the rule that the Lua scripts carry out inside Redis and that the in-memory gate calls
//! directly. The contract suites hold both to it.

mod follow;
mod memory;
mod offers;
mod terms;

use std::collections::HashMap;

use crate::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, GateVersion, IdempotencyKey,
    LeftReason, OrderId, PlaceAtFirst, Seat, Ticket, Timestamp, VoucherId, Waitlist,
};

pub use memory::{Held, Remembered};
pub use terms::{SaleStatus, SaleTerms};

/// The state of one voucher at the gate.
#[derive(Debug, Clone)]
pub struct Sale {
    voucher: VoucherId,
    terms: SaleTerms,
    free: u32,
    version: GateVersion,
    holders: HashMap<BuyerId, Vec<Held>>,
    waitlist: Waitlist,
    keys: HashMap<(BuyerId, IdempotencyKey), Remembered>,
}

/// What a sale looks like right after a decision: enough to answer later buyers without asking
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Units nobody has.
    pub free: u32,
    /// Buyers who wait.
    pub waiting: u32,
    /// Whether the waitlist would take another buyer.
    pub waitlist_open: bool,
    /// How far the gate has followed the ledger.
    pub version: GateVersion,
}

/// What became of an update from the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// Applied now.
    Applied,
    /// It is not newer than what was applied.
    AlreadyApplied,
    /// An earlier one is missing.
    Gap {
        /// How far the gate has followed.
        at: GateVersion,
    },
}

/// What became of a wish to leave the waitlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// The place was given up by this decision.
    Left(Decision),
    /// There was no place.
    NotWaiting,
    /// The buyer has been given his units.
    AlreadyPromoted {
        /// The order that holds them.
        order: OrderId,
    },
}

impl Sale {
    /// A sale with nobody in it. Holders, seats and keys are restored one by one.
    pub fn new(voucher: VoucherId, terms: SaleTerms, free: u32, version: GateVersion) -> Self {
        Self {
            voucher,
            terms,
            free,
            version,
            holders: HashMap::new(),
            waitlist: Waitlist::default(),
            keys: HashMap::new(),
        }
    }

    /// Puts a holder back, as the ledger knows him. Takes no unit: `free` is already without it.
    pub fn restore_holder(&mut self, buyer: BuyerId, held: Held) {
        let orders = self.holders.entry(buyer).or_default();
        if !orders.iter().any(|known| known.order == held.order) {
            orders.push(held);
        }
    }

    /// Puts a waiting buyer back.
    pub fn restore_seat(&mut self, seat: Seat) {
        self.waitlist.join(seat);
    }

    /// Puts the first use of a key back.
    pub fn restore_key(&mut self, buyer: BuyerId, key: IdempotencyKey, first: Remembered) {
        self.keys.entry((buyer, key)).or_insert(first);
    }

    /// Answers an attempt, in this order: is its key known? is the buyer at his limit, or waiting
    /// already? (these are answered even when the sale is paused or over) is the sale on? then
    /// units, or a place. `turn` is the ticket he gets if he joins.
    ///
    /// Whether this very order id was decided before is asked by the caller, who keeps the index
    /// of decided orders, with [`Sale::settled`].
    pub fn admit(
        &mut self,
        attempt: &Attempt,
        now: Timestamp,
        turn: Ticket,
    ) -> (Admission, Option<Decision>) {
        if let Some(known) = self.known(attempt) {
            return (known, None);
        }
        if let Some(refusal) = self.terms.refusal(now) {
            return (refusal, None);
        }
        let remaining = self
            .terms
            .per_buyer_limit
            .saturating_sub(self.units_of(attempt.buyer));
        if attempt.quantity > remaining {
            return (Admission::LimitExceeded { remaining }, None);
        }
        let claim = Claim::of(self.voucher, attempt);
        if self.waitlist.is_empty() && attempt.quantity <= self.free {
            self.grant(&claim, false);
            self.remember(&claim, PlaceAtFirst::Granted);
            return (
                Admission::Granted {
                    order: attempt.order,
                },
                Some(Decision::Granted(claim)),
            );
        }
        if self.waitlist.len() < self.terms.waitlist_capacity {
            self.join(&claim, turn);
            let admission = Admission::Waitlisted {
                order: attempt.order,
                position: self.waitlist.len(),
                ticket: turn,
            };
            let ticket = turn;
            return (admission, Some(Decision::Joined { claim, ticket }));
        }
        (Admission::SoldOut, None)
    }

    /// The answer to a repeat of an attempt that was decided before.
    pub fn settled(&self, attempt: &Attempt, first: PlaceAtFirst) -> Admission {
        let order = attempt.order;
        if self.holds(attempt.buyer, order) {
            return Admission::Granted { order };
        }
        match self.waitlist.seat(attempt.buyer) {
            Some(seat) if seat.order == order => Admission::Waitlisted {
                order,
                position: self.place(attempt.buyer),
                ticket: seat.ticket,
            },
            _ => Admission::Replayed { order, first },
        }
    }

    fn known(&self, attempt: &Attempt) -> Option<Admission> {
        let key = attempt.key.clone().map(|key| (attempt.buyer, key));
        if let Some(first) = key.and_then(|key| self.keys.get(&key)) {
            return Some(if first.quantity == attempt.quantity {
                Admission::Replayed {
                    order: first.order,
                    first: first.first,
                }
            } else {
                Admission::KeyReused { order: first.order }
            });
        }
        if self.units_of(attempt.buyer) >= self.terms.per_buyer_limit {
            let orders = self
                .held_by(attempt.buyer)
                .iter()
                .map(|held| held.order)
                .collect();
            return Some(Admission::AlreadyHeld { orders });
        }
        let seat = self.waitlist.seat(attempt.buyer)?;
        let position = self.place(attempt.buyer);
        Some(Admission::AlreadyWaiting {
            order: seat.order,
            position,
        })
    }

    fn grant(&mut self, claim: &Claim, promoted: bool) {
        self.free -= claim.quantity;
        let held = Held {
            order: claim.order,
            quantity: claim.quantity,
            promoted,
        };
        self.holders.entry(claim.buyer).or_default().push(held);
    }

    fn join(&mut self, claim: &Claim, ticket: Ticket) {
        self.waitlist.join(Seat {
            ticket,
            order: claim.order,
            buyer: claim.buyer,
            quantity: claim.quantity,
            key: claim.key.clone(),
        });
        self.remember(claim, PlaceAtFirst::Waitlisted);
    }

    fn remember(&mut self, claim: &Claim, first: PlaceAtFirst) {
        if let Some(key) = claim.key.clone() {
            let remembered = Remembered {
                order: claim.order,
                quantity: claim.quantity,
                first,
            };
            self.keys.insert((claim.buyer, key), remembered);
        }
    }

    /// Gives free units to the head of the waitlist, again and again, at most `max` times. Free
    /// units accumulate for a head that wants several; nobody is served before him. A head that can
    /// never be served leaves.
    pub fn promote(&mut self, now: Timestamp, max: usize) -> Vec<Decision> {
        let mut decisions = Vec::new();
        if self.terms.refusal(now).is_some() {
            return decisions;
        }
        while decisions.len() < max {
            let Some(head) = self.waitlist.head() else {
                break;
            };
            let hopeless = self.hopeless(head);
            if hopeless.is_none() && head.quantity > self.free {
                break;
            }
            let buyer = head.buyer;
            let Some(seat) = self.waitlist.leave(buyer) else {
                break;
            };
            let claim = self.claim_of(seat);
            decisions.push(if let Some(reason) = hopeless {
                Decision::Left { claim, reason }
            } else {
                self.grant(&claim, true);
                Decision::Promoted(claim)
            });
        }
        decisions
    }

    fn hopeless(&self, head: &Seat) -> Option<LeftReason> {
        if head.quantity > self.terms.total_units {
            Some(LeftReason::NotEnoughUnits)
        } else if self.units_of(head.buyer) + head.quantity > self.terms.per_buyer_limit {
            Some(LeftReason::LimitReached)
        } else {
            None
        }
    }

    fn claim_of(&self, seat: Seat) -> Claim {
        seat.into_claim(self.voucher)
    }

    /// Gives a buyer's place up, if he still has it.
    pub fn leave(&mut self, buyer: BuyerId) -> Leave {
        if let Some(seat) = self.waitlist.leave(buyer) {
            let claim = self.claim_of(seat);
            return Leave::Left(Decision::Left {
                claim,
                reason: LeftReason::Withdrawn,
            });
        }
        match self.held_by(buyer).iter().find(|held| held.promoted) {
            Some(held) => Leave::AlreadyPromoted { order: held.order },
            None => Leave::NotWaiting,
        }
    }

    /// Takes up to `max` buyers off the waitlist of a sale that is over, in order of arrival.
    pub fn drain_waitlist(&mut self, now: Timestamp, max: usize) -> Vec<Decision> {
        let mut decisions = Vec::new();
        while self.terms.is_over(now) && decisions.len() < max {
            let Some(buyer) = self.waitlist.head().map(|head| head.buyer) else {
                break;
            };
            let Some(seat) = self.waitlist.leave(buyer) else {
                break;
            };
            let claim = self.claim_of(seat);
            decisions.push(Decision::Left {
                claim,
                reason: LeftReason::ClosedOut,
            });
        }
        decisions
    }

    /// Takes free units out of the sale, or answers how many there are.
    pub fn withdraw(&mut self, units: u32, adjustment: AdjustmentId) -> Result<Decision, u32> {
        if units > self.free {
            return Err(self.free);
        }
        self.free -= units;
        self.terms.total_units = self.terms.total_units.saturating_sub(units);
        Ok(Decision::Withdrawn {
            voucher: self.voucher,
            units,
            adjustment,
        })
    }

    fn place(&self, buyer: BuyerId) -> u32 {
        self.waitlist.position(buyer).unwrap_or(0)
    }

    fn units_of(&self, buyer: BuyerId) -> u32 {
        self.held_by(buyer).iter().map(|held| held.quantity).sum()
    }

    /// Whether the buyer holds units under this order.
    pub fn holds(&self, buyer: BuyerId, order: OrderId) -> bool {
        self.held_by(buyer).iter().any(|held| held.order == order)
    }

    /// A buyer's live orders, the first one first.
    pub fn held_by(&self, buyer: BuyerId) -> &[Held] {
        self.holders.get(&buyer).map_or(&[], Vec::as_slice)
    }

    /// Everybody who holds units.
    pub fn holders(&self) -> impl Iterator<Item = (BuyerId, &Held)> {
        self.holders
            .iter()
            .flat_map(|(buyer, orders)| orders.iter().map(|held| (*buyer, held)))
    }

    /// The first use of every key.
    pub fn keys(&self) -> impl Iterator<Item = (BuyerId, &IdempotencyKey, &Remembered)> {
        self.keys
            .iter()
            .map(|((buyer, key), first)| (*buyer, key, first))
    }

    /// Who waits.
    pub fn waitlist(&self) -> &Waitlist {
        &self.waitlist
    }

    /// What the gate goes by.
    pub fn terms(&self) -> &SaleTerms {
        &self.terms
    }

    /// What the sale looks like now.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            free: self.free,
            waiting: self.waitlist.len(),
            waitlist_open: self.waitlist.len() < self.terms.waitlist_capacity,
            version: self.version,
        }
    }
}

//! Who waits, in order of arrival.

use std::collections::{BTreeMap, HashMap};

use crate::{BuyerId, Claim, IdempotencyKey, OrderId, VoucherId};

/// A turn on the waitlist, from the life of the partition and the number of the decision by which
/// the buyer joined. Rising, so that two arrivals in the same millisecond still have an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// Wraps a stored number.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for storage.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A buyer's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// His turn.
    pub ticket: Ticket,
    /// The order that waits; he keeps it when he is promoted.
    pub order: OrderId,
    /// Who waits.
    pub buyer: BuyerId,
    /// How many units he wants.
    pub quantity: u32,
    /// The key he joined with.
    pub key: Option<IdempotencyKey>,
}

impl Seat {
    /// What the buyer wants of the voucher.
    pub fn into_claim(self, voucher: VoucherId) -> Claim {
        Claim {
            order: self.order,
            voucher,
            buyer: self.buyer,
            quantity: self.quantity,
            key: self.key,
        }
    }
}

/// The waitlist of one voucher: one place per buyer, served strictly by ticket.
#[derive(Debug, Clone, Default)]
pub struct Waitlist {
    /// With their orders: a store that goes back may give a turn twice before anybody notices, and
    /// both buyers wait.
    by_ticket: BTreeMap<(Ticket, OrderId), Seat>,
    tickets: HashMap<BuyerId, (Ticket, OrderId)>,
}

impl Waitlist {
    /// Takes a place. A buyer who waits already keeps the place he has.
    pub fn join(&mut self, seat: Seat) {
        if self.tickets.contains_key(&seat.buyer) {
            return;
        }
        let turn = (seat.ticket, seat.order);
        self.tickets.insert(seat.buyer, turn);
        self.by_ticket.insert(turn, seat);
    }

    /// Gives a place up.
    pub fn leave(&mut self, buyer: BuyerId) -> Option<Seat> {
        let ticket = self.tickets.remove(&buyer)?;
        self.by_ticket.remove(&ticket)
    }

    /// Gives a place up if it is this order's.
    pub fn leave_order(&mut self, buyer: BuyerId, order: OrderId) -> Option<Seat> {
        self.seat(buyer).filter(|seat| seat.order == order)?;
        self.leave(buyer)
    }

    /// Whose turn it is.
    pub fn head(&self) -> Option<&Seat> {
        self.by_ticket.values().next()
    }

    /// A buyer's seat.
    pub fn seat(&self, buyer: BuyerId) -> Option<&Seat> {
        self.by_ticket.get(self.tickets.get(&buyer)?)
    }

    /// A buyer's place, counted from 1.
    pub fn position(&self, buyer: BuyerId) -> Option<u32> {
        let ticket = self.tickets.get(&buyer)?;
        let ahead = self.by_ticket.range(..ticket).count();
        Some(u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// How many wait.
    pub fn len(&self) -> u32 {
        u32::try_from(self.by_ticket.len()).unwrap_or(u32::MAX)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_ticket.is_empty()
    }

    /// Every seat, in order of arrival.
    pub fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.by_ticket.values()
    }
}

//! What the gate decided and the ledger could not apply stands nevertheless.

use std::collections::{HashMap, HashSet};

use seckill_application::ports::{Holder, KeyUse, LoadChunk};
use seckill_domain::{
    BuyerId, Claim, Decision, Held, IdempotencyKey, OrderId, PlaceAtFirst, Remembered, Seat, Ticket,
};
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;
use crate::row::get;
use crate::wire;

/// A sale with its parked messages, oldest first: the newest one about an order decides. A grant
/// holds its units, a place waits in its turn, and their keys are used.
pub(super) fn with(all: LoadChunk, rows: &[MySqlRow]) -> Result<LoadChunk, Trouble> {
    if rows.is_empty() {
        return Ok(all);
    }
    let mut sale = Sale::of(all);
    for row in rows {
        let known: Option<u64> = get(row, "user_id")?;
        let took = get::<u32>(row, "units")? + get::<u32>(row, "unheld_units")?;
        // What an order that has its units already has come to since, the ledger knows.
        let takes_nothing = |claim: &Claim| took == 0 && known == Some(claim.buyer.get());
        match wire::read_decision(get(row, "payload")?)? {
            Some(Decision::Granted(claim) | Decision::Promoted(claim)) if takes_nothing(&claim) => {
            }
            Some(Decision::Granted(claim)) => sale.hold(claim, PlaceAtFirst::Granted),
            Some(Decision::Promoted(claim)) => sale.hold(claim, PlaceAtFirst::Waitlisted),
            // The same.
            Some(Decision::Joined { claim, ticket }) if known.is_none() => {
                sale.wait(claim, ticket);
            }
            Some(Decision::Left { claim, .. } | Decision::Lost(claim)) => sale.leave(&claim),
            Some(Decision::Joined { .. } | Decision::Withdrawn { .. }) | None => {}
        }
    }
    Ok(sale.whole())
}

struct Sale {
    holders: Vec<Holder>,
    held: HashSet<(OrderId, BuyerId)>,
    seats: HashMap<OrderId, Seat>,
    /// Under which order somebody waits.
    waits: HashMap<BuyerId, OrderId>,
    /// Who waits in the ledger, and has no other place.
    settled: HashSet<BuyerId>,
    keys: Vec<KeyUse>,
    used: HashSet<(BuyerId, IdempotencyKey)>,
}

impl Sale {
    fn of(all: LoadChunk) -> Self {
        let held = all.holders.iter();
        let used = all.keys.iter();
        Self {
            held: held.map(|it| (it.held.order, it.buyer)).collect(),
            holders: all.holders,
            waits: HashMap::new(),
            settled: all.seats.iter().map(|seat| seat.buyer).collect(),
            used: used.map(|it| (it.buyer, it.key.clone())).collect(),
            keys: all.keys,
            seats: all.seats.into_iter().map(|it| (it.order, it)).collect(),
        }
    }

    fn hold(&mut self, claim: Claim, first: PlaceAtFirst) {
        if !self.held.insert((claim.order, claim.buyer)) {
            return;
        }
        self.seats.remove(&claim.order);
        self.holders.push(Holder {
            buyer: claim.buyer,
            held: Held {
                order: claim.order,
                quantity: claim.quantity,
                promoted: first == PlaceAtFirst::Waitlisted,
            },
        });
        self.use_key(claim, first);
    }

    /// One place for each buyer: a newer one was given because the gate had lost the other.
    fn wait(&mut self, claim: Claim, ticket: Ticket) {
        let Claim {
            order,
            buyer,
            quantity,
            ..
        } = claim;
        if self.settled.contains(&buyer) || self.held.contains(&(order, buyer)) {
            return;
        }
        if let Some(other) = self.waits.insert(buyer, order) {
            self.seats.remove(&other);
        }
        let seat = Seat {
            ticket,
            order,
            buyer,
            quantity,
            key: claim.key.clone(),
        };
        self.seats.insert(order, seat);
        self.use_key(claim, PlaceAtFirst::Waitlisted);
    }

    fn leave(&mut self, claim: &Claim) {
        self.seats.remove(&claim.order);
    }

    fn use_key(&mut self, claim: Claim, first: PlaceAtFirst) {
        let Some(key) = claim.key else {
            return;
        };
        if self.used.insert((claim.buyer, key.clone())) {
            self.keys.push(KeyUse {
                buyer: claim.buyer,
                key,
                first: Remembered {
                    order: claim.order,
                    quantity: claim.quantity,
                    first,
                },
            });
        }
    }

    fn whole(self) -> LoadChunk {
        let mut seats: Vec<Seat> = self.seats.into_values().collect();
        seats.sort_unstable_by_key(|seat| seat.ticket);
        LoadChunk {
            holders: self.holders,
            seats,
            keys: self.keys,
        }
    }
}

//! What was answered, was lost, and is offered again.

use super::Sale;
use crate::{Claim, PlaceAtFirst, Seat};

impl Sale {
    /// Takes units for a grant that was answered earlier and lost since. Refuses when there are too
    /// few, the buyer has as many as he may, or he has asked with his key again and got another
    /// order. Nobody waits longer for it: the grant is older than the waitlist.
    pub fn retake(&mut self, claim: &Claim) -> bool {
        let fits = !self.has_used(claim)
            && claim.quantity <= self.free
            && self.units_of(claim.buyer) + claim.quantity <= self.terms.per_buyer_limit;
        if fits {
            self.grant(claim, false);
        }
        self.recall(claim, PlaceAtFirst::Granted);
        fits
    }

    /// Gives back a place that was answered earlier and lost since, with its old turn. Refuses when
    /// the buyer waits again, has as many units as he may or has asked with his key again, or the
    /// list is full.
    pub fn reseat(&mut self, seat: &Seat) -> bool {
        let claim = self.claim_of(seat.clone());
        let fits = !self.has_used(&claim)
            && self.waitlist.seat(seat.buyer).is_none()
            && self.waitlist.len() < self.terms.waitlist_capacity
            && self.units_of(seat.buyer) + seat.quantity <= self.terms.per_buyer_limit;
        if fits {
            self.join(&claim, seat.ticket);
        }
        self.recall(&claim, PlaceAtFirst::Waitlisted);
        fits
    }

    /// Remembers what a key got, even if that is lost for good: whoever asks with it again is told of
    /// the same order, and reads there what became of it.
    fn recall(&mut self, claim: &Claim, first: PlaceAtFirst) {
        if !self.has_used(claim) {
            self.remember(claim, first);
        }
    }

    /// Whether the buyer's key belongs to another order.
    fn has_used(&self, claim: &Claim) -> bool {
        let known = claim
            .key
            .clone()
            .and_then(|key| self.keys.get(&(claim.buyer, key)));
        known.is_some_and(|known| known.order != claim.order)
    }
}

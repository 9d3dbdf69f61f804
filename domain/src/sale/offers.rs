//! What was answered, was lost, and is offered again.

use super::Sale;
use crate::{Claim, PlaceAtFirst, Seat};

impl Sale {
    /// Takes units for a grant that was answered earlier and lost since. Refuses, changing nothing,
    /// when there are too few or the buyer has as many as he may. Nobody waits longer for it: the
    /// grant is older than the waitlist.
    pub fn retake(&mut self, claim: &Claim) -> bool {
        let fits = claim.quantity <= self.free
            && self.units_of(claim.buyer) + claim.quantity <= self.terms.per_buyer_limit;
        if fits {
            self.grant(claim, false);
            self.remember(claim, PlaceAtFirst::Granted);
        }
        fits
    }

    /// Gives back a place that was answered earlier and lost since, with its old turn. Refuses,
    /// changing nothing, when the buyer waits again or has as many units as he may, or the list is
    /// full.
    pub fn reseat(&mut self, seat: &Seat) -> bool {
        let fits = self.waitlist.seat(seat.buyer).is_none()
            && self.waitlist.len() < self.terms.waitlist_capacity
            && self.units_of(seat.buyer) + seat.quantity <= self.terms.per_buyer_limit;
        if fits {
            let claim = self.claim_of(seat.clone());
            self.join(&claim, seat.ticket);
        }
        fits
    }
}

//! A sale under audit, with or without a planted flaw.

use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Decision, Followed, GateChange, GateUpdate,
    GateVersion, Leave, PlaceAtFirst, Pulse, Sale, SaleStatus, SaleTerms, Seat, Ticket, Timestamp,
    VoucherId,
};

/// The voucher on sale.
pub(crate) const VOUCHER: VoucherId = VoucherId::new(9_007_199_254_740_993);

/// What is wrong with the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    JumpsTheQueue,
    ServesTheLastFirst,
    ForgetsKeys,
    TakesUnitsFromAnybody,
    LosesAUnit,
    IgnoresTheLimit,
    PromotesDuringAPause,
}

/// The sale itself; a flaw is planted by asking it something else than what was asked.
pub(crate) struct Gate {
    sale: Sale,
    flaw: Flaw,
}

impl Gate {
    pub(crate) fn open(terms: SaleTerms, free: u32, flaw: Flaw) -> Self {
        let per_buyer_limit = match flaw {
            Flaw::IgnoresTheLimit => terms.per_buyer_limit + 1,
            _ => terms.per_buyer_limit,
        };
        let terms = SaleTerms {
            per_buyer_limit,
            ..terms
        };
        Self {
            sale: Sale::new(VOUCHER, terms, free, GateVersion::default()),
            flaw,
        }
    }

    pub(crate) fn admit(
        &mut self,
        attempt: &Attempt,
        now: Timestamp,
        turn: Ticket,
    ) -> (Admission, Option<Decision>) {
        let mut attempt = attempt.clone();
        if self.flaw == Flaw::ForgetsKeys {
            attempt.key = None;
        }
        let waits = self.sale.waitlist().seat(attempt.buyer).is_some();
        let others_wait = !self.sale.waitlist().is_empty() && !waits;
        if self.flaw == Flaw::JumpsTheQueue
            && others_wait
            && self.sale.terms().refusal(now).is_none()
        {
            let claim = Claim::of(VOUCHER, &attempt);
            if attempt.key.is_none() && self.sale.retake(&claim) {
                let order = attempt.order;
                return (Admission::Granted { order }, Some(Decision::Granted(claim)));
            }
        }
        self.sale.admit(&attempt, now, turn)
    }

    pub(crate) fn settled(&self, attempt: &Attempt, first: PlaceAtFirst) -> Admission {
        self.sale.settled(attempt, first)
    }

    pub(crate) fn promote(&mut self, now: Timestamp, max: usize) -> Vec<Decision> {
        let paused = self.sale.terms().status == SaleStatus::Paused;
        let seat = match self.flaw {
            Flaw::ServesTheLastFirst => self.sale.waitlist().seats().last().cloned(),
            Flaw::PromotesDuringAPause if paused => self.sale.waitlist().head().cloned(),
            _ => None,
        };
        match seat.and_then(|seat| self.serve(&seat)) {
            Some(decision) => vec![decision],
            None => self.sale.promote(now, max),
        }
    }

    fn serve(&mut self, seat: &Seat) -> Option<Decision> {
        if seat.quantity > self.sale.pulse().free {
            return None;
        }
        self.sale.leave(seat.buyer);
        let claim = Claim {
            order: seat.order,
            voucher: VOUCHER,
            buyer: seat.buyer,
            quantity: seat.quantity,
            key: None,
        };
        self.sale
            .retake(&claim)
            .then_some(Decision::Promoted(claim))
    }

    pub(crate) fn follow(&mut self, update: &GateUpdate) -> Followed {
        let mut update = update.clone();
        if self.flaw == Flaw::TakesUnitsFromAnybody {
            for change in &mut update.changes {
                if let GateChange::Release {
                    order,
                    buyer,
                    quantity,
                } = *change
                    && !self.sale.holds(buyer, order)
                {
                    *change = GateChange::AddUnits { units: quantity };
                }
            }
        }
        self.sale.follow(&update)
    }

    pub(crate) fn leave(&mut self, buyer: BuyerId) -> Leave {
        if self.flaw == Flaw::LosesAUnit {
            // What the decision says is dropped, and so is the unit.
            let _ = self.sale.withdraw(1, AdjustmentId::new(999));
        }
        self.sale.leave(buyer)
    }

    pub(crate) fn drain(&mut self, now: Timestamp, max: usize) -> Vec<Decision> {
        self.sale.drain_waitlist(now, max)
    }

    pub(crate) fn withdraw(
        &mut self,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<Decision, u32> {
        self.sale.withdraw(units, adjustment)
    }

    pub(crate) fn retake(&mut self, claim: &Claim) -> bool {
        self.sale.retake(claim)
    }

    pub(crate) fn pulse(&self) -> Pulse {
        self.sale.pulse()
    }

    pub(crate) fn total_units(&self) -> u32 {
        self.sale.terms().total_units
    }

    pub(crate) fn held(&self) -> Vec<(BuyerId, u32)> {
        self.sale
            .holders()
            .map(|(buyer, held)| (buyer, held.quantity))
            .collect()
    }

    pub(crate) fn held_by(&self, buyer: BuyerId) -> u32 {
        self.sale
            .held_by(buyer)
            .iter()
            .map(|held| held.quantity)
            .sum()
    }
}

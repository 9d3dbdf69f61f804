//! Who leaves the waitlist, and when.

use seckill_domain::{BuyerId, Claim, Decision, Leave, LeftReason, Ticket};

use super::{Auditor, Verdict, ensure};
use crate::gate::Gate;

impl Auditor {
    pub(super) fn leave(&mut self, gate: &mut Gate, buyer: BuyerId) -> Verdict {
        let place = self
            .waiting
            .iter()
            .position(|(_, claim)| claim.buyer == buyer);
        match (gate.leave(buyer), place) {
            (Leave::Left(Decision::Left { claim, reason }), Some(place)) => {
                self.seen.note("left");
                let (_, waited) = self.waiting.remove(place);
                self.sequence = self.sequence.next();
                ensure(claim == waited && reason == LeftReason::Withdrawn, || {
                    format!("{waited:?} left as {claim:?}, {reason:?}")
                })
            }
            (Leave::AlreadyPromoted { order }, None) => {
                self.seen.note("left too late");
                let his = |claim: &&Claim| claim.buyer == buyer && claim.order == order;
                ensure(self.held.iter().any(|claim| his(&claim)), || {
                    format!("promoted to {order}, which is not held")
                })
            }
            (Leave::NotWaiting, None) => {
                self.seen.note("not waiting");
                Ok(())
            }
            (answer, place) => Err(format!("left with {answer:?} from place {place:?}")),
        }
    }

    pub(super) fn promote(&mut self, gate: &mut Gate, max: usize) -> Verdict {
        let decisions = gate.promote(self.now, max);
        ensure(decisions.is_empty() || self.on_sale(), || {
            format!("{decisions:?} while not on sale")
        })?;
        ensure(decisions.len() <= max, || {
            format!("more than {max}: {decisions:?}")
        })?;
        for decision in &decisions {
            self.sequence = self.sequence.next();
            let (ticket, head) = self.take_head(decision)?;
            match decision {
                Decision::Promoted(_) => {
                    self.seen.note("promoted");
                    self.served.push(ticket);
                    self.hold(head);
                }
                Decision::Left {
                    reason: LeftReason::NotEnoughUnits,
                    ..
                } => {
                    self.seen.note("hopeless: units");
                    ensure(head.quantity > self.terms.total_units, || {
                        format!(
                            "{head:?} was sent away from {} units",
                            self.terms.total_units
                        )
                    })?;
                }
                Decision::Left {
                    reason: LeftReason::LimitReached,
                    ..
                } => {
                    self.seen.note("hopeless: limit");
                    let wanted = self.units_of(head.buyer) + head.quantity;
                    ensure(wanted > self.terms.per_buyer_limit, || {
                        format!("{head:?} was sent away, with room for {wanted}")
                    })?;
                }
                other => return Err(format!("promotion decided {other:?}")),
            }
        }
        if self.on_sale() && decisions.len() < max {
            // Whoever waits now cannot be served.
            let free = gate.pulse().free;
            let stuck = self
                .waiting
                .first()
                .is_some_and(|(_, head)| head.quantity <= free);
            ensure(!stuck, || {
                format!("{free} free units beside {:?}", self.waiting)
            })?;
        }
        Ok(())
    }

    pub(super) fn take_head(&mut self, decision: &Decision) -> Result<(Ticket, Claim), String> {
        if self.waiting.is_empty() {
            return Err(format!("{decision:?} while nobody waited"));
        }
        let (ticket, head) = self.waiting.remove(0);
        let order = decision.claim().map(|claim| claim.order);
        ensure(order == Some(head.order), || {
            format!("{decision:?}, but it was the turn of {head:?}")
        })?;
        Ok((ticket, head))
    }

    pub(super) fn drain(&mut self, gate: &mut Gate, max: usize) -> Verdict {
        let decisions = gate.drain(self.now, max);
        let over = self.terms.is_over(self.now);
        let expected = if over { max.min(self.waiting.len()) } else { 0 };
        ensure(decisions.len() == expected, || {
            format!(
                "{} were taken off the waitlist, not {expected}",
                decisions.len()
            )
        })?;
        for decision in &decisions {
            self.sequence = self.sequence.next();
            self.seen.note("closed out");
            let (_, claim) = self.take_head(decision)?;
            let reason = LeftReason::ClosedOut;
            let expected = Decision::Left { claim, reason };
            ensure(*decision == expected, || {
                format!("{decision:?}, not {expected:?}")
            })?;
        }
        Ok(())
    }
}

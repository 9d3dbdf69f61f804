//! The auditor: keeps books of his own from questions, answers and decisions.

mod attempts;
mod queue;
mod seen;
mod units;

use std::collections::HashMap;
use std::time::Duration;

use seckill_domain::invariants::{self, Tally};
use seckill_domain::{
    Attempt, BuyerId, Claim, Followed, GateChange, GateVersion, IdempotencyKey, OrderId,
    PlaceAtFirst, SaleTerms, Sequence, Ticket, Timestamp,
};

pub(crate) use seen::Seen;

use crate::gate::Gate;
use crate::steps::Step;

struct KeyUse {
    order: OrderId,
    quantity: u32,
    first: PlaceAtFirst,
}

/// The books of one sale.
pub(crate) struct Auditor {
    terms: SaleTerms,
    now: Timestamp,
    sequence: Sequence,
    version: GateVersion,
    orders: u64,
    held: Vec<Claim>,
    waiting: Vec<(Ticket, Claim)>,
    served: Vec<Ticket>,
    keys: HashMap<(BuyerId, IdempotencyKey), KeyUse>,
    decided: Vec<(Attempt, PlaceAtFirst)>,
    ever_held: Vec<Claim>,
    seen: Seen,
}

type Verdict = Result<(), String>;

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Auditor {
    pub(crate) fn of(terms: SaleTerms, free: u32) -> Self {
        Self {
            terms: SaleTerms {
                total_units: free,
                ..terms
            },
            now: Timestamp::from_millis(0),
            sequence: Sequence::default(),
            version: GateVersion::default(),
            // Ids fall while turns rise: order of arrival must never come from an id.
            orders: 1 << 60,
            held: Vec::new(),
            waiting: Vec::new(),
            served: Vec::new(),
            keys: HashMap::new(),
            decided: Vec::new(),
            ever_held: Vec::new(),
            seen: Seen::default(),
        }
    }

    pub(crate) fn seen(self) -> Seen {
        self.seen
    }

    /// Puts one question to the gate and checks the answer, the decision and the sale after it.
    pub(crate) fn watch(&mut self, gate: &mut Gate, step: &Step) -> Verdict {
        match step {
            Step::Admit {
                buyer,
                quantity,
                key,
            } => self.admit(gate, *buyer, *quantity, *key)?,
            Step::Repeat { which } => self.repeat(gate, *which)?,
            Step::Leave { buyer } => self.leave(gate, *buyer)?,
            Step::Promote { max } => self.promote(gate, *max)?,
            Step::Drain { max } => self.drain(gate, *max)?,
            Step::Release { which } => self.release(gate, *which)?,
            Step::AddUnits { units } => {
                self.follow(gate, GateChange::AddUnits { units: *units })?;
                self.terms.total_units += units;
            }
            Step::SetTerms { status, capacity } => {
                self.terms.status = *status;
                self.terms.waitlist_capacity = *capacity;
                // The total in the terms of an update means nothing.
                let terms = SaleTerms {
                    total_units: 1_000,
                    ..self.terms
                };
                self.follow(gate, GateChange::SetTerms(terms))?;
            }
            Step::OldUpdate { back } => {
                let old = self.version.get().saturating_sub(*back);
                Self::refused(gate, old, &Followed::AlreadyApplied)?;
            }
            Step::EarlyUpdate { ahead } => {
                let early = self.version.get() + ahead;
                Self::refused(gate, early, &Followed::Gap { at: self.version })?;
            }
            Step::Withdraw { units } => self.withdraw(gate, *units)?,
            Step::Retake { buyer, quantity } => self.retake(gate, *buyer, *quantity)?,
            Step::Wait { millis } => self.now = self.now.plus(Duration::from_millis(*millis)),
        }
        self.balance(gate)
    }

    fn balance(&self, gate: &Gate) -> Verdict {
        let held: u32 = gate.held().iter().map(|(_, quantity)| quantity).sum();
        let tally = Tally {
            total: self.terms.total_units.into(),
            free: gate.pulse().free.into(),
            awaiting_payment: held.into(),
            ..Tally::default()
        };
        ensure(
            invariants::conserved(&tally) && gate.total_units() == self.terms.total_units,
            || format!("I1: {tally:?}, the sale says {} in all", gate.total_units()),
        )?;
        ensure(invariants::never_oversold(&tally), || {
            format!("I2: {tally:?}")
        })?;
        for (buyer, _) in gate.held() {
            let live = gate.held_by(buyer);
            ensure(
                invariants::within_limit(live, self.terms.per_buyer_limit),
                || format!("I3: buyer {buyer} has {live} units"),
            )?;
            ensure(live == self.units_of(buyer), || {
                format!(
                    "buyer {buyer} has {live} units, not {}",
                    self.units_of(buyer)
                )
            })?;
        }
        ensure(invariants::served_in_order(&self.served), || {
            format!("I7: {:?}", self.served)
        })?;
        let waiting = usize::try_from(gate.pulse().waiting).unwrap();
        ensure(waiting == self.waiting.len(), || {
            format!("{waiting} wait, not {}", self.waiting.len())
        })
    }

    fn units_of(&self, buyer: BuyerId) -> u32 {
        let of_his = self.held.iter().filter(|claim| claim.buyer == buyer);
        of_his.map(|claim| claim.quantity).sum()
    }

    fn place_of(&self, buyer: BuyerId) -> Option<(OrderId, u32, Ticket)> {
        let place = self
            .waiting
            .iter()
            .position(|(_, claim)| claim.buyer == buyer)?;
        let position = u32::try_from(place + 1).unwrap();
        let (ticket, claim) = &self.waiting[place];
        Some((claim.order, position, *ticket))
    }

    fn on_sale(&self) -> bool {
        self.terms.refusal(self.now).is_none()
    }

    fn new_order(&mut self) -> OrderId {
        self.orders -= 1;
        OrderId::new(self.orders)
    }
}

//! What may be answered to an attempt.

use proptest::sample::Index;
use seckill_domain::{Admission, Attempt, BuyerId, Claim, Decision, Epoch, PlaceAtFirst, Ticket};

use super::{Auditor, KeyUse, Verdict, ensure};
use crate::gate::{Gate, VOUCHER};

impl Auditor {
    pub(super) fn admit(
        &mut self,
        gate: &mut Gate,
        buyer: BuyerId,
        quantity: u32,
        key: Option<u8>,
    ) -> Verdict {
        let attempt = Attempt {
            order: self.new_order(),
            buyer,
            quantity,
            key: key.map(|key| format!("key-{key}").parse().unwrap()),
        };
        let before = gate.pulse();
        let turn = Ticket::drawn_at(Epoch::new(3), self.sequence.next());
        let (answer, decision) = gate.admit(&attempt, self.now, turn);
        let expected = self.known(&attempt);
        ensure(expected.is_none_or(|known| answer == known), || {
            format!("{attempt:?} was answered {answer:?}; its key or its buyer is known")
        })?;
        self.judge(&attempt, &answer, before.free)?;
        let claim = Claim::of(VOUCHER, &attempt);
        match (&answer, decision) {
            (Admission::Granted { .. }, Some(Decision::Granted(decided))) if decided == claim => {
                self.hold(claim.clone());
                self.settle(attempt, PlaceAtFirst::Granted);
            }
            (
                Admission::Waitlisted { .. },
                Some(Decision::Joined {
                    claim: decided,
                    ticket,
                }),
            ) if decided == claim && ticket == turn => {
                self.waiting.push((ticket, claim));
                self.settle(attempt, PlaceAtFirst::Waitlisted);
            }
            (Admission::Granted { .. } | Admission::Waitlisted { .. }, decision)
            | (_, decision @ Some(_)) => {
                return Err(format!("{answer:?} with the decision {decision:?}"));
            }
            (_, None) => ensure(gate.pulse() == before, || {
                format!("{answer:?} changed {before:?} into {:?}", gate.pulse())
            })?,
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, claim: Claim) {
        self.ever_held.push(claim.clone());
        self.held.push(claim);
    }

    pub(super) fn settle(&mut self, attempt: Attempt, first: PlaceAtFirst) {
        self.sequence = self.sequence.next();
        if let Some(key) = attempt.key.clone() {
            let used = KeyUse {
                order: attempt.order,
                quantity: attempt.quantity,
                first,
            };
            self.keys.insert((attempt.buyer, key), used);
        }
        self.decided.push((attempt, first));
    }

    /// The answer that does not depend on the sale being on, if there is one.
    pub(super) fn known(&self, attempt: &Attempt) -> Option<Admission> {
        let key = attempt.key.clone().map(|key| (attempt.buyer, key));
        if let Some(used) = key.and_then(|key| self.keys.get(&key)) {
            let order = used.order;
            return Some(if used.quantity == attempt.quantity {
                let first = used.first;
                Admission::Replayed { order, first }
            } else {
                Admission::KeyReused { order }
            });
        }
        if self.units_of(attempt.buyer) == self.terms.per_buyer_limit {
            let his = self
                .held
                .iter()
                .filter(|claim| claim.buyer == attempt.buyer);
            let orders = his.map(|claim| claim.order).collect();
            return Some(Admission::AlreadyHeld { orders });
        }
        let (order, position, _) = self.place_of(attempt.buyer)?;
        Some(Admission::AlreadyWaiting { order, position })
    }

    /// Whether the answer is one that the rules allow.
    pub(super) fn judge(&mut self, attempt: &Attempt, answer: &Admission, free: u32) -> Verdict {
        let on_sale = self.on_sale();
        let remaining = self
            .terms
            .per_buyer_limit
            .saturating_sub(self.units_of(attempt.buyer));
        let fits = attempt.quantity <= remaining;
        let nobody_waits = self.waiting.is_empty();
        let served_now = nobody_waits && attempt.quantity <= free;
        let room = self.waiting.len() < self.terms.waitlist_capacity as usize;
        let (what, allowed) = match answer {
            Admission::Granted { order } => {
                ensure(nobody_waits, || {
                    format!("{attempt:?} was granted while somebody waited")
                })?;
                let allowed = on_sale && *order == attempt.order && free >= attempt.quantity;
                ("granted", allowed)
            }
            Admission::Waitlisted {
                order, position, ..
            } => {
                let last = *position as usize == self.waiting.len() + 1;
                let allowed = on_sale && *order == attempt.order && last && room && !served_now;
                ("waitlisted", allowed && fits)
            }
            Admission::SoldOut => ("sold out", on_sale && fits && !served_now && !room),
            Admission::LimitExceeded { remaining: said } => (
                "limit exceeded",
                on_sale && !fits && *said == remaining && remaining > 0,
            ),
            Admission::NotOpen { opens_at } => (
                "not open",
                !on_sale && *opens_at == self.terms.opens_at && self.now < *opens_at,
            ),
            Admission::Paused => ("paused", !on_sale && !self.terms.is_over(self.now)),
            Admission::Closed => ("closed", self.terms.is_over(self.now)),
            known => {
                let what = match known {
                    Admission::Replayed { .. } => "replayed",
                    Admission::KeyReused { .. } => "key reused",
                    Admission::AlreadyHeld { .. } => "already held",
                    _ => "already waiting",
                };
                (what, self.known(attempt).as_ref() == Some(known))
            }
        };
        self.seen.note(what);
        ensure(allowed, || format!("{attempt:?} was answered {answer:?}"))
    }

    pub(super) fn repeat(&mut self, gate: &Gate, which: Index) -> Verdict {
        if self.decided.is_empty() {
            return Ok(());
        }
        let (attempt, first) = self.decided[which.index(self.decided.len())].clone();
        let answer = gate.settled(&attempt, first);
        let order = attempt.order;
        let holds = self.held.iter().any(|claim| claim.order == order);
        let place = self
            .place_of(attempt.buyer)
            .filter(|(waits, ..)| *waits == order);
        let (what, expected) = match place {
            _ if holds => ("repeat of a grant", Admission::Granted { order }),
            Some((_, position, ticket)) => (
                "repeat of a place",
                Admission::Waitlisted {
                    order,
                    position,
                    ticket,
                },
            ),
            None => (
                "repeat of something given up",
                Admission::Replayed { order, first },
            ),
        };
        self.seen.note(what);
        ensure(answer == expected, || {
            format!("the repeat of {attempt:?} was answered {answer:?}, not {expected:?}")
        })
    }
}

//! The first look: every order about which gate and ledger do not obviously agree.

use std::collections::HashMap;

use seckill_domain::{BuyerId, Claim, OrderId, VoucherId};

use super::judge::{OfGate, is_open, judge};
use super::{PAGE_MAX, Reconcile};
use crate::ports::{Claimant, DifferenceKind, LedgerOrder};
use crate::{Balance, Fault};

/// Most orders of one sale that are looked at again. Whatever is on its way to the ledger is among
/// them; what does not fit is for the next round.
const SUSPICIONS_MAX: usize = 20_000;

/// What the gate has of orders, each in the name of one buyer.
pub(super) type AtGate = HashMap<(OrderId, BuyerId), OfGate>;

/// Whose order it is at the gate.
pub(super) fn key(claim: &Claim) -> (OrderId, BuyerId) {
    (claim.order, claim.buyer)
}

/// What the first look saw of a sale.
pub(super) struct Look {
    pub(super) voucher: VoucherId,
    /// Units by which conservation was off, before the orders were compared: whatever was behind it
    /// is among them. `None` if something moved.
    pub(super) drift: Option<i64>,
    /// Whether the gate went by other terms than the ledger, while nothing moved.
    pub(super) terms_differ: bool,
    pub(super) suspicions: Vec<Suspicion>,
    /// Whether all suspicions had room.
    pub(super) complete: bool,
}

/// What may be wrong about an order.
pub(super) struct Suspicion {
    pub(super) kind: DifferenceKind,
    pub(super) claim: Claim,
}

impl Look {
    fn suspect_if(&mut self, of_gate: &OfGate, claim: Claim, ledger: Option<&LedgerOrder>) {
        let Some(kind) = judge(of_gate, &claim, ledger) else {
            return;
        };
        if self.suspicions.len() < SUSPICIONS_MAX {
            self.suspicions.push(Suspicion { kind, claim });
        } else {
            self.complete = false;
        }
    }
}

impl Reconcile {
    /// Asks for a sale that the gate does not have to be loaded, and suspects nothing else.
    pub(super) async fn first_look(&self, voucher: VoucherId) -> Result<Look, Fault> {
        let balance = self.balance.run(voucher).await?;
        let mut look = Look {
            voucher,
            drift: balance.and_then(|balance| balance.drift()),
            terms_differ: match &balance {
                Some(balance) => self.has_other_terms(voucher, balance).await?,
                None => false,
            },
            suspicions: Vec::new(),
            complete: true,
        };
        let whole = self.suspect_claims(&mut look).await? && self.suspect_orders(&mut look).await?;
        if !whole {
            self.wanted.request(voucher);
            look.drift = None;
            look.suspicions.clear();
        }
        Ok(look)
    }

    /// Whether the gate goes by other terms than the ledger: at rest and at the same version. A
    /// withdrawal that the ledger refused leaves the gate with a smaller total, should the order
    /// writer die before it has the sale loaded again. A gate whose version is ahead of the ledger's,
    /// which is read after it, takes no update for news.
    pub(super) async fn has_other_terms(
        &self,
        voucher: VoucherId,
        balance: &Balance,
    ) -> Result<bool, Fault> {
        let facts = self.gate.facts(&[voucher]).await?.into_iter().flatten();
        let ledger = self.ledger.voucher(voucher).await?;
        let at_rest = balance.drift().is_some();
        Ok(facts.zip(ledger).any(|(gate, ledger)| {
            let (at, is) = (gate.pulse.version, ledger.version);
            at > is || (at == is && at_rest && gate.terms != ledger.sale_terms())
        }))
    }

    /// Who holds units or waits, and has no order that does so in the ledger. `false` if the gate does
    /// not have the voucher.
    async fn suspect_claims(&self, look: &mut Look) -> Result<bool, Fault> {
        let voucher = look.voucher;
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            let Some(page) = self.gate.holders(voucher, from).await? else {
                return Ok(false);
            };
            let holds = page.claims.into_iter().map(|claim| {
                let of_gate = OfGate::holder(claim.quantity);
                (claim, of_gate)
            });
            self.suspect_of_gate(holds.collect(), look).await?;
            cursor = page.next;
        }
        cursor = Some(0);
        while let Some(from) = cursor {
            let Some(page) = self.gate.waiters(voucher, from).await? else {
                return Ok(false);
            };
            let waits = page.seats.into_iter().map(|seat| {
                let claim = seat.clone().into_claim(voucher);
                (claim, OfGate::waiter(seat))
            });
            self.suspect_of_gate(waits.collect(), look).await?;
            cursor = page.next;
        }
        Ok(true)
    }

    async fn suspect_of_gate(
        &self,
        mut claims: Vec<(Claim, OfGate)>,
        look: &mut Look,
    ) -> Result<(), Fault> {
        while !claims.is_empty() {
            let rest = claims.split_off(claims.len().min(PAGE_MAX));
            let ids = claims.iter().map(|(claim, _)| claim.order);
            let known = self.known(ids).await?;
            for (claim, of_gate) in claims {
                let ledger = known.get(&claim.order);
                // Those that hold units or wait in the ledger are asked for at the gate.
                let is_asked_for =
                    |order: &LedgerOrder| is_open(order.status) && order.is_of(&claim);
                if !ledger.is_some_and(is_asked_for) {
                    look.suspect_if(&of_gate, claim, ledger);
                }
            }
            claims = rest;
        }
        Ok(())
    }

    /// Orders that hold units or wait, and do something else at the gate. `false` if the gate lost
    /// the voucher meanwhile.
    async fn suspect_orders(&self, look: &mut Look) -> Result<bool, Fault> {
        let mut after = OrderId::new(0);
        loop {
            let open = self
                .books
                .open_orders(look.voucher, after, PAGE_MAX)
                .await?;
            let Some(last) = open.last().map(|order| order.claim.order) else {
                return Ok(true);
            };
            let claims = open.iter().map(|order| &order.claim);
            let Some(mut at_gate) = self.at_gate(look.voucher, claims).await? else {
                return Ok(false);
            };
            for order in open {
                let of_gate = at_gate.remove(&key(&order.claim)).unwrap_or_default();
                look.suspect_if(&of_gate, order.claim.clone(), Some(&order));
            }
            after = last;
        }
    }

    /// What the gate has of these claims' buyers; nothing of an order that is not named. `None` if the gate does not have the voucher.
    pub(super) async fn at_gate<'a>(
        &self,
        voucher: VoucherId,
        claims: impl Iterator<Item = &'a Claim>,
    ) -> Result<Option<AtGate>, Fault> {
        let buyers: Vec<BuyerId> = claims.map(|claim| claim.buyer).collect();
        let Some(found) = self.gate.claimants(voucher, &buyers).await? else {
            return Ok(None);
        };
        let mut at_gate = AtGate::with_capacity(found.len());
        for (buyer, Claimant { held, seat }) in buyers.into_iter().zip(found) {
            for held in held {
                let of_gate = at_gate.entry((held.order, buyer)).or_default();
                of_gate.held = Some(held.quantity);
            }
            if let Some(seat) = seat {
                let of_gate = at_gate.entry((seat.order, buyer)).or_default();
                of_gate.seat = Some(seat);
            }
        }
        Ok(Some(at_gate))
    }

    /// Those of these orders that the ledger has.
    pub(super) async fn known(
        &self,
        ids: impl Iterator<Item = OrderId>,
    ) -> Result<HashMap<OrderId, LedgerOrder>, Fault> {
        let ids: Vec<OrderId> = ids.collect();
        let known = self.books.orders(&ids).await?.into_iter();
        Ok(known.map(|order| (order.claim.order, order)).collect())
    }
}

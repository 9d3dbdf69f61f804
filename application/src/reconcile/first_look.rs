//! The first look: every order about which gate and ledger do not obviously agree.

use std::collections::HashMap;

use seckill_domain::{Claim, OrderId, OrderStatus, VoucherId};

use super::{PAGE_MAX, Reconcile};
use crate::ports::{DifferenceKind, LedgerOrder};
use crate::{Balance, Fault};

/// Most orders of one sale that are looked at again. Whatever is on its way to the ledger is among
/// them; what does not fit is for the next round.
const SUSPICIONS_MAX: usize = 20_000;

/// What the first look saw of a sale.
pub(super) struct Look {
    pub(super) voucher: VoucherId,
    /// Units by which conservation was off, before the orders were compared: whatever was behind it
    /// is among them. `None` if something moved.
    pub(super) drift: Option<i64>,
    /// Whether the gate went by other terms than the ledger, while nothing moved.
    pub(super) other_terms: bool,
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
    fn suspect(&mut self, kind: DifferenceKind, claim: Claim) {
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
            other_terms: match &balance {
                Some(balance) => self.has_other_terms(voucher, balance).await?,
                None => false,
            },
            suspicions: Vec::new(),
            complete: true,
        };
        let whole =
            self.suspect_holders(&mut look).await? && self.suspect_orders(&mut look).await?;
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

    /// Who holds units without a live order. `false` if the gate does not have the voucher.
    async fn suspect_holders(&self, look: &mut Look) -> Result<bool, Fault> {
        let mut cursor = 0;
        loop {
            let Some(page) = self.gate.holders(look.voucher, cursor).await? else {
                return Ok(false);
            };
            for claims in page.claims.chunks(PAGE_MAX) {
                self.suspect_claims(claims, look).await?;
            }
            match page.next {
                Some(next) => cursor = next,
                None => return Ok(true),
            }
        }
    }

    async fn suspect_claims(&self, claims: &[Claim], look: &mut Look) -> Result<(), Fault> {
        let ids: Vec<OrderId> = claims.iter().map(|claim| claim.order).collect();
        let known = self.statuses(&ids).await?;
        for claim in claims {
            let kind = match known.get(&claim.order) {
                None | Some(OrderStatus::Waiting) => DifferenceKind::MessageGone,
                Some(status) if status.is_live() => continue,
                Some(_) => DifferenceKind::NotReleased,
            };
            look.suspect(kind, claim.clone());
        }
        Ok(())
    }

    /// Live orders whose units nobody holds. `false` if the gate lost the voucher meanwhile.
    async fn suspect_orders(&self, look: &mut Look) -> Result<bool, Fault> {
        let mut after = OrderId::new(0);
        loop {
            let live = self
                .books
                .live_orders(look.voucher, after, PAGE_MAX)
                .await?;
            let Some(last) = live.last().map(|order| order.claim.order) else {
                return Ok(true);
            };
            let buyers: Vec<_> = live.iter().map(|order| order.claim.buyer).collect();
            let Some(held) = self.gate.held_by(look.voucher, &buyers).await? else {
                return Ok(false);
            };
            for (LedgerOrder { claim, .. }, held) in live.into_iter().zip(held) {
                if !held.iter().any(|held| held.order == claim.order) {
                    look.suspect(DifferenceKind::HolderGone, claim);
                }
            }
            after = last;
        }
    }

    pub(super) async fn statuses(
        &self,
        ids: &[OrderId],
    ) -> Result<HashMap<OrderId, OrderStatus>, Fault> {
        let known = self.books.orders(ids).await?.into_iter();
        Ok(known.map(|it| (it.claim.order, it.status)).collect())
    }
}

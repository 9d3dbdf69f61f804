//! The second look: what is still wrong, and its repair.

use std::collections::HashSet;

use seckill_domain::{BuyerId, Claim, OrderId, OrderStatus, VoucherId};

use super::first_look::{Look, Suspicion, key};
use super::judge::{OfGate, is_mended_by_load, judge_at};
use super::{PAGE_MAX, Reconcile, ReconcileScope};
use crate::Fault;
use crate::ports::{Difference, DifferenceKind, NotLoaded, PlaceReply, Told, VoucherFinding};

/// Most differences followed up for one voucher; the rest is for the next round.
const DIFFERENCES_MAX: usize = 1_000;

/// What is still wrong about an order.
struct Wrong {
    kind: DifferenceKind,
    claim: Claim,
    /// How the ledger has the order; `None`: not at all.
    seen: Option<OrderStatus>,
    /// Whether the sale has to be loaded again to mend it.
    by_load: bool,
    /// Whether the ledger, if it has the order, has it in the same name.
    is_own: bool,
}

impl Reconcile {
    /// What is wrong about a sale, repaired unless it must not be. `None` if the voucher is gone, or
    /// has been retired since it was listed.
    pub(super) async fn second_look(
        &self,
        look: Look,
        caught_up: bool,
        scope: ReconcileScope,
    ) -> Result<Option<VoucherFinding>, Fault> {
        let voucher = look.voucher;
        let mut wrong = Vec::new();
        for suspicions in look.suspicions.chunks(PAGE_MAX) {
            wrong.extend(self.compare(voucher, suspicions, caught_up).await?);
        }
        let followed_up = look.complete && wrong.len() <= DIFFERENCES_MAX;
        wrong.truncate(DIFFERENCES_MAX);
        // Before the repairs, which move units.
        let Some(balance) = self.balance.run(voucher).await? else {
            return Ok(None);
        };
        if !balance.at_gate && self.has_left_the_gate(voucher).await? {
            return Ok(None);
        }
        let free_drift = match (look.drift, balance.drift()) {
            (Some(first), Some(second)) if first == second && followed_up => {
                unexplained(second, &wrong)
            }
            _ => 0,
        };
        if balance.stock_drift != 0 {
            load_what_is_not_released(&mut wrong);
        }
        let terms_differ = look.terms_differ && self.has_other_terms(voucher, &balance).await?;
        let (differences, claims_differ) = self.repair(voucher, wrong, scope).await?;
        let found = VoucherFinding {
            voucher,
            tally: balance.tally,
            holds: balance.holds,
            free_drift,
            stock_drift: balance.stock_drift,
            terms_differ,
            at_gate: balance.at_gate,
            reloads: 0,
            differences,
        };
        if found.stock_drift != 0 {
            tracing::error!(%voucher, stock_drift = found.stock_drift,
                "the ledger's stock is off from its own orders; an administrator has to say which is right");
        }
        if (found.asks_for_load() || claims_differ) && !scope.dry_run {
            tracing::error!(%voucher, free_drift, terms_differ, claims_differ,
                "the gate's free stock is off, or its terms are, or who holds or waits; loading the sale again");
            self.reload(voucher).await?;
        }
        if !found.at_gate {
            self.wanted.request(voucher);
        }
        if !found.differences.is_empty() && !scope.dry_run {
            self.relay.nudge(voucher).await;
        }
        Ok(Some(found))
    }

    /// Whether the gate has let go of the sale for good. It has before the ledger says so.
    async fn has_left_the_gate(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let anybody = BuyerId::new(1);
        let place = self.gate.place(voucher, anybody).await?;
        Ok(place == PlaceReply::NotLoaded(NotLoaded::Retired))
    }

    async fn reload(&self, voucher: VoucherId) -> Result<(), Fault> {
        self.loader.unload(voucher).await?;
        self.wanted.request(voucher);
        Ok(())
    }

    /// What was wrong, with what came of its repair, and whether the sale is to be loaded for some.
    async fn repair(
        &self,
        voucher: VoucherId,
        wrong: Vec<Wrong>,
        scope: ReconcileScope,
    ) -> Result<(Vec<Difference>, bool), Fault> {
        let told: HashSet<Told> = if wrong.is_empty() || scope.dry_run {
            HashSet::new()
        } else {
            let told = self.books.told_before(voucher).await?;
            told.into_iter().collect()
        };
        let (mut differences, mut load) = (Vec::with_capacity(wrong.len()), false);
        for it in wrong {
            let (kind, claim) = (it.kind, it.claim);
            let tried = match kind {
                _ if scope.dry_run => false,
                DifferenceKind::NotDelivered => false,
                // By the load that follows.
                _ if it.by_load => true,
                _ => self.books.repair(kind, &claim, it.seen).await?,
            };
            // What comes again has not been mended by the repair before, and may not be by this.
            let repaired = tried && !told.contains(&Told::of(&claim, kind));
            // A load that has not helped would close the sale once more for nothing.
            load |= it.by_load && repaired;
            tracing::error!(order = %claim.order, %voucher, ?kind, tried, repaired,
                "gate and ledger differ");
            differences.push(Difference {
                claim,
                kind,
                repaired,
            });
        }
        Ok((differences, load))
    }

    /// Gate, ledger, gate again: what the ledger releases in between has either left the gate by
    /// the last look, or its update still stands. At most [`PAGE_MAX`] suspicions.
    async fn compare(
        &self,
        voucher: VoucherId,
        suspicions: &[Suspicion],
        caught_up: bool,
    ) -> Result<Vec<Wrong>, Fault> {
        let claims = suspicions.iter().map(|suspicion| &suspicion.claim);
        let Some(before) = self.at_gate(voucher, claims.clone()).await? else {
            return Ok(Vec::new());
        };
        let known = self.known(claims.map(|claim| claim.order)).await?;
        let nothing = OfGate::default();
        let mut wrong: Vec<Wrong> = suspicions
            .iter()
            .filter_map(|Suspicion { kind: first, claim }| {
                let ledger = known.get(&claim.order);
                let of_gate = before.get(&key(claim)).unwrap_or(&nothing);
                let kind = judge_at(of_gate, claim, ledger, caught_up)?;
                let persists = kind == *first || kind == DifferenceKind::NotDelivered;
                persists.then(|| Wrong {
                    kind,
                    claim: claim.clone(),
                    seen: ledger.map(|order| order.status),
                    by_load: is_mended_by_load(kind, of_gate, claim, ledger),
                    is_own: ledger.is_none_or(|order| order.is_of(claim)),
                })
            })
            .collect();
        self.leave_out_releases(voucher, &mut wrong).await?;
        if wrong.is_empty() {
            return Ok(wrong);
        }
        let claims = wrong.iter().map(|wrong| &wrong.claim);
        let Some(after) = self.at_gate(voucher, claims).await? else {
            return Ok(Vec::new());
        };
        wrong.retain(|it| before.get(&key(&it.claim)) == after.get(&key(&it.claim)));
        Ok(wrong)
    }

    /// What the gate is about to be told is on its way.
    async fn leave_out_releases(
        &self,
        voucher: VoucherId,
        wrong: &mut Vec<Wrong>,
    ) -> Result<(), Fault> {
        // The release of an order is its buyer's, and so is the end of its place: neither says
        // anything of a stranger.
        let is_kept = |it: &Wrong| match it.kind {
            DifferenceKind::NotReleased | DifferenceKind::WaiterUnknown => it.is_own,
            _ => false,
        };
        let kept = wrong.iter().filter(|it| is_kept(it));
        let kept: Vec<OrderId> = kept.map(|it| it.claim.order).collect();
        if kept.is_empty() {
            return Ok(());
        }
        let released = self.books.being_released(voucher, &kept).await?;
        let released: HashSet<OrderId> = released.into_iter().collect();
        wrong.retain(|it| !is_kept(it) || !released.contains(&it.claim.order));
        Ok(())
    }
}

/// The ledger has ended these orders and its stock is off: it may not have their units back. A load
/// has the gate let go of them as well, and gives it what the ledger has; released one by one, they
/// would be given to whoever waits, and the ledger would refuse him.
fn load_what_is_not_released(wrong: &mut [Wrong]) {
    for it in wrong {
        it.by_load |= it.kind == DifferenceKind::NotReleased;
    }
}

/// What the orders that differ do not explain of a drift: units that the gate has taken and the
/// ledger knows nothing of, or has given back, are missing. A message that stands may or may not be
/// on the stream, so that nothing can be said.
fn unexplained(drift: i64, wrong: &[Wrong]) -> i64 {
    if wrong
        .iter()
        .any(|it| it.kind == DifferenceKind::NotDelivered)
    {
        return 0;
    }
    let missing = wrong.iter().filter(|it| {
        matches!(
            it.kind,
            DifferenceKind::MessageGone | DifferenceKind::NotReleased
        )
    });
    let missing: i64 = missing.map(|it| i64::from(it.claim.quantity)).sum();
    drift + missing
}

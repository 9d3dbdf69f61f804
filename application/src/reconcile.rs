//! Finds differences between gate and ledger, and mends them.
//!
//! Two looks at sets of order ids, never at two live counters. The second look is taken when the
//! ledger has applied everything that the gate had decided at the first: what is missing then is
//! missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seckill_domain::{Claim, OrderId, OrderStatus, PartitionId, Partitions, VoucherId};

use crate::ports::{
    AdmissionLedger, AdmissionStream, Clock, Difference, DifferenceKind, GateLoader, HotPath,
    Lease, LeaseOwner, Leases, Ledger, LedgerOrder, LedgerPorts, PartitionHead, PurchaseGate,
    Reconciliations, Report, StreamReply, VoucherFilter, VoucherFinding,
};
use crate::{Fault, ReadBalance, RelayUpdates, WantedSales};

/// How a reconciliation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconcileScope {
    /// Look at closed vouchers too, as long as they are not retired.
    pub full: bool,
    /// Report only.
    pub dry_run: bool,
}

const LEASE: &str = "reconciliation";
const LEASE_TTL: Duration = Duration::from_secs(30);
/// Least time between the two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// How long the second look waits for the ledger to catch up.
const WATERMARK_PATIENCE: Duration = Duration::from_secs(10);
const WATERMARK_PAUSE: Duration = Duration::from_millis(20);
const PAGE_MAX: usize = 1_000;
/// Most differences followed up for one voucher; the rest is for the next round.
const DIFFERENCES_MAX: usize = 1_000;
const VOUCHERS_MAX: usize = 1_000;

/// Reconciles, one instance at a time.
pub struct Reconcile {
    gate: Arc<dyn PurchaseGate>,
    loader: Arc<dyn GateLoader>,
    leases: Arc<dyn Leases>,
    ledger: Arc<dyn Ledger>,
    stream: Arc<dyn AdmissionStream>,
    admissions: Arc<dyn AdmissionLedger>,
    books: Arc<dyn Reconciliations>,
    balance: Arc<ReadBalance>,
    relay: Arc<RelayUpdates>,
    wanted: Arc<WantedSales>,
    clock: Arc<dyn Clock>,
    partitions: Partitions,
    owner: LeaseOwner,
    /// The lease is re-entrant for its owner; a reconciliation is not.
    running: AtomicBool,
}

/// The one run of this process. Ends when it is dropped.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    fn take(running: &'a AtomicBool) -> Option<Self> {
        // Lazily: a turn that is made is also dropped, and would end the one that was taken.
        (!running.swap(true, Ordering::AcqRel)).then(|| Self(running))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What the first look saw.
struct Suspicion {
    kind: DifferenceKind,
    claim: Claim,
}

impl Reconcile {
    /// Over these ports; `owner` is unique per process.
    #[expect(
        clippy::too_many_arguments,
        reason = "what reconciliation compares, said once"
    )]
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        balance: Arc<ReadBalance>,
        relay: Arc<RelayUpdates>,
        wanted: Arc<WantedSales>,
        clock: Arc<dyn Clock>,
        partitions: Partitions,
        owner: LeaseOwner,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            loader: hot.loader.clone(),
            leases: hot.leases.clone(),
            ledger: ledger.ledger.clone(),
            stream: hot.stream.clone(),
            admissions: ledger.admissions.clone(),
            books: ledger.reconciliations.clone(),
            balance,
            relay,
            wanted,
            clock,
            partitions,
            owner,
            running: AtomicBool::new(false),
        }
    }

    /// Runs once and stores the report. `None` if another instance is at it.
    pub async fn run(&self, scope: ReconcileScope) -> Result<Option<Report>, Fault> {
        let Some(_turn) = Turn::take(&self.running) else {
            return Ok(None);
        };
        let Some(lease) = self.leases.acquire(LEASE, &self.owner, LEASE_TTL).await? else {
            return Ok(None);
        };
        let report = self.look_around(scope, &lease).await;
        self.leases.release(&lease).await?;
        report.map(Some)
    }

    async fn look_around(&self, scope: ReconcileScope, lease: &Lease) -> Result<Report, Fault> {
        let started_at = self.clock.now();
        let mut vouchers = Vec::new();
        for voucher in self.scope(scope).await? {
            if !self.leases.renew(lease, LEASE_TTL).await? {
                return Err(Fault::unavailable(
                    "reconcile",
                    "another instance has taken over",
                ));
            }
            vouchers.extend(self.voucher(voucher, scope).await?);
        }
        let finished_at = self.clock.now();
        let ReconcileScope { full, dry_run } = scope;
        let mut report = Report {
            id: 0,
            started_at,
            finished_at,
            full,
            dry_run,
            vouchers,
        };
        report.id = self.books.store(&report).await?;
        Ok(report)
    }

    async fn scope(&self, scope: ReconcileScope) -> Result<Vec<VoucherId>, Fault> {
        let mut found = self
            .ledger
            .vouchers(VoucherFilter::OnSale, None, VOUCHERS_MAX)
            .await?
            .items;
        if scope.full {
            let closing = self
                .ledger
                .vouchers(VoucherFilter::Closing, None, VOUCHERS_MAX)
                .await?;
            found.extend(closing.items);
        }
        Ok(found.into_iter().map(|voucher| voucher.id).collect())
    }

    /// `None` if the gate does not have the voucher: it is loaded, which mends everything.
    async fn voucher(
        &self,
        voucher: VoucherId,
        scope: ReconcileScope,
    ) -> Result<Option<VoucherFinding>, Fault> {
        let Some(suspicions) = self.first_look(voucher).await? else {
            self.wanted.request(voucher);
            return Ok(None);
        };
        let first_balance = self.balance.run(voucher).await?;
        self.clock.sleep(BETWEEN_LOOKS).await;
        let caught_up = self.reach_watermark(voucher).await?;
        let mut differences = Vec::new();
        for suspicion in suspicions {
            differences.extend(self.second_look(suspicion, caught_up, scope).await?);
        }
        let Some(second) = self.balance.run(voucher).await? else {
            return Ok(None);
        };
        // A free count is off only if it is off by the same in both looks, at rest in each, while
        // every order agrees.
        let drift = |balance: &crate::Balance| balance.drift().unwrap_or(0);
        let first_drift = first_balance.as_ref().map_or(0, drift);
        let agreed = differences.is_empty() && first_drift == drift(&second);
        let free_drift = if agreed { first_drift } else { 0 };
        if free_drift != 0 && !scope.dry_run {
            self.reload(voucher, free_drift).await?;
        }
        if differences.iter().any(|difference| difference.repaired) {
            self.relay.nudge(voucher).await;
        }
        let (tally, holds) = (second.tally, second.holds);
        Ok(Some(VoucherFinding {
            voucher,
            tally,
            holds,
            free_drift,
            differences,
        }))
    }

    async fn reload(&self, voucher: VoucherId, drift: i64) -> Result<(), Fault> {
        tracing::error!(%voucher, drift, "the gate's free stock is off; loading the sale again");
        self.loader.unload(voucher).await?;
        self.wanted.request(voucher);
        Ok(())
    }

    /// Every order about which gate and ledger do not obviously agree.
    async fn first_look(&self, voucher: VoucherId) -> Result<Option<Vec<Suspicion>>, Fault> {
        let mut suspicions = Vec::new();
        let mut cursor = 0;
        loop {
            let Some(page) = self.gate.holders(voucher, cursor).await? else {
                return Ok(None);
            };
            for claims in page.claims.chunks(PAGE_MAX) {
                self.suspect_holders(claims, &mut suspicions).await?;
            }
            match page.next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        if !self.suspect_orders(voucher, &mut suspicions).await? {
            return Ok(None);
        }
        suspicions.truncate(DIFFERENCES_MAX);
        Ok(Some(suspicions))
    }

    async fn suspect_holders(
        &self,
        claims: &[Claim],
        suspicions: &mut Vec<Suspicion>,
    ) -> Result<(), Fault> {
        let ids: Vec<OrderId> = claims.iter().map(|claim| claim.order).collect();
        let known = self.books.orders(&ids).await?;
        for claim in claims {
            let status = known.iter().find(|order| order.claim.order == claim.order);
            let kind = match status.map(|order| order.status) {
                None | Some(OrderStatus::Waiting) => DifferenceKind::MessageGone,
                Some(status) if status.is_live() => continue,
                Some(_) => DifferenceKind::NotReleased,
            };
            suspicions.push(Suspicion {
                kind,
                claim: claim.clone(),
            });
        }
        Ok(())
    }

    /// `false` if the gate lost the voucher meanwhile.
    async fn suspect_orders(
        &self,
        voucher: VoucherId,
        suspicions: &mut Vec<Suspicion>,
    ) -> Result<bool, Fault> {
        let mut after = OrderId::new(0);
        loop {
            let live = self.books.live_orders(voucher, after, PAGE_MAX).await?;
            let Some(last) = live.last().map(|order| order.claim.order) else {
                return Ok(true);
            };
            let buyers: Vec<_> = live.iter().map(|order| order.claim.buyer).collect();
            let Some(held) = self.gate.held_by(voucher, &buyers).await? else {
                return Ok(false);
            };
            for (LedgerOrder { claim, .. }, held) in live.into_iter().zip(held) {
                if !held.iter().any(|held| held.order == claim.order) {
                    suspicions.push(Suspicion {
                        kind: DifferenceKind::HolderGone,
                        claim,
                    });
                }
            }
            after = last;
        }
    }

    /// Waits until the ledger has applied what the gate has decided by now, or what is left of it.
    /// `false` if it does not get there in time.
    async fn reach_watermark(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let partition = self.partitions.of(voucher);
        let head = self.admissions.head(partition).await?;
        let Some(gate) = self.gate.tally(voucher, head.entry).await? else {
            return Ok(false);
        };
        let deadline = self.clock.monotonic() + WATERMARK_PATIENCE;
        loop {
            let head = self.admissions.head(partition).await?;
            if head.applied >= gate.sequence || self.nothing_stands(partition, head).await? {
                return Ok(true);
            }
            if self.clock.monotonic() >= deadline {
                return Ok(false);
            }
            self.clock.sleep(WATERMARK_PAUSE).await;
        }
    }

    /// Whether the stream has nothing for the ledger to apply: then what the gate has decided
    /// beyond the ledger's position is gone, for nothing behind it has told the order writer.
    async fn nothing_stands(
        &self,
        partition: PartitionId,
        head: PartitionHead,
    ) -> Result<bool, Fault> {
        let reply = self
            .stream
            .read_after(partition, head.epoch, head.entry, 1)
            .await?;
        let empty = matches!(&reply, StreamReply::Entries(entries) if entries.is_empty());
        // What was applied meanwhile may be trimmed already.
        Ok(empty && self.admissions.head(partition).await? == head)
    }

    /// What is still wrong about an order, repaired unless it must not be.
    async fn second_look(
        &self,
        suspicion: Suspicion,
        caught_up: bool,
        scope: ReconcileScope,
    ) -> Result<Option<Difference>, Fault> {
        let Suspicion {
            kind: suspected,
            claim,
        } = suspicion;
        let (kind, seen) = match self.compare(&claim, caught_up).await? {
            Some((kind, seen)) if kind == suspected || kind == DifferenceKind::NotDelivered => {
                (kind, seen)
            }
            _ => return Ok(None),
        };
        let repairable = !scope.dry_run && kind != DifferenceKind::NotDelivered;
        let repaired = repairable && self.books.repair(kind, &claim, seen).await?;
        tracing::error!(order = %claim.order, voucher = %claim.voucher, ?kind, repaired,
            "gate and ledger differ");
        Ok(Some(Difference {
            claim,
            kind,
            repaired,
        }))
    }

    /// Gate, ledger, gate again: what the ledger releases in between has either left the gate by
    /// the last look, or its update still stands.
    async fn compare(
        &self,
        claim: &Claim,
        caught_up: bool,
    ) -> Result<Option<(DifferenceKind, Option<OrderStatus>)>, Fault> {
        let Some(before) = self.is_held(claim).await? else {
            return Ok(None);
        };
        let known = self.books.orders(&[claim.order]).await?;
        let seen = known.first().map(|order| order.status);
        let kind = match (before, seen) {
            (true, None | Some(OrderStatus::Waiting)) if caught_up => DifferenceKind::MessageGone,
            (true, None | Some(OrderStatus::Waiting)) => DifferenceKind::NotDelivered,
            (true, Some(status)) if !status.is_live() => {
                let voucher = claim.voucher;
                let releasing = self.books.being_released(voucher, &[claim.order]).await?;
                if !releasing.is_empty() {
                    return Ok(None);
                }
                DifferenceKind::NotReleased
            }
            (false, Some(status)) if status.is_live() => DifferenceKind::HolderGone,
            _ => return Ok(None),
        };
        let after = self.is_held(claim).await?;
        Ok((after == Some(before)).then_some((kind, seen)))
    }

    /// `None` if the gate does not have the voucher.
    async fn is_held(&self, claim: &Claim) -> Result<Option<bool>, Fault> {
        let held = self.gate.held_by(claim.voucher, &[claim.buyer]).await?;
        let held = held.and_then(|mut held| held.pop());
        Ok(held.map(|held| held.iter().any(|held| held.order == claim.order)))
    }

    /// Reports, newest first; `limit` 1 to 100.
    pub async fn reports(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<crate::ports::Page<Report>, Fault> {
        self.books.reports(before, limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_refused_does_not_end_the_one_that_was_taken() {
        let running = AtomicBool::new(false);
        let first = Turn::take(&running);
        assert!(first.is_some());
        for _ in 0..2 {
            assert!(Turn::take(&running).is_none());
        }
        drop(first);
        assert!(Turn::take(&running).is_some());
    }
}

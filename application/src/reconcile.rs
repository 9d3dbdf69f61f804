//! Finds differences between gate and ledger, and mends them.
//!
//! Two looks at sets of order ids, never at two live counters. The second look is taken when the
//! ledger has applied everything that the gate had decided at the first: what is missing then is
//! missing. Many sales share one pause between their looks.

mod first_look;
mod judge;
mod second_look;
mod watermark;

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seckill_domain::{Partitions, Timestamp, VoucherId};

use crate::patience::until;
use crate::ports::{
    AdmissionLedger, AdmissionStream, Clock, GateLoader, HotPath, Lease, LeaseOwner, Leases,
    Ledger, LedgerPorts, Page, PurchaseGate, Reconciliations, Report, VoucherFilter,
    VoucherFinding,
};
use crate::{Fault, ReadBalance, RelayUpdates, WantedSales};

/// How a reconciliation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconcileScope {
    /// Look at all closed vouchers too, as long as they are not retired. Otherwise only at the newest
    /// 100 of them, and at those whose units do not add up.
    pub full: bool,
    /// Report only.
    pub dry_run: bool,
}

const LEASE: &str = "reconciliation";
const LEASE_TTL: Duration = Duration::from_secs(30);
/// Least time between the two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// Sales that share it; what the first look saw of each is kept until the second.
const SALES_MAX: usize = 100;
/// Orders of one question to gate or ledger.
const PAGE_MAX: usize = 1_000;
const VOUCHERS_MAX: usize = 1_000;
/// Closed vouchers that every round looks at, the newest: as many as share one pause.
const CLOSED_MAX: usize = SALES_MAX;
/// How long reports are kept.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// Reports that are forgotten in one transaction, and how often in one run.
const FORGET_MAX: usize = 100;
const FORGET_ROUNDS: usize = 10;

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
        self.run_until(scope, pending()).await
    }

    /// As [`Reconcile::run`], but gives the turn back once `told` ends: `None` then, and no report.
    /// What was mended stays mended.
    pub async fn run_until(
        &self,
        scope: ReconcileScope,
        told: impl Future<Output = ()> + Send,
    ) -> Result<Option<Report>, Fault> {
        let Some(_turn) = Turn::take(&self.running) else {
            return Ok(None);
        };
        let Some(lease) = self.leases.acquire(LEASE, &self.owner, LEASE_TTL).await? else {
            return Ok(None);
        };
        let report = until(told, self.look_around(scope, &lease)).await;
        self.leases.release(&lease).await?;
        report.transpose()
    }

    async fn look_around(&self, scope: ReconcileScope, lease: &Lease) -> Result<Report, Fault> {
        let started_at = self.clock.now();
        let mut vouchers = Vec::new();
        for sales in self.scope(scope).await?.chunks(SALES_MAX) {
            vouchers.extend(self.sales(sales, scope, lease).await?);
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
        if let Err(fault) = self.forget(started_at).await {
            tracing::warn!(fault = fault.chain(), "old reports are forgotten later");
        }
        Ok(report)
    }

    async fn scope(&self, scope: ReconcileScope) -> Result<Vec<VoucherId>, Fault> {
        let mut found = self.listed(VoucherFilter::OnSale).await?;
        let closed = self.listed(VoucherFilter::Closing).await?;
        for (place, voucher) in closed.into_iter().enumerate() {
            if scope.full || place < CLOSED_MAX || self.is_disputed(voucher).await? {
                found.push(voucher);
            }
        }
        Ok(found)
    }

    /// Whether the units of a sale do not add up. It is not retired as long as they don't.
    async fn is_disputed(&self, voucher: VoucherId) -> Result<bool, Fault> {
        let balance = self.balance.run(voucher).await?;
        Ok(balance.is_some_and(|balance| !balance.holds))
    }

    async fn listed(&self, filter: VoucherFilter) -> Result<Vec<VoucherId>, Fault> {
        let mut ids = Vec::new();
        loop {
            let before = ids.last().copied();
            let page = self.ledger.vouchers(filter, before, VOUCHERS_MAX).await?;
            ids.extend(page.items.iter().map(|voucher| voucher.id));
            if page.next.is_none() {
                return Ok(ids);
            }
        }
    }

    /// Looks at all of these sales, pauses once, and looks again. Those that the gate does not have
    /// are loaded, which mends everything.
    async fn sales(
        &self,
        sales: &[VoucherId],
        scope: ReconcileScope,
        lease: &Lease,
    ) -> Result<Vec<VoucherFinding>, Fault> {
        let mut looks = Vec::with_capacity(sales.len());
        for voucher in sales {
            self.keep(lease).await?;
            looks.push(self.first_look(*voucher).await?);
        }
        self.clock.sleep(BETWEEN_LOOKS).await;
        let caught_up = self.reach_watermarks(&looks).await?;
        let mut findings = Vec::with_capacity(looks.len());
        for look in looks {
            self.keep(lease).await?;
            let caught_up = caught_up.contains(&self.partitions.of(look.voucher));
            findings.extend(self.second_look(look, caught_up, scope).await?);
        }
        // Last, so that a load which mended what the looks saw is among them.
        let reloads = self.books.reloads(sales).await?;
        let reloads: HashMap<VoucherId, u32> = reloads.into_iter().collect();
        for found in &mut findings {
            found.reloads = reloads.get(&found.voucher).copied().unwrap_or_default();
        }
        Ok(findings)
    }

    /// Reports are kept for a while.
    async fn forget(&self, now: Timestamp) -> Result<(), Fault> {
        for _ in 0..FORGET_ROUNDS {
            let forgotten = self.books.forget(now.minus(KEPT), FORGET_MAX).await?;
            if forgotten < FORGET_MAX {
                break;
            }
        }
        Ok(())
    }

    async fn keep(&self, lease: &Lease) -> Result<(), Fault> {
        if self.leases.renew(lease, LEASE_TTL).await? {
            return Ok(());
        }
        let lost = "another instance has taken over";
        Err(Fault::unavailable("reconcile", lost))
    }

    /// Reports, newest first; `limit` 1 to 100.
    pub async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault> {
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

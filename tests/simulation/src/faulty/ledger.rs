//! The ports of the ledger, and the payment provider.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, Confirmation, DifferenceKind, EntryId,
    EventOutbox, GateUpdates, LastRuns, LeaseOwner, Ledger, LedgerOrder, LedgerTally,
    MoneyMovements, Page, ParkedMessage, ParkedMessages, ParkedOrder, ParkedReply, PartitionHead,
    Payments, Reconciliations, Report, SaleSnapshot, Told, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    BuyerId, Claim, Epoch, Event, EventId, GateUpdate, GateVersion, IdempotencyKey, Money, Order,
    OrderId, OrderStatus, PartitionId, PaymentId, Refund, Timestamp, Voucher, VoucherId,
};

use super::unit::FaultyUnit;
use super::{Faulty, faulty};
use crate::coverage::Seen;
use crate::link::{Late, Way};

/// Batches in a thousand that are taken in two parts, of those that have two entries.
const PARTED: u32 = 500;
/// Of those, how many in a thousand come to an end in between.
const CUT_SHORT: u32 = 500;

faulty!(Ledger as "ledger" {
    voucher(id: VoucherId) -> Option<Voucher>;
    vouchers(filter: VoucherFilter, before: Option<VoucherId>, limit: usize) -> Page<Voucher>;
    order(id: OrderId) -> Option<Order>;
    parked_order(id: OrderId) -> Option<ParkedOrder>;
    stages(ids: &[OrderId]) -> Vec<(OrderId, OrderStatus)>;
    orders_of(buyer: BuyerId, before: Option<OrderId>, limit: usize) -> Page<Order>;
    orders_on(voucher: VoucherId, buyer: BuyerId, key: Option<&IdempotencyKey>) -> Vec<Order>;
    sale_snapshot(voucher: VoucherId) -> Option<SaleSnapshot>;
    tally(voucher: VoucherId, gate_version: GateVersion) -> Option<LedgerTally>;
    waiting_position(order: OrderId) -> Option<u32>;
    is_unsettled(voucher: VoucherId) -> bool;
    ping() -> ();
} late {} extra {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let unit = self.link.call("ledger.begin", self.inner.begin()).await?;
        Ok(Box::new(FaultyUnit::new(unit, self.link.clone(), self.watch.clone())))
    }
});

faulty!(AdmissionLedger as "admission_ledger" {
    head(partition: PartitionId) -> PartitionHead;
    has_applied(partition: PartitionId, items: &[BatchItem]) -> bool;
    settle_partitions(count: u16) -> u16;
} late {
    next_epoch(partition: PartitionId, seen: Epoch) -> PartitionHead {} (partition, seen);
} extra {
    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        let call = self.inner.take_over(partition);
        let watch = |_: &PartitionHead, _| self.watch.taken_over(partition, self.link.process);
        self.link.watched("admission_ledger.take_over", None, call, watch).await
    }

    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        match self.parted(batch) {
            Some((first, rest)) => self.apply_apart(&first, rest).await,
            None => self.apply_at_once(batch).await,
        }
    }
});

impl Faulty<dyn AdmissionLedger> {
    /// Some batches are taken in two parts, each of whole entries, as the ledger may.
    fn parted(&self, batch: &AdmissionBatch) -> Option<(AdmissionBatch, AdmissionBatch)> {
        let seams: Vec<usize> = (1..batch.items.len())
            .filter(|at| entry(&batch.items[at - 1]) != entry(&batch.items[*at]))
            .collect();
        let dice = &self.link.nature.dice;
        let seam = *dice.pick(&seams).filter(|_| dice.chance(PARTED))?;
        let (first, rest) = batch.items.split_at(seam);
        let first = AdmissionBatch {
            items: first.to_vec(),
            up_to: entry(first.last()?),
            ..*batch
        };
        let rest = AdmissionBatch {
            items: rest.to_vec(),
            ..*batch
        };
        Some((first, rest))
    }

    async fn apply_apart(
        &self,
        first: &AdmissionBatch,
        mut rest: AdmissionBatch,
    ) -> Result<Applied, Fault> {
        let mut applied = self.apply_at_once(first).await?;
        let Applied::Committed {
            verdicts,
            head,
            due,
        } = &mut applied
        else {
            return Ok(applied);
        };
        rest.head = *head;
        let behind = if self.link.nature.dice.chance(CUT_SHORT) {
            Err(Fault::unknown("admission_ledger.apply", "cut short"))
        } else {
            self.apply_at_once(&rest).await
        };
        if !matches!(behind, Ok(Applied::Committed { .. })) {
            self.link.nature.coverage.saw(Seen::BatchInPart);
        }
        match behind? {
            Applied::Committed {
                verdicts: more,
                head: end,
                due: later,
            } => {
                verdicts.extend(more);
                due.extend(later);
                *head = end;
                Ok(applied)
            }
            stale @ Applied::Stale(_) => Ok(stale),
        }
    }

    async fn apply_at_once(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        let (inner, watch, kept) = (self.inner.clone(), self.watch.clone(), batch.clone());
        let late: Late = Box::new(move || {
            Box::pin(async move {
                if let Ok(applied) = inner.apply(&kept).await {
                    watch.applied(&kept, &applied, Way::AnswerLost);
                }
            })
        });
        let watch = |reply: &Applied, way| self.watch.applied(batch, reply, way);
        let call = self.inner.apply(batch);
        let name = "admission_ledger.apply";
        self.link.watched(name, Some(late), call, watch).await
    }
}

/// The entry that an item came in.
fn entry(item: &BatchItem) -> EntryId {
    match item {
        BatchItem::Decision { entry, .. } | BatchItem::Unreadable { entry, .. } => *entry,
    }
}

faulty!(GateUpdates as "gate_updates" {
    after(voucher: VoucherId, after: GateVersion, max: usize) -> Vec<GateUpdate>;
    waiting(max: usize) -> Vec<VoucherId>;
} late {
    forget(voucher: VoucherId, up_to: GateVersion) -> () {} (voucher, up_to);
} extra {});

faulty!(EventOutbox as "event_outbox" {
    claim(owner: &LeaseOwner, max: usize, hold: Duration) -> Vec<Event>;
    published(ids: &[EventId]) -> ();
    unpublished() -> u64;
    of_order(order: OrderId, after: EventId, max: usize) -> Vec<Event>;
    prune(age: Duration) -> usize;
} late {} extra {});

faulty!(ParkedMessages as "parked_messages" {
    list(waiting: bool, before: Option<u64>, limit: usize) -> Page<ParkedMessage>;
} late {
    replay(id: u64) -> ParkedReply {} (id);
    discard(id: u64, reason: &str) -> ParkedReply { reason = reason.to_owned() } (id, &reason);
} extra {});

faulty!(MoneyMovements as "money_movements" {
    refunds(before: Option<u64>, limit: usize) -> Page<Refund>;
    unsent(max: usize) -> Vec<Refund>;
    sent(refund: u64) -> ();
} late {} extra {});

faulty!(Reconciliations as "reconciliations" {
    open_orders(voucher: VoucherId, after: OrderId, max: usize) -> Vec<LedgerOrder>;
    orders(ids: &[OrderId]) -> Vec<LedgerOrder>;
    being_released(voucher: VoucherId, ids: &[OrderId]) -> Vec<OrderId>;
    told_before(voucher: VoucherId) -> Vec<Told>;
    note_load(voucher: VoucherId) -> bool;
    reloads(vouchers: &[VoucherId]) -> Vec<(VoucherId, u32)>;
    store(report: &Report) -> u64;
    last_runs() -> LastRuns;
    forget(before: Timestamp, max: usize) -> usize;
    reports(before: Option<u64>, limit: usize) -> Page<Report>;
} late {
    repair(kind: DifferenceKind, claim: &Claim, seen: Option<OrderStatus>) -> bool
        { claim = claim.clone() } (kind, &claim, seen);
} extra {});

faulty!(Payments as "payments" {
    confirm(payment: &PaymentId, order: OrderId, amount: Money) -> Confirmation;
} late {
    refund(refund: &Refund) -> () { refund = refund.clone() } (&refund);
} extra {});

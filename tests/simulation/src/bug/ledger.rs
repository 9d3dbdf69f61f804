//! Bugs of a ledger.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Adjustment, AdjustmentReply, AdmissionBatch, AdmissionLedger, Applied, BatchItem, Ledger,
    LedgerTally, NewAdjustment, NewVoucher, Page, ParkedOrder, PartitionHead, PaymentRecord,
    Release, SaleSnapshot, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    AdjustmentId, BuyerId, Epoch, Fence, GateChange, GateVersion, IdempotencyKey, Money, NewEvent,
    Order, OrderId, OrderStatus, PartitionId, PaymentId, RefundReason, Sequence, Timestamp,
    Voucher, VoucherId,
};

use super::unit::Careless;
use super::{Bug, hand_on};

/// Applies batches from anybody, wherever they go on from.
pub(super) struct Unfenced {
    pub(super) inner: Arc<dyn AdmissionLedger>,
}

/// The same for everybody.
fn unfenced(head: PartitionHead) -> PartitionHead {
    let fence = Fence::default();
    PartitionHead { fence, ..head }
}

hand_on!(AdmissionLedger for Unfenced {
    has_applied(partition: PartitionId, items: &[BatchItem]) -> bool;
    settle_partitions(count: u16) -> u16;
} but {
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.inner.head(partition).await.map(unfenced)
    }

    async fn take_over(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        self.inner.take_over(partition).await.map(unfenced)
    }

    async fn next_epoch(&self, partition: PartitionId, seen: Epoch) -> Result<PartitionHead, Fault> {
        self.inner.next_epoch(partition, seen).await.map(unfenced)
    }

    async fn apply(&self, batch: &AdmissionBatch) -> Result<Applied, Fault> {
        let head = self.inner.head(batch.partition).await?;
        let mut batch = batch.clone();
        batch.head = head;
        let mut next = head.applied.next();
        for item in &mut batch.items {
            if let BatchItem::Decision { sequence, .. } = item {
                *sequence = next;
                next = next.next();
            }
        }
        Ok(match self.inner.apply(&batch).await? {
            Applied::Stale(head) => Applied::Stale(unfenced(head)),
            Applied::Committed { verdicts, head, due } => {
                let head = unfenced(head);
                Applied::Committed { verdicts, head, due }
            }
        })
    }
});

/// Says that everything is applied.
pub(super) struct Hasty {
    pub(super) inner: Arc<dyn AdmissionLedger>,
}

const FAR: Sequence = Sequence::new(u64::MAX);

hand_on!(AdmissionLedger for Hasty {
    take_over(partition: PartitionId) -> PartitionHead;
    next_epoch(partition: PartitionId, seen: Epoch) -> PartitionHead;
    apply(batch: &AdmissionBatch) -> Applied;
    has_applied(partition: PartitionId, items: &[BatchItem]) -> bool;
    settle_partitions(count: u16) -> u16;
} but {
    async fn head(&self, partition: PartitionId) -> Result<PartitionHead, Fault> {
        let head = self.inner.head(partition).await?;
        Ok(PartitionHead { applied: FAR, ..head })
    }
});

/// Forgets parts of what a gate needs, or expires without looking.
pub(super) struct Sloppy {
    pub(super) inner: Arc<dyn Ledger>,
    pub(super) bug: Bug,
}

hand_on!(Ledger for Sloppy {
    voucher(id: VoucherId) -> Option<Voucher>;
    vouchers(filter: VoucherFilter, before: Option<VoucherId>, limit: usize) -> Page<Voucher>;
    order(id: OrderId) -> Option<Order>;
    parked_order(id: OrderId) -> Option<ParkedOrder>;
    stages(ids: &[OrderId]) -> Vec<(OrderId, OrderStatus)>;
    orders_of(buyer: BuyerId, before: Option<OrderId>, limit: usize) -> Page<Order>;
    orders_on(voucher: VoucherId, buyer: BuyerId, key: Option<&IdempotencyKey>) -> Vec<Order>;
    tally(voucher: VoucherId, gate_version: GateVersion) -> Option<LedgerTally>;
    waiting_position(order: OrderId) -> Option<u32>;
    is_unsettled(voucher: VoucherId) -> bool;
    ping() -> ();
} but {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let unit = self.inner.begin().await?;
        let (inner, ledger, bug) = (unit, self.inner.clone(), self.bug);
        Ok(match bug {
            Bug::ExpiryUnconditional | Bug::NoSweep => Box::new(Expiring { inner, ledger, bug }),
            Bug::NothingWritten | Bug::HalfRefunds | Bug::NoWindow => {
                Box::new(Careless { inner, bug })
            }
            _ => inner,
        })
    }

    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
        let mut snapshot = self.inner.sale_snapshot(voucher).await?;
        if let Some(snapshot) = &mut snapshot {
            if self.bug == Bug::LoadInFlight {
                snapshot.sale.applied = FAR;
            }
            for chunk in &mut snapshot.chunks {
                match self.bug {
                    Bug::HoldersForgotten => chunk.holders.clear(),
                    Bug::KeysForgotten => chunk.keys.clear(),
                    _ => {}
                }
            }
        }
        Ok(snapshot)
    }
});

/// Reads orders without locking them, and writes their ends whatever has happened since; or finds
/// none that is overdue.
struct Expiring {
    inner: Box<dyn UnitOfWork>,
    ledger: Arc<dyn Ledger>,
    bug: Bug,
}

macro_rules! statements {
    ($($method:ident($($arg:ident: $ty:ty),*) -> $reply:ty;)*) => {
        #[async_trait]
        impl UnitOfWork for Expiring {
            $(async fn $method(&mut self, $($arg: $ty),*) -> Result<$reply, Fault> {
                self.inner.$method($($arg),*).await
            })*

            async fn lock_orders(&mut self, ids: &[OrderId]) -> Result<Vec<Order>, Fault> {
                if self.bug == Bug::NoSweep {
                    return self.inner.lock_orders(ids).await;
                }
                let mut orders = Vec::new();
                for id in ids {
                    orders.extend(self.ledger.order(*id).await?);
                }
                Ok(orders)
            }

            async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault> {
                if self.bug == Bug::NoSweep {
                    return Ok(Vec::new());
                }
                let mut unit = self.ledger.begin().await?;
                unit.lock_overdue_orders(max).await
            }

            async fn save_orders(
                &mut self,
                from: OrderStatus,
                orders: &[Order],
            ) -> Result<usize, Fault> {
                if self.bug == Bug::NoSweep {
                    return self.inner.save_orders(from, orders).await;
                }
                let mut saved = 0;
                for order in orders {
                    let now = self.ledger.order(order.id).await?;
                    let overwrites = order.status() == OrderStatus::Expired;
                    let now = now.filter(|_| overwrites).map_or(from, |now| now.status());
                    let order = std::slice::from_ref(order);
                    saved += self.inner.save_orders(now, order).await?;
                }
                Ok(saved)
            }

            async fn commit(self: Box<Self>) -> Result<(), Fault> {
                self.inner.commit().await
            }
        }
    };
}

statements! {
    now() -> Timestamp;
    insert_voucher(voucher: &NewVoucher) -> Voucher;
    lock_voucher(id: VoucherId) -> Option<Voucher>;
    save_voucher(voucher: &Voucher, follow: bool) -> GateVersion;
    lock_order(id: OrderId) -> Option<Order>;
    release(voucher: VoucherId, releases: &[Release]) -> GateVersion;
    record_adjustment(adjustment: &NewAdjustment) -> AdjustmentReply;
    add_units(voucher: VoucherId, adjustment: AdjustmentId, units: u32) -> GateVersion;
    refuse_adjustment(adjustment: AdjustmentId) -> ();
    adjustment(id: AdjustmentId) -> Option<Adjustment>;
    push_update(voucher: VoucherId, changes: &[GateChange]) -> GateVersion;
    mark_retired(voucher: VoucherId) -> ();
    append_events(events: &[NewEvent]) -> ();
    record_payment(payment: &PaymentRecord) -> Option<PaymentRecord>;
    record_refund(order: OrderId, payment: &PaymentId, amount: Money, reason: RefundReason) -> ();
}

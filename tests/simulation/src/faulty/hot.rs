//! The ports of the hot store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionStream, Admitted, Backlog, Claimant, DelayQueue, Delivery, EntryId, EpochBegun,
    FollowReply, Following, GateLoader, GateOrder, GateTally, HoldersPage, Lease, LeaseOwner,
    Leases, LeaveReply, LoadBegun, LoadChunk, LoadStep, LoadToken, NoticeFeed, Notifier, Offered,
    OpenSale, Opened, PartitionState, PlaceReply, PurchaseGate, SaleFacts, StreamReply, Survivors,
    WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, Epoch, Event, GateUpdate, OrderId, PartitionId, Seat,
    Sequence, Timestamp, VoucherId,
};

use super::{Faulty, faulty};
use crate::link::{Late, Way};
use crate::watch::Watch;

faulty!(PurchaseGate as "purchase_gate" {
    place(voucher: VoucherId, buyer: BuyerId) -> PlaceReply;
    find_order(order: OrderId) -> Option<GateOrder>;
    has_decided(order: OrderId) -> bool;
    facts(vouchers: &[VoucherId]) -> Vec<Option<SaleFacts>>;
    tally(voucher: VoucherId, after: EntryId) -> Option<GateTally>;
    claimants(voucher: VoucherId, buyers: &[BuyerId]) -> Option<Vec<Claimant>>;
    holders(voucher: VoucherId, cursor: u64) -> Option<HoldersPage>;
    waiters(voucher: VoucherId, cursor: u64) -> Option<WaitersPage>;
    ping() -> ();
} late {
    follow(update: &GateUpdate) -> FollowReply { update = update.clone() } (&update);
    promote(voucher: VoucherId) -> bool {} (voucher);
    leave(voucher: VoucherId, buyer: BuyerId) -> LeaveReply {} (voucher, buyer);
    withdraw(voucher: VoucherId, units: u32, adjustment: AdjustmentId) -> WithdrawReply
        {} (voucher, units, adjustment);
    retire(voucher: VoucherId) -> bool {} (voucher);
} extra {
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let (inner, watch, kept) = (self.inner.clone(), self.watch.clone(), attempts.to_vec());
        let late: Late = Box::new(move || Box::pin(async move {
            if let Ok(reply) = inner.admit(voucher, &kept).await {
                watch.admitted(voucher, &kept, &reply, Way::AnswerLost);
            }
        }));
        let watch = |reply: &Admitted, way| self.watch.admitted(voucher, attempts, reply, way);
        self.link
            .watched("purchase_gate.admit", Some(late), self.inner.admit(voucher, attempts), watch)
            .await
    }
});

faulty!(GateLoader as "gate_loader" {
    partition(partition: PartitionId) -> PartitionState;
    survivors(voucher: VoucherId, cursor: u64) -> Survivors;
    load(voucher: VoucherId, token: &LoadToken, chunk: &LoadChunk, place: usize) -> LoadStep;
} late {
    begin_load(voucher: VoucherId, token: &LoadToken, ttl: Duration) -> LoadBegun
        { token = token.clone() } (voucher, &token, ttl);
    append_again(voucher: VoucherId, token: &LoadToken, holders: &[Claim], seats: &[Seat]) -> LoadStep
        { token = token.clone(), holders = holders.to_vec(), seats = seats.to_vec() }
        (voucher, &token, &holders, &seats);
    abandon(voucher: VoucherId, token: &LoadToken) -> ()
        { token = token.clone() } (voucher, &token);
    unload(voucher: VoucherId) -> () {} (voucher);
    offer(voucher: VoucherId, claims: &[Claim], seats: &[Seat]) -> Offered
        { claims = claims.to_vec(), seats = seats.to_vec() } (voucher, &claims, &seats);
    lose(voucher: VoucherId, claims: &[Claim]) -> Offered
        { claims = claims.to_vec() } (voucher, &claims);
} extra {
    async fn open(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        sale: &OpenSale,
        chunks: usize,
    ) -> Result<Opened, Fault> {
        let (inner, watch) = (self.inner.clone(), self.watch.clone());
        let (kept, of) = (token.clone(), *sale);
        let late: Late = Box::new(move || Box::pin(async move {
            if let Ok(reply) = inner.open(voucher, &kept, &of, chunks).await {
                watch.opened(voucher, reply);
            }
        }));
        let watch = |reply: &Opened, _| self.watch.opened(voucher, *reply);
        let call = self.inner.open(voucher, token, sale, chunks);
        self.link.watched("gate_loader.open", Some(late), call, watch).await
    }

    async fn begin_epoch(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied: Sequence,
    ) -> Result<EpochBegun, Fault> {
        let begin = move |inner: Arc<dyn GateLoader>, watch: Arc<Watch>| async move {
            let before = watch.unapplied(partition);
            let reply = inner.begin_epoch(partition, epoch, applied).await;
            watch.left_behind(partition, before);
            reply
        };
        let (inner, watch) = (self.inner.clone(), self.watch.clone());
        let late: Late = Box::new(move || Box::pin(async move {
            drop(begin(inner, watch).await);
        }));
        let call = begin(self.inner.clone(), self.watch.clone());
        let watch = |reply: &EpochBegun, _| self.watch.epoch_begun(partition, epoch, *reply);
        self.link.watched("gate_loader.begin_epoch", Some(late), call, watch).await
    }
});

faulty!(AdmissionStream as "admission_stream" {
    backlog(partition: PartitionId) -> Backlog;
    read_pending(partition: PartitionId, epoch: Epoch, consumer: &str, after: EntryId, max: usize)
        -> Vec<Delivery>;
} late {
    ack(partition: PartitionId, epoch: Epoch, ids: &[EntryId], applied: Sequence) -> ()
        { ids = ids.to_vec() } (partition, epoch, &ids, applied);
    trim(partition: PartitionId, epoch: Epoch, applied_up_to: EntryId, keep: Duration) -> usize
        {} (partition, epoch, applied_up_to, keep);
    take_over(partition: PartitionId, epoch: Epoch, consumer: &str) -> usize
        { consumer = consumer.to_owned() } (partition, epoch, &consumer);
} extra {
    async fn read_after(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        after: EntryId,
        max: usize,
    ) -> Result<StreamReply, Fault> {
        let call = self.inner.read_after(partition, epoch, after, max);
        let watch = |reply: &StreamReply, _| {
            // One entry is only looked at.
            if max > 1 {
                self.watch.delivered(partition, epoch, reply);
            }
        };
        self.link.watched("admission_stream.read_after", None, call, watch).await
    }

    async fn read_new(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<StreamReply, Fault> {
        let call = self.inner.read_new(partition, epoch, consumer, max, wait);
        let watch = |reply: &StreamReply, _| self.watch.delivered(partition, epoch, reply);
        self.link.watched("admission_stream.read_new", None, call, watch).await
    }
});

faulty!(Leases as "leases" {
    acquire(name: &str, owner: &LeaseOwner, ttl: Duration) -> Option<Lease>;
} late {
    renew(lease: &Lease, ttl: Duration) -> bool { lease = lease.clone() } (&lease, ttl);
    release(lease: &Lease) -> bool { lease = lease.clone() } (&lease);
} extra {});

faulty!(DelayQueue as "delay_queue" {
    claim_due(max: usize, hold: Duration) -> Vec<OrderId>;
    wait(max: Duration) -> ();
    scheduled() -> u64;
} late {
    schedule(due: &[(OrderId, Timestamp)]) -> () { due = due.to_vec() } (&due);
    complete(orders: &[OrderId]) -> () { orders = orders.to_vec() } (&orders);
} extra {});

faulty!(Notifier as "notifier" {} late {} extra {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        let watch = |(): &(), _| self.watch.told(events);
        self.link.watched("notifier.notify", None, self.inner.notify(events), watch).await
    }
});

faulty!(NoticeFeed as "notice_feed" {
    follow(order: OrderId) -> Box<dyn Following>;
} late {} extra {});

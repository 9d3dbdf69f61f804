//! The ports of the hot store.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdmissionStream, Admitted, Backlog, Claimant, DelayQueue, Delivery, EntryId, EpochBegun,
    FollowReply, GateLoader, GateOrder, GateTally, HoldersPage, Lease, LeaseOwner, Leases,
    LeaveReply, LoadBegun, LoadChunk, LoadStep, LoadToken, Notifier, Offered, OpenSale, Opened,
    OrderIds, PartitionState, PlaceReply, PurchaseGate, SaleFacts, StreamReply, Survivors,
    WaitersPage, WithdrawReply,
};
use seckill_domain::{
    AdjustmentId, Attempt, BuyerId, Claim, Epoch, Event, GateUpdate, OrderId, PartitionId, Seat,
    Sequence, Timestamp, VoucherId,
};

use super::{Interrupted, counted};

counted!(PurchaseGate as "purchase_gate" {
    admit(voucher: VoucherId, attempts: &[Attempt]) -> Admitted;
    follow(update: &GateUpdate) -> FollowReply;
    promote(voucher: VoucherId) -> bool;
    leave(voucher: VoucherId, buyer: BuyerId) -> LeaveReply;
    withdraw(voucher: VoucherId, units: u32, adjustment: AdjustmentId) -> WithdrawReply;
    place(voucher: VoucherId, buyer: BuyerId) -> PlaceReply;
    find_order(order: OrderId) -> Option<GateOrder>;
    has_decided(order: OrderId) -> bool;
    facts(vouchers: &[VoucherId]) -> Vec<Option<SaleFacts>>;
    tally(voucher: VoucherId, after: EntryId) -> Option<GateTally>;
    claimants(voucher: VoucherId, buyers: &[BuyerId]) -> Option<Vec<Claimant>>;
    holders(voucher: VoucherId, cursor: u64) -> Option<HoldersPage>;
    waiters(voucher: VoucherId, cursor: u64) -> Option<WaitersPage>;
    retire(voucher: VoucherId) -> bool;
    ping() -> ();
});

counted!(GateLoader as "gate_loader" {
    partition(partition: PartitionId) -> PartitionState;
    begin_epoch(partition: PartitionId, epoch: Epoch, applied: Sequence) -> EpochBegun;
    begin_load(voucher: VoucherId, token: &LoadToken, ttl: Duration) -> LoadBegun;
    survivors(voucher: VoucherId, cursor: u64) -> Survivors;
    append_again(voucher: VoucherId, token: &LoadToken, holders: &[Claim], seats: &[Seat])
        -> LoadStep;
    load(voucher: VoucherId, token: &LoadToken, chunk: &LoadChunk, place: usize) -> LoadStep;
    open(voucher: VoucherId, token: &LoadToken, sale: &OpenSale, chunks: usize) -> Opened;
    abandon(voucher: VoucherId, token: &LoadToken) -> ();
    unload(voucher: VoucherId) -> ();
    offer(voucher: VoucherId, claims: &[Claim], seats: &[Seat]) -> Offered;
    lose(voucher: VoucherId, claims: &[Claim]) -> Offered;
});

counted!(AdmissionStream as "admission_stream" {
    read_after(partition: PartitionId, epoch: Epoch, after: EntryId, max: usize) -> StreamReply;
    read_new(partition: PartitionId, epoch: Epoch, consumer: &str, max: usize, wait: Duration)
        -> StreamReply;
    take_over(partition: PartitionId, epoch: Epoch, consumer: &str) -> usize;
    read_pending(partition: PartitionId, epoch: Epoch, consumer: &str, after: EntryId, max: usize)
        -> Vec<Delivery>;
    ack(partition: PartitionId, epoch: Epoch, ids: &[EntryId], applied: Sequence) -> ();
    trim(partition: PartitionId, epoch: Epoch, applied_up_to: EntryId, keep: Duration) -> usize;
    backlog(partition: PartitionId) -> Backlog;
});

counted!(Leases as "leases" {
    acquire(name: &str, owner: &LeaseOwner, ttl: Duration) -> Option<Lease>;
    renew(lease: &Lease, ttl: Duration) -> bool;
    release(lease: &Lease) -> bool;
});

counted!(OrderIds as "order_ids" {
    next() -> OrderId;
});

counted!(DelayQueue as "delay_queue" {
    schedule(due: &[(OrderId, Timestamp)]) -> ();
    claim_due(max: usize, hold: Duration) -> Vec<OrderId>;
    complete(orders: &[OrderId]) -> ();
    wait(max: Duration) -> ();
    scheduled() -> u64;
});

counted!(Notifier as "notifier" {
    notify(events: &[Event]) -> ();
});

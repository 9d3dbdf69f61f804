//! What the use cases need from the world.
//!
//! House rules, for whoever adds a port:
//! - expected answers are `Ok` variants; `Err` is always [`Fault`](crate::Fault);
//! - every method says what is atomic, what may be repeated, and what is bounded;
//! - time is an argument, except at the gate and in the ledger, whose own clocks decide;
//! - every port has a real adapter and an in-memory one, and one contract suite that both pass.

mod admission_ledger;
mod admission_stream;
mod clock;
mod delay_queue;
mod events;
mod gate_loader;
mod gate_updates;
mod leases;
mod ledger;
mod money_movements;
mod order_ids;
mod parked_messages;
mod payments;
mod purchase_gate;
mod reconciliations;

use std::sync::Arc;

pub use admission_ledger::{
    AdmissionBatch, AdmissionLedger, Applied, BatchItem, ParkReason, PartitionHead, Taken, Verdict,
};
pub use admission_stream::{
    AdmissionStream, Backlog, Delivery, Entry, EntryId, StreamReply, Unreadable,
};
pub use clock::Clock;
pub use delay_queue::DelayQueue;
pub use events::{EventOutbox, Following, NoticeFeed, Notifier};
pub use gate_loader::{
    EpochBegun, GateLoader, Holder, KeyUse, LOAD_CHUNK_MAX, LoadBegun, LoadChunk, LoadStep,
    LoadToken, Offered, OpenSale, Opened, PartitionState, Survivors,
};
pub use gate_updates::GateUpdates;
pub use leases::{Lease, LeaseOwner, Leases};
pub use ledger::{
    Adjustment, AdjustmentReply, AdjustmentState, Ledger, LedgerTally, NewAdjustment, NewVoucher,
    Page, ParkedOrder, Release, SaleSnapshot, UnitOfWork, VoucherFilter,
};
pub use money_movements::{MoneyMovements, PaymentOutcome, PaymentRecord};
pub use order_ids::OrderIds;
pub use parked_messages::{ParkedMessage, ParkedMessages, ParkedReply, ParkedState};
pub use payments::{Confirmation, Payments};
pub use purchase_gate::{
    ATTEMPTS_MAX, Admitted, Claimant, FollowReply, GateOrder, GateTally, HoldersPage, LeaveReply,
    NotLoaded, Place, PlaceReply, PurchaseGate, SaleFacts, WaitersPage, WithdrawReply,
};

pub use reconciliations::{
    Difference, DifferenceKind, LastRuns, LedgerOrder, Reconciliations, Report, Told,
    VoucherFinding,
};

/// The ports that share one hot store. They are built together, so a gate in Redis with a stream in
/// memory cannot be expressed.
#[derive(Clone)]
pub struct HotPath {
    /// Who gets a unit.
    pub gate: Arc<dyn PurchaseGate>,
    /// Loading and rebuilding the gate.
    pub loader: Arc<dyn GateLoader>,
    /// What the gate decided, in order.
    pub stream: Arc<dyn AdmissionStream>,
    /// Who works on what.
    pub leases: Arc<dyn Leases>,
    /// New order ids.
    pub order_ids: Arc<dyn OrderIds>,
    /// Which orders are due when.
    pub delays: Arc<dyn DelayQueue>,
    /// Tells other processes what happened.
    pub notifier: Arc<dyn Notifier>,
    /// Hears what other processes tell.
    pub feed: Arc<dyn NoticeFeed>,
}

/// The ports that share one database.
#[derive(Clone)]
pub struct LedgerPorts {
    /// Reads, and units of work for single commands.
    pub ledger: Arc<dyn Ledger>,
    /// Decisions, applied in batches.
    pub admissions: Arc<dyn AdmissionLedger>,
    /// What the gate has to follow.
    pub updates: Arc<dyn GateUpdates>,
    /// What happened.
    pub events: Arc<dyn EventOutbox>,
    /// What could not be applied.
    pub parked: Arc<dyn ParkedMessages>,
    /// Money that moved.
    pub money: Arc<dyn MoneyMovements>,
    /// Comparison with the gate.
    pub reconciliations: Arc<dyn Reconciliations>,
}

//! Admission control: decides atomically who gets a unit.

use async_trait::async_trait;
use seckill_domain::{
    AdjustmentId, Admission, Attempt, BuyerId, Claim, Epoch, GateUpdate, GateVersion, Held,
    LeftReason, OrderId, PlaceAtFirst, Pulse, SaleTerms, Seat, Sequence, VoucherId,
};

use super::EntryId;
use crate::Fault;

/// Most attempts of one [`PurchaseGate::admit`].
pub const ATTEMPTS_MAX: usize = 64;

/// Why the gate cannot decide about a voucher right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotLoaded {
    /// The voucher is not at the gate, or some of it is missing. Never means "sold out".
    Voucher,
    /// Somebody is loading it.
    Loading,
    /// The whole partition is missing or incomplete: it needs a new epoch first.
    Partition,
    /// The voucher is over and was taken out of the gate; the ledger knows all about it.
    Retired,
}

/// The gate's reply to a batch of attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted {
    /// One answer per attempt, in the order of the attempts, and the sale as it is after them.
    Decided {
        /// The answers.
        admissions: Vec<Admission>,
        /// The sale after them.
        pulse: Pulse,
    },
    /// Nothing was decided and nothing changed.
    NotLoaded(NotLoaded),
    /// The ledger is too far behind; nothing was decided and nothing changed.
    BacklogFull,
}

/// Reply to an update from the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowReply {
    /// Applied now. `more` if the waitlist could be served further; call [`PurchaseGate::promote`].
    Applied {
        /// Whether promotions are left to do.
        more: bool,
    },
    /// The gate has it, or something newer.
    AlreadyApplied,
    /// An earlier version is missing; nothing changed.
    Gap {
        /// How far the gate has followed.
        at: GateVersion,
    },
    /// Nothing changed.
    NotLoaded(NotLoaded),
}

/// Reply to a buyer who leaves the waitlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveReply {
    /// The place of this order was given up.
    Left(OrderId),
    /// There was no place.
    NotWaiting,
    /// The buyer has been given his units.
    AlreadyPromoted(OrderId),
    /// Nothing changed.
    NotLoaded(NotLoaded),
}

/// Reply to taking free units out of a sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithdrawReply {
    /// They are out, now or by an earlier call with the same adjustment.
    Withdrawn,
    /// There are fewer; nothing changed.
    NotEnough {
        /// Units nobody has.
        free: u32,
    },
    /// Nothing changed.
    NotLoaded(NotLoaded),
}

/// A buyer's place on the waitlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// He waits.
    Waiting {
        /// His order.
        order: OrderId,
        /// His place, counted from 1.
        position: u32,
        /// How many wait.
        length: u32,
    },
    /// He waited and was given units.
    Promoted {
        /// The order that holds them.
        order: OrderId,
        /// How many wait.
        length: u32,
    },
}

/// Where a buyer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceReply {
    /// He waits, or was promoted.
    At(Place),
    /// He neither waits nor was promoted.
    Nowhere,
    /// The gate cannot say.
    NotLoaded(NotLoaded),
}

/// An order as the gate remembers it: from its decision until about a minute after the ledger has
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateOrder {
    /// Who wants or has what. The key is not kept here and always `None`.
    pub claim: Claim,
    /// What the buyer was told.
    pub first: PlaceAtFirst,
    /// When the gate decided about it last, in Unix milliseconds of the gate's clock.
    pub decided_at: seckill_domain::Timestamp,
    /// Whether it has units now. `false` while it waits.
    pub holds_units: bool,
    /// His place on the waitlist, counted from 1, while it waits.
    pub position: Option<u32>,
    /// Why it left the waitlist, if that was the last decision about it.
    pub left: Option<LeftReason>,
    /// Whether the ledger is known to have applied the last decision about it. From then on the
    /// ledger alone can say what became of the order.
    pub applied: bool,
}

impl GateOrder {
    /// Whether the gate alone can say where it is: the ledger does not have the last decision about
    /// it, and the gate has what that decision made of it.
    pub fn is_gates_to_say(&self) -> bool {
        !self.applied && (self.holds_units || self.position.is_some() || self.left.is_some())
    }
}

/// A sale as the gate sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleFacts {
    /// What the gate goes by.
    pub terms: SaleTerms,
    /// Units nobody has, and who waits.
    pub pulse: Pulse,
}

/// What the gate knows about the units of one voucher, read in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateTally {
    /// The life of the hot data.
    pub epoch: Epoch,
    /// The last decision of the partition.
    pub sequence: Sequence,
    /// Units nobody has.
    pub free: u32,
    /// How far the gate has followed the ledger.
    pub version: GateVersion,
    /// Units taken by decisions about this voucher that stand in the stream after the given entry.
    pub units_after: u64,
}

/// What the gate has of a buyer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claimant {
    /// His orders that hold units, the first one first.
    pub held: Vec<Held>,
    /// His place on the waitlist.
    pub seat: Option<Seat>,
}

/// A page of those who hold units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldersPage {
    /// What they hold. Their keys are not kept here.
    pub claims: Vec<Claim>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<u64>,
}

/// A page of those who wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitersPage {
    /// Their places, by rising turn. All who share a turn are on one page.
    pub seats: Vec<Seat>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<u64>,
}

/// Admission control.
///
/// Every method is one atomic step of the hot store. A call that fails with
/// [`Effect::Unknown`](crate::Effect::Unknown) may be repeated as it is: what was decided is not
/// decided again.
#[async_trait]
pub trait PurchaseGate: Send + Sync {
    /// Decides a batch of attempts on one voucher (at most [`ATTEMPTS_MAX`]),
    /// one after the other, in one step, with the gate's clock. The questions are asked in the
    /// order of [`Sale::admit`](seckill_domain::Sale::admit), preceded by: was this order id
    /// decided before? A grant or a place is on the admission stream in the same step: there is no
    /// separate publish.
    async fn admit(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault>;

    /// Applies one update of the ledger, once, in the order of versions, then promotes the head of
    /// the waitlist with what came free (at most 128 promotions a call).
    async fn follow(&self, update: &GateUpdate) -> Result<FollowReply, Fault>;

    /// Serves the waitlist with free units (at most 128 promotions) and, when the sale is over,
    /// takes waiting buyers off it (at most 128). `true` if there is more to do. A voucher that is
    /// not loaded has nothing to do.
    async fn promote(&self, voucher: VoucherId) -> Result<bool, Fault>;

    /// Gives a buyer's place up. Repeatable.
    async fn leave(&self, voucher: VoucherId, buyer: BuyerId) -> Result<LeaveReply, Fault>;

    /// Takes free units out of the sale. Repeatable with the same adjustment, for about a minute
    /// after the ledger has it.
    async fn withdraw(
        &self,
        voucher: VoucherId,
        units: u32,
        adjustment: AdjustmentId,
    ) -> Result<WithdrawReply, Fault>;

    /// A buyer's place.
    async fn place(&self, voucher: VoucherId, buyer: BuyerId) -> Result<PlaceReply, Fault>;

    /// An order that was decided lately. Looks in every partition.
    async fn find_order(&self, order: OrderId) -> Result<Option<GateOrder>, Fault>;

    /// Whether an order was decided lately, also if the decision is gone from the stream. Looks in
    /// every partition.
    async fn has_decided(&self, order: OrderId) -> Result<bool, Fault>;

    /// The sale of each voucher, in the order asked; `None` for one that is not loaded. At most 100.
    async fn facts(&self, vouchers: &[VoucherId]) -> Result<Vec<Option<SaleFacts>>, Fault>;

    /// The gate's side of a voucher's balance. Counts the stream after `after`; refuses with a
    /// retryable fault if more than 20,000 decisions stand there. `None` if not loaded.
    async fn tally(&self, voucher: VoucherId, after: EntryId) -> Result<Option<GateTally>, Fault>;

    /// What the gate has of these buyers, in the order asked. What cannot be read counts as
    /// none. `None` if the voucher is not loaded. At most 1,000.
    async fn claimants(
        &self,
        voucher: VoucherId,
        buyers: &[BuyerId],
    ) -> Result<Option<Vec<Claimant>>, Fault>;

    /// Everybody who holds units, a page at a time from `cursor` (0 at first), about 1,000 a page.
    /// A holder who is there all the time is on some page; one that comes or goes meanwhile may
    /// or may not be. `None` if the voucher is not loaded, or what somebody holds cannot be read: then
    /// it has to be loaded again.
    async fn holders(&self, voucher: VoucherId, cursor: u64) -> Result<Option<HoldersPage>, Fault>;

    /// Everybody who waits, by rising turn, a page at a time from `cursor` (0 at first), about 1,000
    /// a page. One who waits all the time is on some page; one that comes or goes meanwhile may or
    /// may not be. `None` if the voucher is not loaded, or its places contradict each other: then it
    /// has to be loaded again.
    async fn waiters(&self, voucher: VoucherId, cursor: u64) -> Result<Option<WaitersPage>, Fault>;

    /// Takes a voucher that is over out of the gate and leaves a marker. Refuses (`false`) while
    /// anybody waits. The caller has made sure that nothing is unpaid, parked or in flight.
    async fn retire(&self, voucher: VoucherId) -> Result<bool, Fault>;

    /// Whether the hot store answers, and takes writes.
    async fn ping(&self) -> Result<(), Fault>;
}

//! The record of truth: reads, and units of work.

use async_trait::async_trait;
use seckill_domain::invariants::Tally;
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, GateChange, GateVersion, IdempotencyKey, Money, NewEvent, Order,
    OrderId, OrderStatus, PaymentId, RefundReason, Timestamp, Voucher, VoucherId, VoucherTerms,
};

use super::{LoadChunk, OpenSale, PaymentRecord};
use crate::Fault;

/// A part of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page starts: the id of the last item here. `None` at the end.
    pub next: Option<u64>,
}

/// Which vouchers to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoucherFilter {
    /// Those that buyers may see: published, paused, closed.
    Public,
    /// All of them.
    All,
    /// Published or paused: those the gate should have.
    OnSale,
    /// Published or paused, and past their closing time.
    Overdue,
    /// Closed, and not retired from the gate.
    Closing,
}

/// A voucher to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVoucher {
    /// What the administrator set; checked.
    pub terms: VoucherTerms,
    /// Units the sale has in all.
    pub total_units: u32,
}

/// The ledger's side of a voucher's balance, read in one consistent step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerTally {
    /// Units the sale has in all.
    pub total: u32,
    /// Units in no live order and not parked, of a voucher that was missing while the gate took them
    /// neither.
    pub stock: u32,
    /// Units of parked messages.
    pub parked: u32,
    /// Units of orders that wait for payment.
    pub awaiting_payment: u32,
    /// Units of paid orders.
    pub paid: u32,
    /// The number of the last transaction that changed units or settings.
    pub version: GateVersion,
    /// Units returned or added by updates after the given version.
    pub units_returned_after: u64,
    /// How far the partition's stream is applied.
    pub head: super::PartitionHead,
}

impl LedgerTally {
    /// Where the units are by the ledger alone, which gives its own stock for the free ones. It
    /// holds at every moment, whatever is on its way.
    pub fn by_itself(&self) -> Tally {
        Tally {
            total: i64::from(self.total),
            free: i64::from(self.stock),
            in_flight: 0,
            parked: i64::from(self.parked),
            awaiting_payment: i64::from(self.awaiting_payment),
            paid: i64::from(self.paid),
        }
    }
}

/// Everything about a sale that the gate needs, read in one consistent step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaleSnapshot {
    /// What opens the sale. Free units are the ledger's stock.
    pub sale: OpenSale,
    /// Live orders, waiting orders and used keys, in chunks.
    pub chunks: Vec<LoadChunk>,
    /// Unpaid orders with the end of their payment window, in no particular order.
    pub due: Vec<(OrderId, Timestamp)>,
}

/// An order whose decision is parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedOrder {
    /// Who wants or has what.
    pub claim: Claim,
    /// When the gate decided it, by the gate's clock.
    pub decided_at: Timestamp,
}

/// A change of a voucher's stock that an administrator asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjustment {
    /// Its number.
    pub id: AdjustmentId,
    /// Units added (positive) or taken out (negative).
    pub delta: i32,
    /// Where it is.
    pub state: AdjustmentState,
}

/// Where an adjustment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdjustmentState {
    /// Written down, not in the stock yet: units are taken out at the gate first.
    Pending,
    /// In the stock.
    Applied,
    /// The gate had too few free units.
    Refused,
}

/// An adjustment to write down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAdjustment {
    /// Of which voucher.
    pub voucher: VoucherId,
    /// Units to add (positive) or take out (negative); not 0.
    pub delta: i32,
    /// Why, in the administrator's words.
    pub reason: String,
    /// The client's key, scoped to the voucher.
    pub key: Option<IdempotencyKey>,
}

/// Reply to writing an adjustment down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdjustmentReply {
    /// It is written down now, or was by an earlier call with the same key.
    Recorded(Adjustment),
    /// The key was used for another delta.
    KeyReused,
}

/// Units that an order gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The order.
    pub order: OrderId,
    /// Who held them.
    pub buyer: BuyerId,
    /// How many.
    pub quantity: u32,
}

/// Reads of the ledger, and the way into a unit of work.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Begins a transaction.
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault>;

    /// A voucher.
    async fn voucher(&self, id: VoucherId) -> Result<Option<Voucher>, Fault>;

    /// Vouchers, newest first, those before `before`, at most `limit` (1 to 1,000).
    async fn vouchers(
        &self,
        filter: VoucherFilter,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<Voucher>, Fault>;

    /// An order.
    async fn order(&self, id: OrderId) -> Result<Option<Order>, Fault>;

    /// What the newest parked message about an order claims; `None` if none waits.
    async fn parked_order(&self, id: OrderId) -> Result<Option<ParkedOrder>, Fault>;

    /// Those of these orders that the ledger has, with their stage, in no particular order. An order
    /// whose decision is parked counts as had, and as queued. At most 1,000.
    async fn stages(&self, ids: &[OrderId]) -> Result<Vec<(OrderId, OrderStatus)>, Fault>;

    /// A buyer's orders, newest id first, those before `before`, at most `limit` (1 to 100).
    async fn orders_of(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<Order>, Fault>;

    /// A buyer's live and waiting orders of one voucher, and the order of a key: what a retired
    /// voucher still has to answer. Oldest first.
    async fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Order>, Fault>;

    /// Everything the gate needs about a sale. `None` for an unknown voucher. One consistent read:
    /// `applied` of the reply is the partition's position in the same snapshot. Grants whose
    /// decision is parked count as held, and places whose decision is parked as taken, if the ledger
    /// has nothing of their order; the newest parked message about an order decides.
    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault>;

    /// The ledger's side of a balance. `None` for an unknown voucher. Updates after `gate_version`
    /// count as not yet at the gate.
    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault>;

    /// The position of a waiting order among those that wait for the same voucher, counted from 1.
    async fn waiting_position(&self, order: OrderId) -> Result<Option<u32>, Fault>;

    /// Whether anything about a voucher is unsettled: orders that wait or are unpaid, parked
    /// messages that wait, updates that the gate was not confirmed to have.
    async fn is_unsettled(&self, voucher: VoucherId) -> Result<bool, Fault>;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), Fault>;
}

/// A transaction. Commits by [`UnitOfWork::commit`]; dropped, it is rolled back. Locks are taken in
/// the order: orders, holdings, voucher.
#[async_trait]
pub trait UnitOfWork: Send {
    /// The database's clock.
    async fn now(&mut self) -> Result<Timestamp, Fault>;

    /// Creates a draft.
    async fn insert_voucher(&mut self, voucher: &NewVoucher) -> Result<Voucher, Fault>;

    /// A voucher, locked until the end of the transaction.
    async fn lock_voucher(&mut self, id: VoucherId) -> Result<Option<Voucher>, Fault>;

    /// Writes a locked voucher's settings and status. With `follow`, raises its version by one and
    /// writes the update for the gate; the version is returned.
    async fn save_voucher(&mut self, voucher: &Voucher, follow: bool)
    -> Result<GateVersion, Fault>;

    /// An order, locked until the end of the transaction.
    async fn lock_order(&mut self, id: OrderId) -> Result<Option<Order>, Fault>;

    /// Those of these orders that the ledger has, locked, by rising id. At most 1,000.
    async fn lock_orders(&mut self, ids: &[OrderId]) -> Result<Vec<Order>, Fault>;

    /// Orders whose payment window has ended by the database's clock, oldest first, at most `max`
    /// (1 to 1,000), locked; those that another transaction has locked are passed over.
    async fn lock_overdue_orders(&mut self, max: usize) -> Result<Vec<Order>, Fault>;

    /// Writes the stage of orders that were locked in this transaction, if they still are in the
    /// stage `from`. Returns how many were: the caller treats fewer as a fault.
    async fn save_orders(&mut self, from: OrderStatus, orders: &[Order]) -> Result<usize, Fault>;

    /// Gives the units of orders of one voucher back: the buyers' holdings and the stock change,
    /// the version rises by one, and the update for the gate is written. Returns the version.
    async fn release(
        &mut self,
        voucher: VoucherId,
        releases: &[Release],
    ) -> Result<GateVersion, Fault>;

    /// Writes an adjustment down as pending, once per key.
    async fn record_adjustment(
        &mut self,
        adjustment: &NewAdjustment,
    ) -> Result<AdjustmentReply, Fault>;

    /// Adds the units of a pending positive adjustment to total and stock, raises the version and
    /// writes the update for the gate. Returns the version.
    async fn add_units(
        &mut self,
        voucher: VoucherId,
        adjustment: AdjustmentId,
        units: u32,
    ) -> Result<GateVersion, Fault>;

    /// Marks a pending adjustment as refused.
    async fn refuse_adjustment(&mut self, adjustment: AdjustmentId) -> Result<(), Fault>;

    /// An adjustment as it is.
    async fn adjustment(&mut self, id: AdjustmentId) -> Result<Option<Adjustment>, Fault>;

    /// Raises a voucher's version and writes these changes for the gate. Returns the version.
    async fn push_update(
        &mut self,
        voucher: VoucherId,
        changes: &[GateChange],
    ) -> Result<GateVersion, Fault>;

    /// Writes down that a closed voucher has left the gate.
    async fn mark_retired(&mut self, voucher: VoucherId) -> Result<(), Fault>;

    /// Writes events down. At most 1,000.
    async fn append_events(&mut self, events: &[NewEvent]) -> Result<(), Fault>;

    /// Writes a payment down, once per provider's id. Returns what was written down first, if it is
    /// not new; then nothing is written.
    async fn record_payment(
        &mut self,
        payment: &PaymentRecord,
    ) -> Result<Option<PaymentRecord>, Fault>;

    /// Writes down that money goes back, once per payment.
    async fn record_refund(
        &mut self,
        order: OrderId,
        payment: &PaymentId,
        amount: Money,
        reason: RefundReason,
    ) -> Result<(), Fault>;

    /// Makes it so. If the answer is lost, the effect is unknown.
    async fn commit(self: Box<Self>) -> Result<(), Fault>;
}

//! What reconciliation needs of the ledger: sets of orders, repairs, and reports.

use async_trait::async_trait;
use seckill_domain::invariants::Tally;
use seckill_domain::{
    BuyerId, Claim, GateChange, OrderId, OrderStatus, Seat, Ticket, Timestamp, VoucherId,
};

use super::Page;
use crate::Fault;

/// A difference between gate and ledger about one order that persisted over two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// About which order.
    pub claim: Claim,
    /// What is wrong.
    pub kind: DifferenceKind,
    /// Whether it was repaired; `false` in a dry run, if the order moved in between, and if the last
    /// report that could repair something told of it as well: then no repair has helped.
    pub repaired: bool,
}

/// What a report told of: another buyer who has something by the same order is another difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Told {
    /// About which order.
    pub order: OrderId,
    /// In whose name.
    pub buyer: BuyerId,
    /// What was wrong.
    pub kind: DifferenceKind,
}

impl Told {
    /// Of this claim.
    pub fn of(claim: &Claim, kind: DifferenceKind) -> Self {
        Self {
            order: claim.order,
            buyer: claim.buyer,
            kind,
        }
    }
}

/// What can be wrong about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DifferenceKind {
    /// The gate gave units, and the message still stands in the stream: it will be delivered.
    NotDelivered,
    /// The gate gave units, and the message is gone: it is appended again from the holder.
    MessageGone,
    /// The ledger has the order live, and the gate does not hold it: the holder is restored. Or it
    /// holds it with another quantity: the sale is loaded again.
    HolderGone,
    /// The ledger gave the units back, and the gate still holds them: they are released again. Or it
    /// holds them for a buyer or a sale that the order was never of: the sale is loaded again.
    NotReleased,
    /// The order waits in the ledger and has no place at the gate.
    WaiterGone,
    /// The order has a place at the gate, and does not wait in the ledger: its message is gone, or
    /// the gate went back.
    WaiterUnknown,
    /// The order waits in both, with another turn, quantity or buyer.
    PlaceDiffers,
}

impl DifferenceKind {
    /// The change at the gate that mends one order. `None` for a message that stands, which the
    /// order writer delivers, and for [a place](Self::is_about_place).
    pub fn mended_by(self, claim: &Claim) -> Option<GateChange> {
        Some(match self {
            Self::MessageGone => GateChange::AppendAgain(claim.clone()),
            Self::HolderGone => GateChange::RestoreHolder(claim.clone()),
            Self::NotReleased => GateChange::Release {
                order: claim.order,
                buyer: claim.buyer,
                quantity: claim.quantity,
            },
            Self::NotDelivered | Self::WaiterGone | Self::WaiterUnknown | Self::PlaceDiffers => {
                return None;
            }
        })
    }

    /// Whether it is about a place on the waitlist: then the sale is loaded again, which appends what
    /// only the gate knows and puts everybody in the place that the ledger has.
    pub fn is_about_place(self) -> bool {
        matches!(
            self,
            Self::WaiterGone | Self::WaiterUnknown | Self::PlaceDiffers
        )
    }
}

/// What a reconciliation found about one voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherFinding {
    /// Which voucher.
    pub voucher: VoucherId,
    /// Each term of conservation, at the position of the second look.
    pub tally: Tally,
    /// Whether nothing moved in between, the tally holds, and the ledger agrees with itself.
    pub holds: bool,
    /// Units by which the gate's free stock is off beyond what orders that differ explain; then the
    /// sale is loaded again, unless the ledger's stock, which it would get, is off itself.
    pub free_drift: i64,
    /// Units by which the ledger's stock is off from what its own total and orders leave. Nobody can
    /// say which of them is right, so that it is left to an administrator.
    pub stock_drift: i64,
    /// Whether the gate goes by other terms than the ledger; then the sale is loaded again.
    pub terms_differ: bool,
    /// Whether the gate had the sale at the second look; one that it does not have is loaded.
    pub at_gate: bool,
    /// How often the sale was loaded into the gate again, by whichever process, since the last
    /// report that told of it: the gate had lost it, or what it had of it was wrong.
    pub reloads: u32,
    /// Differences about orders.
    pub differences: Vec<Difference>,
}

impl VoucherFinding {
    /// Whether loading the sale again mends what was found of the whole of it.
    pub fn asks_for_load(&self) -> bool {
        self.terms_differ || (self.free_drift != 0 && self.stock_drift == 0)
    }

    /// Whether something is wrong with the whole of it.
    fn is_off(&self) -> bool {
        self.free_drift != 0 || self.stock_drift != 0 || self.terms_differ || !self.at_gate
    }
}

/// A reconciliation that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its number; 0 before it is stored.
    pub id: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// Whether closed vouchers were looked at too.
    pub full: bool,
    /// Whether nothing was repaired on purpose.
    pub dry_run: bool,
    /// What was found, voucher by voucher.
    pub vouchers: Vec<VoucherFinding>,
}

impl Report {
    /// Orders that differed.
    pub fn differences(&self) -> usize {
        self.vouchers
            .iter()
            .map(|found| found.differences.len())
            .sum()
    }

    /// Everything that was found wrong: orders that differed, and sales that are off as a whole: by
    /// their free stock, the ledger's stock or their terms, or not at the gate.
    pub fn findings(&self) -> usize {
        let off = self.vouchers.iter().filter(|found| found.is_off());
        self.differences() + off.count()
    }

    /// Times that sales were loaded into the gate again.
    pub fn reloads(&self) -> u64 {
        let reloads = self.vouchers.iter().map(|found| u64::from(found.reloads));
        reloads.sum()
    }

    /// Differences that were repaired, and sales that are loaded again because their free stock or
    /// their terms were off.
    pub fn repairs(&self) -> usize {
        let orders = self.vouchers.iter().flat_map(|found| &found.differences);
        let orders = orders.filter(|difference| difference.repaired);
        let loads = self.vouchers.iter().filter(|found| found.asks_for_load());
        orders.count() + if self.dry_run { 0 } else { loads.count() }
    }

    /// Whether nothing was found, or all of it is mended.
    pub fn leaves_nothing(&self) -> bool {
        self.vouchers.iter().all(|found| {
            let loaded = found.asks_for_load() && !self.dry_run;
            found.differences.iter().all(|it| it.repaired)
                && (!found.is_off() || (loaded && found.stock_drift == 0 && found.at_gate))
        })
    }
}

/// An order of the ledger, for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOrder {
    /// Who has or had what.
    pub claim: Claim,
    /// Where it is.
    pub status: OrderStatus,
    /// Its turn, if it joined the waitlist.
    pub ticket: Option<Ticket>,
    /// What the newest message about it that is parked claims, if for another buyer or another sale.
    pub contested: Option<Claim>,
}

impl LedgerOrder {
    /// Notes what a parked message claims, if it is not this order's buyer that it is about.
    #[must_use]
    pub fn contested_by(self, parked: Option<Claim>) -> Self {
        let contested = parked.filter(|claim| !self.is_of(claim));
        Self { contested, ..self }
    }

    /// Whether it is the order of the buyer and the sale that this claim names.
    pub fn is_of(&self, claim: &Claim) -> bool {
        let of = |claim: &Claim| (claim.order, claim.buyer, claim.voucher);
        of(&self.claim) == of(claim)
    }

    /// Whether this claim of somebody else to its id is parked: an administrator decides about it.
    pub fn is_contested_by(&self, claim: &Claim) -> bool {
        let contested = self.contested.as_ref();
        contested
            .is_some_and(|parked| (parked.buyer, parked.voucher) == (claim.buyer, claim.voucher))
    }

    /// Whether it waits just as the gate has it.
    pub fn waits_as(&self, seat: &Seat) -> bool {
        let Claim {
            order,
            buyer,
            quantity,
            ..
        } = self.claim;
        self.status == OrderStatus::Waiting
            && self.ticket == Some(seat.ticket)
            && (order, buyer, quantity) == (seat.order, seat.buyer, seat.quantity)
    }
}

/// When reconciliations that could repair something began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastRuns {
    /// The last one.
    pub any: Option<Timestamp>,
    /// The last full one.
    pub full: Option<Timestamp>,
}

/// The ledger's side of reconciliation.
#[async_trait]
pub trait Reconciliations: Send + Sync {
    /// A voucher's orders that hold units or wait, by rising id, those after `after`, at most `max` (1
    /// to 1,000).
    async fn open_orders(
        &self,
        voucher: VoucherId,
        after: OrderId,
        max: usize,
    ) -> Result<Vec<LedgerOrder>, Fault>;

    /// Those of these orders that the ledger has, parked ones as queued. At most 1,000.
    async fn orders(&self, ids: &[OrderId]) -> Result<Vec<LedgerOrder>, Fault>;

    /// Of these orders, those whose release, or the end of whose place, stands in an update that the
    /// gate was not confirmed to have. At most 1,000.
    async fn being_released(
        &self,
        voucher: VoucherId,
        ids: &[OrderId],
    ) -> Result<Vec<OrderId>, Fault>;

    /// Repairs a difference [with an update for the gate](DifferenceKind::mended_by), in a
    /// transaction that locks the order and finds it as `seen` (`None`: the ledger does not have
    /// it). `false` if it moved; then nothing changed. Refuses a kind that no update mends.
    async fn repair(
        &self,
        kind: DifferenceKind,
        claim: &Claim,
        seen: Option<OrderStatus>,
    ) -> Result<bool, Fault>;

    /// What the newest report about a voucher that was no dry run told of its orders.
    async fn told_before(&self, voucher: VoucherId) -> Result<Vec<Told>, Fault>;

    /// Notes that a sale was loaded into the gate. Returns whether it had been before.
    async fn note_load(&self, voucher: VoucherId) -> Result<bool, Fault>;

    /// How often each of these vouchers was loaded again, and no stored report has told of it; none
    /// that was not. In no particular order. At most 1,000.
    async fn reloads(&self, vouchers: &[VoucherId]) -> Result<Vec<(VoucherId, u32)>, Fault>;

    /// Stores a report. Returns its number. Unless it was a dry run, the loads that it tells of are
    /// told.
    async fn store(&self, report: &Report) -> Result<u64, Fault>;

    /// When the last ones of the reports that are kept began.
    async fn last_runs(&self) -> Result<LastRuns, Fault>;

    /// Forgets reports that began before this time, oldest first, at most `max` (1 to 100). Returns
    /// how many.
    async fn forget(&self, before: Timestamp, max: usize) -> Result<usize, Fault>;

    /// Reports, newest first, those before `before`, at most `limit` (1 to 100).
    async fn reports(&self, before: Option<u64>, limit: usize) -> Result<Page<Report>, Fault>;
}

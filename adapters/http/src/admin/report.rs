//! The report of a reconciliation on the wire.

use seckill_application::ports::{Difference, DifferenceKind, Report, VoucherFinding};
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::{Id, Instant, UserId};

/// A reconciliation that ran.
#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub(super) struct ReportBody {
    id: Id,
    started_at: Instant,
    finished_at: Instant,
    /// Whether closed vouchers were looked at too.
    full: bool,
    /// Whether nothing was repaired on purpose.
    dry_run: bool,
    /// How many orders differed.
    difference_count: usize,
    /// How many differences were repaired, and sales loaded again because their free stock or their
    /// terms were off.
    repair_count: usize,
    /// How often sales were loaded into the gate again since the report before, which the gate had
    /// lost or had wrong.
    reload_count: u64,
    vouchers: Vec<FindingBody>,
}

/// What was found about one voucher: `total = free + in_flight + parked + awaiting_payment + paid`.
#[derive(Serialize, ToSchema)]
#[schema(as = VoucherFinding)]
struct FindingBody {
    voucher_id: Id,
    /// Units the sale has in all.
    total: i64,
    /// Units nobody has.
    free: i64,
    /// Units that are on their way between gate and ledger.
    in_flight: i64,
    /// Units of parked messages.
    parked: i64,
    /// Units of orders that wait for payment.
    awaiting_payment: i64,
    /// Units of paid orders.
    paid: i64,
    /// Whether nothing moved while it was read, the sum is right, and `stock_drift` is 0.
    holds: bool,
    /// Units by which the free stock of the gate is off beyond what the differences explain; the sale
    /// is loaded again then, unless `stock_drift` is not 0.
    free_drift: i64,
    /// Units by which the ledger's stock is off from what its own total and orders leave: somebody
    /// has changed the database by hand. Nothing is repaired, for either may be right.
    stock_drift: i64,
    /// Whether the gate went by other terms than the ledger; the sale is loaded again then.
    terms_differ: bool,
    /// Whether the gate had the sale; one that it does not have is loaded.
    at_gate: bool,
    /// How often the sale was loaded into the gate again since the last report that told of it,
    /// because the gate had lost it or had noticed damage.
    reloads: u32,
    differences: Vec<DifferenceBody>,
}

/// An order about which gate and ledger differed at two looks.
#[derive(Serialize, ToSchema)]
#[schema(as = Difference)]
struct DifferenceBody {
    order_id: Id,
    user_id: UserId,
    quantity: u32,
    kind: KindWord,
    /// Whether it was repaired; not in a dry run, not if the order moved meanwhile, and not if the
    /// report before told of the same: it is tried again then, and has not helped so far.
    repaired: bool,
}

/// What differs. `not_delivered`: the gate gave units or a place, and the message stands; it will be
/// delivered. `message_gone`: the gate gave units, and it does not stand any more. `holder_gone`: the
/// ledger has the order, and the gate does not hold it, or with another quantity. `not_released`: the
/// ledger gave the units back, and the gate still holds them, or holds them for somebody whose order
/// it is not. `waiter_gone`: the order waits in the ledger, and has no place
/// at the gate. `waiter_unknown`: it has a place at the gate, and does not wait in the ledger.
/// `place_differs`: it waits in both, in another turn or for another quantity. Of these three each is
/// repaired by loading the sale into the gate again.
#[derive(Serialize, ToSchema)]
#[schema(as = DifferenceKind)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    NotDelivered,
    MessageGone,
    HolderGone,
    NotReleased,
    WaiterGone,
    WaiterUnknown,
    PlaceDiffers,
}

impl From<Report> for ReportBody {
    fn from(report: Report) -> Self {
        Self {
            id: Id::numbered(report.id),
            started_at: Instant(report.started_at),
            finished_at: Instant(report.finished_at),
            full: report.full,
            dry_run: report.dry_run,
            difference_count: report.differences(),
            repair_count: report.repairs(),
            reload_count: report.reloads(),
            vouchers: report.vouchers.into_iter().map(FindingBody::from).collect(),
        }
    }
}

impl From<VoucherFinding> for FindingBody {
    fn from(found: VoucherFinding) -> Self {
        let tally = found.tally;
        let differences = found.differences.into_iter();
        Self {
            voucher_id: found.voucher.into(),
            total: tally.total,
            free: tally.free,
            in_flight: tally.in_flight,
            parked: tally.parked,
            awaiting_payment: tally.awaiting_payment,
            paid: tally.paid,
            holds: found.holds,
            free_drift: found.free_drift,
            stock_drift: found.stock_drift,
            terms_differ: found.terms_differ,
            at_gate: found.at_gate,
            reloads: found.reloads,
            differences: differences.map(DifferenceBody::from).collect(),
        }
    }
}

impl From<Difference> for DifferenceBody {
    fn from(difference: Difference) -> Self {
        Self {
            order_id: difference.claim.order.into(),
            user_id: difference.claim.buyer.into(),
            quantity: difference.claim.quantity,
            kind: match difference.kind {
                DifferenceKind::NotDelivered => KindWord::NotDelivered,
                DifferenceKind::MessageGone => KindWord::MessageGone,
                DifferenceKind::HolderGone => KindWord::HolderGone,
                DifferenceKind::NotReleased => KindWord::NotReleased,
                DifferenceKind::WaiterGone => KindWord::WaiterGone,
                DifferenceKind::WaiterUnknown => KindWord::WaiterUnknown,
                DifferenceKind::PlaceDiffers => KindWord::PlaceDiffers,
            },
            repaired: difference.repaired,
        }
    }
}

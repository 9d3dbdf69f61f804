//! What happens to an order or a sale is written down in the transaction that makes it so, and told.

use seckill_domain::{Event, EventId, EventKind, Order, OrderStatus, SaleStatus, Voucher};

use super::waitlist::EVENTS_MAX;
use super::{Rule, Violation, against};
use crate::site::Site;
use crate::stores::now;

pub(super) fn judge(site: &Site, vouchers: &[Voucher], orders: &[Order]) -> Result<(), Violation> {
    for order in orders {
        of_order(site, order)?;
    }
    for voucher in vouchers {
        of_voucher(site, voucher)?;
    }
    Ok(())
}

/// The events of an order lead step by step to where it is, and somebody was told of each.
fn of_order(site: &Site, order: &Order) -> Result<(), Violation> {
    let events = &site.stores.ledger.events;
    let events: Vec<Event> = now(events.of_order(order.id, EventId::new(0), EVENTS_MAX));
    let id = order.id;
    if let Some(untold) = events.iter().find(|it| !site.watch.was_told(it.id)) {
        return against(Rule::Told, format!("nobody was told of {untold:?}"));
    }
    let mut at = None;
    for next in events.iter().filter_map(|it| stage(it.what.kind)) {
        if !leads_to(at, next) {
            let how = format!("of order {id} nothing tells how {at:?} became {next:?}");
            return against(Rule::Told, how);
        }
        at = Some(next);
    }
    if at == Some(order.status()) {
        return Ok(());
    }
    let how = format!(
        "order {id} is {:?}, and was last said to be {at:?}",
        order.status()
    );
    against(Rule::Told, how)
}

/// The stage that an event says an order is in now.
fn stage(kind: EventKind) -> Option<OrderStatus> {
    match kind {
        EventKind::Order(status) => Some(status),
        EventKind::Promoted => Some(OrderStatus::PendingPayment),
        _ => None,
    }
}

/// Whether an order may have gone from the one stage to the other without anything in between.
fn leads_to(from: Option<OrderStatus>, to: OrderStatus) -> bool {
    use OrderStatus::{Cancelled, Expired, Paid, PendingPayment, Refunded, Waiting};
    match to {
        Paid | Cancelled | Expired => from == Some(PendingPayment),
        Refunded => from == Some(Paid),
        PendingPayment => matches!(from, None | Some(Waiting)),
        _ => from.is_none_or(|from| from == Waiting),
    }
}

/// The last that was told of a sale is how it is.
fn of_voucher(site: &Site, voucher: &Voucher) -> Result<(), Violation> {
    use EventKind::{VoucherClosed, VoucherPaused, VoucherPublished, VoucherResumed};
    let last = site.watch.last_told(voucher.id);
    let fits = match voucher.status {
        SaleStatus::Draft => true,
        SaleStatus::Published => matches!(last, Some(VoucherPublished | VoucherResumed)),
        SaleStatus::Paused => last == Some(VoucherPaused),
        SaleStatus::Closed => last == Some(VoucherClosed),
    };
    if fits {
        return Ok(());
    }
    let how = format!(
        "voucher {} is {:?}, and was last told {last:?}",
        voucher.id, voucher.status
    );
    against(Rule::Told, how)
}

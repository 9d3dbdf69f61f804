//! I7: the waitlist is served strictly in order of arrival.

use std::collections::BTreeMap;

use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{EventId, EventKind, Order, OrderId, OrderStatus, Ticket, Voucher};

use super::{Violation, broken};
use crate::coverage::Seen;
use crate::promises::Promise;
use crate::site::Site;
use crate::stores::now;

/// Most events that a look at an order takes.
pub(super) const EVENTS_MAX: usize = 100;

/// Orders whose place may have been lost with hot data are left out: Redis had forgotten them when
/// others were served.
pub(super) fn fair(site: &Site, voucher: &Voucher, orders: &[Order]) -> Result<(), Violation> {
    let ours: BTreeMap<OrderId, &Order> = orders
        .iter()
        .filter(|order| order.voucher == voucher.id && !site.watch.is_at_risk(order.id))
        .map(|order| (order.id, order))
        .collect();
    by_turn(site, voucher, &ours)?;
    overtaken(site, &ours)
}

/// In the order in which they were given units, their turns rise. A hot store that forgot whom it
/// had given a turn gives it again: then two have it.
fn by_turn(
    site: &Site,
    voucher: &Voucher,
    ours: &BTreeMap<OrderId, &Order>,
) -> Result<(), Violation> {
    let mut served: Vec<(EventId, Ticket)> = Vec::new();
    for order in ours.values() {
        let events = site
            .stores
            .ledger
            .events
            .of_order(order.id, EventId::new(0), EVENTS_MAX);
        let promoted = now(events)
            .into_iter()
            .find(|it| it.what.kind == EventKind::Promoted);
        served.extend(promoted.and_then(|event| Some((event.id, order.ticket?))));
    }
    served.sort_unstable();
    let mut tickets: Vec<Ticket> = served.into_iter().map(|(_, ticket)| ticket).collect();
    if site.nature.coverage.times(Seen::Failover) > 0 {
        tickets.dedup();
    }
    if invariants::served_in_order(&tickets) {
        return Ok(());
    }
    let how = format!("voucher {}: served in the order {tickets:?}", voucher.id);
    broken(InvariantId::FairWaitlist, how)
}

/// Nobody waits who had been told so before somebody asked who was served.
fn overtaken(site: &Site, ours: &BTreeMap<OrderId, &Order>) -> Result<(), Violation> {
    let told = site.promises.told();
    let known: Vec<(&Order, &Promise)> = told
        .orders
        .iter()
        .filter_map(|(id, promise)| Some((*ours.get(id)?, promise)))
        .collect();
    let waiting = known
        .iter()
        .filter(|(order, _)| order.status() == OrderStatus::Waiting);
    for (early, since) in waiting.filter_map(|(order, it)| Some((order, it.waits?))) {
        for (late, promise) in &known {
            // What was answered may be as old as the first call whose answer was lost.
            let asked = told.first_calls.get(&(promise.voucher, promise.buyer));
            let served = late.expires_at.is_some();
            if served && asked.is_some_and(|asked| *asked > since) {
                let how = format!(
                    "{} waits, and {}, who came later, was served",
                    early.id, late.id
                );
                return broken(InvariantId::FairWaitlist, how);
            }
        }
    }
    Ok(())
}

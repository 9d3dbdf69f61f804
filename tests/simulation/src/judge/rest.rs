//! I8: whether anything is still on its way.

use seckill_application::ports::{Clock as _, PartitionState};
use seckill_domain::invariants::InvariantId;
use seckill_domain::{GateVersion, SaleStatus, Voucher};

use super::{Violation, broken};
use crate::site::Site;
use crate::stores::now;

/// What is not at rest.
pub(super) fn unrest(site: &Site, vouchers: &[Voucher]) -> Result<(), Violation> {
    let sales = || vouchers.iter().find_map(|voucher| of_sale(site, voucher));
    if let Some(how) = on_its_way(site).or_else(sales) {
        return broken(InvariantId::Drains, how);
    }
    for node in site.nodes() {
        let count = node.remembered.len();
        if count > 0 {
            let how = format!(
                "p{} has answered {count} orders that are nowhere",
                node.group.0
            );
            return broken(InvariantId::NoSilentLoss, how);
        }
    }
    Ok(())
}

fn on_its_way(site: &Site) -> Option<String> {
    let stores = &site.stores;
    for partition in stores.partitions.all() {
        // Nobody may have asked for anything in it since it was lost.
        if now(stores.hot.loader.partition(partition)) == PartitionState::Missing {
            return Some(format!("partition {partition} is not there"));
        }
        let backlog = now(stores.hot.stream.backlog(partition));
        if backlog.decisions > 0 || backlog.pending > 0 {
            return Some(format!("partition {partition}: {backlog:?}"));
        }
    }
    let ledger = &stores.ledger;
    let updates = now(ledger.updates.waiting(100));
    if !updates.is_empty() {
        return Some(format!("updates for the gate wait: {updates:?}"));
    }
    let events = now(ledger.events.unpublished());
    if events > 0 {
        return Some(format!("{events} events are unpublished"));
    }
    let refunds = now(ledger.money.unsent(100));
    (!refunds.is_empty()).then(|| format!("{} refunds are not sent", refunds.len()))
}

fn of_sale(site: &Site, voucher: &Voucher) -> Option<String> {
    let id = voucher.id;
    let clock = site.nature.clock.now();
    if voucher.status != SaleStatus::Closed && voucher.terms.window.closes_at <= clock {
        return Some(format!("voucher {id} is over and not closed"));
    }
    let facts = now(site.stores.hot.gate.facts(&[id]))
        .into_iter()
        .flatten()
        .next();
    let Some(facts) = facts else {
        let missing = voucher.is_at_gate() && voucher.status != SaleStatus::Closed;
        return missing.then(|| format!("voucher {id} is not at the gate"));
    };
    if voucher.retired {
        // A failover may have brought it back, over as it was.
        let over = facts.terms.is_over(site.stores.hot_clock.now());
        return (!over).then(|| format!("voucher {id} is retired, and sold at the gate"));
    }
    let terms = voucher.sale_terms();
    if facts.terms != terms {
        return Some(format!(
            "the gate goes by {:?}, not by {terms:?}",
            facts.terms
        ));
    }
    if facts.pulse.version != voucher.version {
        return Some(format!("the gate is at {:?} of {id}", facts.pulse));
    }
    if facts.pulse.waiting > 0 && terms.is_over(clock) {
        return Some(format!("somebody waits for {id}, which is over"));
    }
    let tally = now(site.stores.ledger.ledger.tally(id, GateVersion::default()))?;
    if tally.stock != facts.pulse.free {
        return Some(format!(
            "voucher {id}: the gate has {:?}, the ledger {tally:?}",
            facts.pulse
        ));
    }
    if let Some(how) = passed_by(site, voucher, facts.pulse.free, tally.total) {
        return Some(how);
    }
    overdue(site, voucher)
}

/// The head of a line, if it could be served and is not, or never can be and stands in the way.
fn passed_by(site: &Site, voucher: &Voucher, free: u32, total: u32) -> Option<String> {
    let now_is = site.nature.clock.now();
    let is_open =
        voucher.status == SaleStatus::Published && voucher.terms.window.opens_at <= now_is;
    let seats = now(site.stores.hot.loader.survivors(voucher.id, 0)).seats;
    let head = seats.into_iter().min_by_key(|seat| seat.ticket)?;
    let wrong = is_open && (head.quantity <= free || head.quantity > total);
    wrong.then(|| {
        let id = voucher.id;
        format!("{head:?} waits for {id}, of which {free} of {total} are free")
    })
}

/// An order whose payment window ended a while ago.
fn overdue(site: &Site, voucher: &Voucher) -> Option<String> {
    let ledger = &site.stores.ledger;
    let live =
        now(ledger
            .reconciliations
            .open_orders(voucher.id, seckill_domain::OrderId::new(0), 1_000));
    let clock = site.nature.clock.now();
    live.iter().find_map(|it| {
        let order = now(ledger.ledger.order(it.claim.order))?;
        let late = order.status() == seckill_domain::OrderStatus::PendingPayment
            && order.is_overdue(clock);
        late.then(|| format!("order {} is overdue", order.id))
    })
}

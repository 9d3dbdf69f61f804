//! Promises about units.

use std::collections::{BTreeMap, BTreeSet};

use seckill_domain::invariants::{self, InvariantId, Tally};
use seckill_domain::{BuyerId, GateVersion, Order, OrderId, OrderStatus, Voucher};

use super::{Violation, broken};
use crate::coverage::Seen;
use crate::site::Site;
use crate::stores::now;

/// I2, I3, I5 as the ledger alone must keep them, whatever the gate does.
pub(super) fn in_ledger(site: &Site, voucher: &Voucher) -> Result<(), Violation> {
    let id = voucher.id;
    let ledger = &site.stores.ledger;
    let Some(found) = now(ledger.ledger.tally(id, GateVersion::default())) else {
        return Ok(());
    };
    let tally = found.by_itself();
    if !invariants::never_oversold(&tally) {
        return broken(
            InvariantId::NeverOversold,
            format!("voucher {id}: {tally:?}"),
        );
    }
    if !invariants::conserved(&tally) {
        return broken(
            InvariantId::Once,
            format!("the ledger of voucher {id}: {tally:?}"),
        );
    }
    let mut units: BTreeMap<BuyerId, u32> = BTreeMap::new();
    let mut waits: BTreeSet<BuyerId> = BTreeSet::new();
    for order in now(ledger
        .reconciliations
        .open_orders(id, OrderId::new(0), 1_000))
    {
        let buyer = order.claim.buyer;
        if !order.status.is_live() {
            if !waits.insert(buyer) {
                let how = format!("buyer {buyer} waits twice for voucher {id}");
                return broken(InvariantId::FairWaitlist, how);
            }
            continue;
        }
        *units.entry(buyer).or_default() += order.claim.quantity;
    }
    let limit = voucher.terms.per_buyer_limit;
    match units
        .iter()
        .find(|(_, units)| !invariants::within_limit(**units, limit))
    {
        None => Ok(()),
        Some((buyer, units)) => {
            let how = format!("buyer {buyer} has {units} units of voucher {id}, at most {limit}");
            broken(InvariantId::Limit, how)
        }
    }
}

/// I1 and I2 over gate and ledger, in one moment. Nothing to say of a sale that is not open.
pub(super) fn conserved(site: &Site, voucher: &Voucher) -> Result<(), Violation> {
    let id = voucher.id;
    let head = site.stores.head(site.stores.partitions.of(id));
    let Some(gate) = now(site.stores.hot.gate.tally(id, head.entry)) else {
        return Ok(());
    };
    if gate.epoch != head.epoch {
        return Ok(());
    }
    let Some(ledger) = now(site.stores.ledger.ledger.tally(id, gate.version)) else {
        return Ok(());
    };
    let wide = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
    let tally = Tally {
        total: i64::from(ledger.total),
        free: i64::from(gate.free),
        in_flight: wide(gate.units_after) + wide(ledger.units_returned_after),
        parked: i64::from(ledger.parked),
        awaiting_payment: i64::from(ledger.awaiting_payment),
        paid: i64::from(ledger.paid),
    };
    let coverage = &site.nature.coverage;
    coverage.add(Seen::ParkedUnits, u64::from(tally.parked > 0));
    if !invariants::conserved(&tally) {
        return broken(
            InvariantId::Conservation,
            format!("voucher {id}: {tally:?}"),
        );
    }
    if !invariants::never_oversold(&tally) {
        return broken(
            InvariantId::NeverOversold,
            format!("voucher {id}: {tally:?}"),
        );
    }
    Ok(())
}

/// At rest the gate holds what is live in the ledger, and nothing else.
pub(super) fn gate_agrees(
    site: &Site,
    voucher: &Voucher,
    orders: &[Order],
) -> Result<(), Violation> {
    let id = voucher.id;
    let gate = &site.stores.hot.gate;
    let Some(page) = now(gate.holders(id, 0)) else {
        return Ok(());
    };
    let held: BTreeSet<OrderId> = page.claims.iter().map(|claim| claim.order).collect();
    let ours = || orders.iter().filter(|order| order.voucher == id);
    let live: BTreeSet<OrderId> = ours()
        .filter(|it| it.status().is_live())
        .map(|it| it.id)
        .collect();
    // What is parked may be forged; the gate has heard of it if it was loaded since.
    let parked = parked_grants(site, voucher);
    let off = held.symmetric_difference(&live);
    let off: Vec<_> = off.filter(|it| !parked.contains(it)).collect();
    if !off.is_empty() {
        let how = format!("voucher {id}: gate and ledger differ about {off:?}");
        return broken(InvariantId::Conservation, how);
    }
    let waiting = ours().filter(|it| it.status() == OrderStatus::Waiting);
    let waiting = waiting.count();
    let facts = now(gate.facts(&[id]));
    let at_gate = facts
        .into_iter()
        .flatten()
        .next()
        .map_or(0, |facts| facts.pulse.waiting);
    if waiting != at_gate as usize {
        let how = format!("voucher {id}: {at_gate} wait at the gate, {waiting} in the ledger");
        return broken(InvariantId::FairWaitlist, how);
    }
    Ok(())
}

/// Grants that stand in parked messages.
fn parked_grants(site: &Site, voucher: &Voucher) -> Vec<OrderId> {
    let parked = now(site.stores.ledger.parked.list(true, None, 100)).items;
    let ours = parked
        .into_iter()
        .filter(|it| it.voucher == Some(voucher.id));
    ours.filter_map(|it| Some(it.claim?.order)).collect()
}

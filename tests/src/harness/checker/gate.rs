//! What the gate keeps and what the ledger has are the same, once all is quiet.

use std::collections::{BTreeMap, BTreeSet};

use seckill_domain::invariants::InvariantId;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::{Rule, Violation};
use crate::harness::answer::Purchase;
use crate::harness::facts::{Facts, HeldFacts, OrderFacts, VoucherFacts};
use crate::harness::history::{Asked, Event, Told};
use crate::harness::records::GateFacts;

pub(super) fn judge(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    for (voucher, known) in &facts.vouchers {
        let mut broken = |promise: InvariantId, how: String| {
            violations.push(Violation {
                broken: Rule::Promise(promise),
                how: format!("voucher {voucher}: {how}"),
            });
        };
        match known {
            VoucherFacts {
                held: Some(held),
                gate: Some(gate),
                ..
            } => {
                let orders = orders_of(facts, *voucher, held);
                units(gate, held, &orders, known.limit, &mut broken);
                waiters(gate, held, &orders, &mut broken);
                keys(history, *voucher, gate, &orders, &mut broken);
            }
            VoucherFacts {
                held: Some(held),
                gate: None,
                ..
            } if facts.gate_asked && !held.retired => {
                let how = "it is on sale and not at the gate".to_owned();
                broken(InvariantId::Conservation, how);
            }
            _ => {}
        }
        if let Some(gate) = &known.gate
            && !gate.pending.is_empty()
        {
            let how = format!("in the stream and not acknowledged: {:?}", gate.pending);
            broken(InvariantId::Drains, how);
        }
        if let Some(held) = &known.held
            && held.untold != crate::harness::Untold::default()
        {
            broken(InvariantId::Drains, format!("{:?}", held.untold));
        }
    }
}

/// The ledger's orders of a voucher; those of parked messages are an administrator's to settle.
fn orders_of<'a>(
    facts: &'a Facts,
    voucher: VoucherId,
    held: &HeldFacts,
) -> BTreeMap<OrderId, &'a OrderFacts> {
    facts
        .orders
        .iter()
        .filter(|(id, order)| order.voucher == voucher && !held.parked_orders.contains(id))
        .map(|(id, order)| (*id, order))
        .collect()
}

/// I1, I3: whoever has units by the ledger has the same by the gate, order by order, and nobody
/// else; and the rest is free.
fn units(
    gate: &GateFacts,
    held: &HeldFacts,
    orders: &BTreeMap<OrderId, &OrderFacts>,
    limit: u32,
    broken: &mut impl FnMut(InvariantId, String),
) {
    if gate.free != held.stock {
        let how = format!(
            "{} free at the gate, {} by the ledger",
            gate.free, held.stock
        );
        broken(InvariantId::Conservation, how);
    }
    let by_ledger: BTreeSet<(BuyerId, OrderId, i64)> = orders
        .iter()
        .filter(|(_, order)| order.is_live())
        .map(|(id, order)| (order.buyer, *id, i64::from(order.quantity)))
        .collect();
    let by_gate: BTreeSet<(BuyerId, OrderId, i64)> = gate
        .holders
        .iter()
        .flat_map(|(buyer, orders)| orders.iter().map(|(id, units)| (*buyer, *id, *units)))
        .filter(|(_, id, _)| !held.parked_orders.contains(id))
        .collect();
    for (buyer, id, units) in by_ledger.difference(&by_gate) {
        let how = format!("the gate does not know that {buyer} has {units} by order {id}");
        broken(InvariantId::Conservation, how);
    }
    for (buyer, id, units) in by_gate.difference(&by_ledger) {
        let how = format!("the gate alone believes that {buyer} has {units} by order {id}");
        broken(InvariantId::Conservation, how);
    }
    for (buyer, orders) in &gate.holders {
        let units: i64 = orders.values().sum();
        if units > i64::from(limit) {
            let how = format!("buyer {buyer} has {units} of {limit} at the gate");
            broken(InvariantId::Limit, how);
        }
    }
}

/// I7: the same people wait in the same order.
fn waiters(
    gate: &GateFacts,
    held: &HeldFacts,
    orders: &BTreeMap<OrderId, &OrderFacts>,
    broken: &mut impl FnMut(InvariantId, String),
) {
    let mut waiting: Vec<(Option<u64>, BuyerId, OrderId)> = orders
        .iter()
        .filter(|(_, order)| order.status == OrderStatus::Waiting)
        .map(|(id, order)| (order.ticket, order.buyer, *id))
        .collect();
    waiting.sort_unstable();
    let by_ledger: Vec<(BuyerId, OrderId)> = waiting
        .into_iter()
        .map(|(_, buyer, id)| (buyer, id))
        .collect();
    let mut by_gate = gate.waiters.clone();
    by_gate.retain(|(_, id)| !held.parked_orders.contains(id));
    if by_gate != by_ledger {
        let how = format!("at the gate wait {by_gate:?}, in the ledger {by_ledger:?}");
        broken(InvariantId::FairWaitlist, how);
    }
}

/// I9: the gate would answer a used key with the order that was told, and that the ledger has.
fn keys(
    history: &[Event],
    voucher: VoucherId,
    gate: &GateFacts,
    orders: &BTreeMap<OrderId, &OrderFacts>,
    broken: &mut impl FnMut(InvariantId, String),
) {
    let mut expected: BTreeSet<(BuyerId, String, OrderId)> = orders
        .iter()
        .filter_map(|(id, order)| {
            let key = order.row.as_ref()?.key.clone()?;
            Some((order.buyer, key, *id))
        })
        .collect();
    for event in history {
        if let Asked::Purchase {
            voucher: of,
            key: Some(key),
            ..
        } = &event.asked
            && *of == voucher
            && let Told::Purchase(
                Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. },
            ) = &event.told
        {
            expected.insert((event.buyer, key.clone(), *order));
        }
    }
    for (buyer, key, order) in expected {
        let known = gate.uses.get(&(buyer, key.clone()));
        if known != Some(&order) {
            let how = format!("key {key:?} of {buyer} is order {order}, at the gate {known:?}");
            broken(InvariantId::Idempotent, how);
        }
    }
}

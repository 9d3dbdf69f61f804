//! Promises about units: predicates over what there is at the end.

use std::collections::BTreeMap;

use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{BuyerId, OrderStatus, VoucherId};

use super::{Rule, Violation};
use crate::harness::facts::{Facts, HeldFacts, OrderFacts, VoucherFacts};

pub(super) fn judge(facts: &Facts, violations: &mut Vec<Violation>) {
    for (voucher, known) in &facts.vouchers {
        let mut broken = |promise, how: String| {
            let how = format!("voucher {voucher}: {how}");
            let broken = Rule::Promise(promise);
            violations.push(Violation { broken, how });
        };
        balance(known, &mut broken);
        let orders: Vec<&OrderFacts> = orders_of(facts, *voucher).collect();
        let live: i64 = orders.iter().map(|order| live_units(order)).sum();
        if live > known.tally.total {
            let how = format!("{live} live units of {}", known.tally.total);
            broken(InvariantId::NeverOversold, how);
        }
        let of_buyers = live_by_buyer(&orders);
        for (buyer, units) in &of_buyers {
            let units = u32::try_from(*units).unwrap_or(u32::MAX);
            if !invariants::within_limit(units, known.limit) {
                let how = format!("buyer {buyer} has {units} live units of {}", known.limit);
                broken(InvariantId::Limit, how);
            }
        }
        match &known.held {
            Some(held) => ledger(held, known, live, &of_buyers, &mut broken),
            // Orders that nobody was told of are not known then.
            None if known.tally.live() < live => {
                let how = format!("{live} live units were told of, {:?}", known.tally);
                broken(InvariantId::Conservation, how);
            }
            None => {}
        }
    }
}

fn orders_of(facts: &Facts, voucher: VoucherId) -> impl Iterator<Item = &OrderFacts> {
    let orders = facts.orders.values();
    orders.filter(move |order| order.voucher == voucher)
}

fn live_units(order: &OrderFacts) -> i64 {
    if order.is_live() {
        i64::from(order.quantity)
    } else {
        0
    }
}

fn live_by_buyer(orders: &[&OrderFacts]) -> BTreeMap<BuyerId, i64> {
    let mut units = BTreeMap::new();
    for order in orders {
        *units.entry(order.buyer).or_insert(0) += live_units(order);
    }
    units
}

fn balance(known: &VoucherFacts, broken: &mut impl FnMut(InvariantId, String)) {
    let tally = &known.tally;
    if !known.holds || !invariants::conserved(tally) {
        let how = format!("holds: {}, {tally:?}", known.holds);
        broken(InvariantId::Conservation, how);
    }
    if !invariants::never_oversold(tally) {
        broken(InvariantId::NeverOversold, format!("{tally:?}"));
    }
    if tally.in_flight != 0 {
        let how = format!("{} units are still on their way", tally.in_flight);
        broken(InvariantId::Drains, how);
    }
}

/// What the ledger counts must be what its orders add up to: units taken or returned twice show
/// here.
fn ledger(
    held: &HeldFacts,
    known: &VoucherFacts,
    live: i64,
    of_buyers: &BTreeMap<BuyerId, i64>,
    broken: &mut impl FnMut(InvariantId, String),
) {
    if held.stock != held.total - live - held.parked {
        let how = format!(
            "the ledger's stock is {} of {}, with {live} units live and {} parked",
            held.stock, held.total, held.parked
        );
        broken(InvariantId::Once, how);
    }
    if known.tally.live() != live {
        let how = format!("{live} live units in the ledger, {:?}", known.tally);
        broken(InvariantId::Conservation, how);
    }
    let buyers = held.units.keys().chain(of_buyers.keys());
    for buyer in buyers {
        let counted = held.units.get(buyer).copied().unwrap_or(0);
        let live = of_buyers.get(buyer).copied().unwrap_or(0);
        if counted != live {
            let how = format!("buyer {buyer} is counted with {counted} units and has {live}");
            broken(InvariantId::Once, how);
        }
    }
}

/// Whether an order may have moved from one stage to the other.
pub(super) fn may_become(told: OrderStatus, is: OrderStatus) -> bool {
    told == is || !told.is_final() || (told, is) == (OrderStatus::Paid, OrderStatus::Refunded)
}

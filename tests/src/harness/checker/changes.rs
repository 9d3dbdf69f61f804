//! Nothing ends by itself before its time: an order is given up by its buyer, and expires at the
//! end of its window (I6).

use std::collections::BTreeSet;

use seckill_domain::invariants::InvariantId;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::{Rule, Violation};
use crate::harness::facts::Facts;
use crate::harness::history::{Asked, Event};

pub(super) fn judge(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    let mut broken = |how: String| {
        violations.push(Violation {
            broken: Rule::Promise(InvariantId::PaidXorExpired),
            how,
        });
    };
    if !facts.purchases_only {
        by_somebody(history, facts, &mut broken);
    }
    in_time(facts, &mut broken);
}

/// Whoever lost an order by giving it up has asked for that. Of buyers whose calls are not written
/// down nothing can be said.
fn by_somebody(history: &[Event], facts: &Facts, broken: &mut impl FnMut(String)) {
    let buyers: BTreeSet<BuyerId> = history.iter().map(|event| event.buyer).collect();
    let mut given_up: BTreeSet<OrderId> = BTreeSet::new();
    let mut left: BTreeSet<(BuyerId, VoucherId)> = BTreeSet::new();
    for event in history {
        match &event.asked {
            Asked::Cancel { order } => given_up.insert(*order),
            Asked::Leave { voucher } => left.insert((event.buyer, *voucher)),
            _ => continue,
        };
    }
    for (order, found) in &facts.orders {
        let asked = match found.status {
            OrderStatus::Cancelled => given_up.contains(order),
            OrderStatus::Withdrawn => {
                given_up.contains(order) || left.contains(&(found.buyer, found.voucher))
            }
            _ => continue,
        };
        if !asked && buyers.contains(&found.buyer) {
            broken(format!("order {order} is {:?}, by nobody", found.status));
        }
    }
}

/// By the database's clock, an order expires at the end of its window or after. (Whether
/// it was paid before cannot be seen: that is judged at the beginning of a transaction.)
fn in_time(facts: &Facts, broken: &mut impl FnMut(String)) {
    for (order, found) in &facts.orders {
        let Some(row) = &found.row else {
            continue;
        };
        let Some(due) = row.due_ms else {
            continue;
        };
        if found.status == OrderStatus::Expired && row.moved_ms < due {
            broken(format!(
                "order {order} was due at {due} and expired at {}",
                row.moved_ms
            ));
        }
    }
}

//! Promises about orders: what a buyer was told, and what he has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use seckill_domain::invariants::InvariantId;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::units::may_become;
use super::{Rule, Violation};
use crate::harness::answer::Purchase;
use crate::harness::facts::Facts;
use crate::harness::history::{Asked, Event, Told};

/// Every order that somebody was told is granted, once.
pub(super) fn granted(history: &[Event]) -> Vec<OrderId> {
    let granted: BTreeSet<OrderId> = history
        .iter()
        .filter_map(|event| match &event.told {
            Told::Purchase(answer) => answer.granted(),
            _ => None,
        })
        .collect();
    granted.into_iter().collect()
}

pub(super) fn judge(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    no_silent_loss(history, facts, violations);
    one_owner(history, violations);
    ends_stay(history, facts, violations);
    idempotent(history, facts, violations);
}

/// I4: whoever was told of an order can read it, and it is live, or ended for a reason.
fn no_silent_loss(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    let mut told: BTreeMap<(OrderId, BuyerId), bool> = BTreeMap::new();
    for event in history {
        if let Told::Purchase(answer) = &event.told {
            let holds = !matches!(answer, Purchase::Waitlisted { .. });
            for order in answer.orders() {
                *told.entry((order, event.buyer)).or_default() |= holds;
            }
        }
    }
    for ((order, buyer), told_units) in told {
        let how = match facts.orders.get(&order) {
            None => "is not there",
            Some(found) if found.buyer != buyer => "belongs to somebody else",
            Some(found) if !found.shown => "is not shown to him",
            Some(found) => match found.status {
                OrderStatus::Queued => "never reached the ledger",
                OrderStatus::Rejected if found.reason.is_none() => "was rejected without a reason",
                OrderStatus::Waiting | OrderStatus::Withdrawn | OrderStatus::ClosedOut
                    if told_units =>
                {
                    "had units and waits"
                }
                _ => continue,
            },
        };
        let how = format!("order {order}, told to buyer {buyer}, {how}");
        violations.push(Violation {
            broken: Rule::Promise(InvariantId::NoSilentLoss),
            how,
        });
    }
}

/// I5: an order is one buyer's.
fn one_owner(history: &[Event], violations: &mut Vec<Violation>) {
    let mut owners: BTreeMap<OrderId, BTreeSet<BuyerId>> = BTreeMap::new();
    for event in history {
        if let Told::Purchase(answer) = &event.told {
            for order in answer.orders() {
                owners.entry(order).or_default().insert(event.buyer);
            }
        }
    }
    for (order, buyers) in owners.iter().filter(|(_, buyers)| buyers.len() > 1) {
        violations.push(Violation {
            broken: Rule::Promise(InvariantId::Once),
            how: format!("order {order} was given to {buyers:?}"),
        });
    }
}

/// I6: an end that somebody was told of stays the end.
fn ends_stay(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    for event in history {
        let (Asked::Pay { order, .. } | Asked::Cancel { order } | Asked::Look { order }) =
            &event.asked
        else {
            continue;
        };
        let told = match &event.told {
            Told::Order(status) => *status,
            Told::Refused { code, .. } => match code.as_str() {
                "order_expired" => OrderStatus::Expired,
                "order_paid" => OrderStatus::Paid,
                "order_refunded" => OrderStatus::Refunded,
                "order_rejected" => OrderStatus::Rejected,
                // Whoever gave up a place has an order that was withdrawn.
                "order_cancelled" if given_up(facts, *order) => continue,
                "order_cancelled" => OrderStatus::Cancelled,
                _ => continue,
            },
            _ => continue,
        };
        // Paying too late is refused before the sweep has come by.
        let Some(found) = facts.orders.get(order) else {
            continue;
        };
        let due = told == OrderStatus::Expired && found.status == OrderStatus::PendingPayment;
        if !due && !may_become(told, found.status) {
            violations.push(Violation {
                broken: Rule::Promise(InvariantId::PaidXorExpired),
                how: format!("order {order} was {told:?} and is {:?}", found.status),
            });
        }
    }
}

fn given_up(facts: &Facts, order: OrderId) -> bool {
    facts
        .orders
        .get(&order)
        .is_some_and(|found| found.status == OrderStatus::Withdrawn)
}

/// I9: a key stands for one order; and without a key, a buyer at his limit gets the one he has.
fn idempotent(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    let mut by_key: BTreeMap<(VoucherId, BuyerId, Option<&str>), BTreeSet<OrderId>> =
        BTreeMap::new();
    for event in history {
        let (Asked::Purchase { voucher, key, .. }, Told::Purchase(answer)) =
            (&event.asked, &event.told)
        else {
            continue;
        };
        let new = matches!(
            answer,
            Purchase::Granted { .. } | Purchase::Waitlisted { .. }
        );
        if let (true, Some(order)) = (new, answer.order()) {
            let same = (*voucher, event.buyer, key.as_deref());
            by_key.entry(same).or_default().insert(order);
        }
    }
    remembered(history, violations);
    for ((voucher, buyer, key), mut orders) in by_key {
        if key.is_none() {
            let one_each = facts
                .vouchers
                .get(&voucher)
                .is_some_and(|known| known.limit == 1);
            // Orders that gave their units back do not count: he may buy again.
            orders.retain(|order| {
                let found = facts.orders.get(order);
                one_each
                    && found.is_some_and(|found| {
                        found.is_live() || found.status == OrderStatus::Waiting
                    })
            });
        }
        if orders.len() > 1 {
            violations.push(Violation {
                broken: Rule::Promise(InvariantId::Idempotent),
                how: format!("buyer {buyer} asked for {voucher} with key {key:?}, got {orders:?}"),
            });
        }
    }
}

/// A key whose order was told is never answered with another order that its buyer has.
fn remembered(history: &[Event], violations: &mut Vec<Violation>) {
    let mut first: BTreeMap<(VoucherId, BuyerId, &str), (OrderId, Duration)> = BTreeMap::new();
    for event in history {
        if let Some((same, answer)) = keyed(event)
            && let Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. } = answer
        {
            let told = first.entry(same).or_insert((*order, event.ended));
            told.1 = told.1.min(event.ended);
        }
    }
    for event in history {
        if let Some((same, Purchase::AlreadyHeld { order, .. })) = keyed(event)
            && let Some((told, since)) = first.get(&same)
            && event.begun > *since
            && order != told
        {
            violations.push(Violation {
                broken: Rule::Promise(InvariantId::Idempotent),
                how: format!("key {same:?} was order {told}, and then order {order}"),
            });
        }
    }
}

fn keyed(event: &Event) -> Option<((VoucherId, BuyerId, &str), &Purchase)> {
    match (&event.asked, &event.told) {
        (
            Asked::Purchase {
                voucher,
                key: Some(key),
                ..
            },
            Told::Purchase(answer),
        ) => Some(((*voucher, event.buyer, key), answer)),
        _ => None,
    }
}

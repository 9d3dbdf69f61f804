//! I7: the waitlist is served strictly in order of arrival.

use std::collections::BTreeMap;
use std::time::Duration;

use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{BuyerId, OrderId, OrderStatus, Ticket, VoucherId};

use super::{Rule, Violation};
use crate::harness::answer::Purchase;
use crate::harness::facts::Facts;
use crate::harness::history::{Asked, Event, Told};

/// Somebody who was told that he waits, and was first told so by this call.
struct Joined {
    order: OrderId,
    begun: Duration,
    ended: Duration,
}

pub(super) fn judge(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    for voucher in facts.vouchers.keys() {
        let mut broken = |how: String| {
            violations.push(Violation {
                broken: Rule::Promise(InvariantId::FairWaitlist),
                how: format!("voucher {voucher}: {how}"),
            });
        };
        by_ticket(facts, *voucher, &mut broken);
        let joined = joined(history, *voucher);
        overtaken(&joined, facts, &mut broken);
        jumped(history, &joined, facts, *voucher, &mut broken);
        stayed(history, *voucher, facts, &mut broken);
    }
}

/// As the ledger tells it: in the order in which they were served, their turns rise.
fn by_ticket(facts: &Facts, voucher: VoucherId, broken: &mut impl FnMut(String)) {
    let mut served: Vec<(u64, Ticket)> = facts
        .orders
        .values()
        .filter(|order| order.voucher == voucher && order.was_served())
        .filter_map(|order| Some((order.served_at?, Ticket::new(order.ticket?))))
        .collect();
    served.sort_unstable();
    let tickets: Vec<Ticket> = served.into_iter().map(|(_, ticket)| ticket).collect();
    if !invariants::served_in_order(&tickets) {
        broken(format!("served in the order {tickets:?}"));
    }
}

fn joined(history: &[Event], voucher: VoucherId) -> Vec<Joined> {
    let mut joined: BTreeMap<OrderId, Joined> = BTreeMap::new();
    for event in history {
        if let (Asked::Purchase { voucher: of, .. }, Told::Purchase(answer)) =
            (&event.asked, &event.told)
            && *of == voucher
            && let Purchase::Waitlisted { order, .. } = answer
        {
            let (begun, ended) = (event.begun, event.ended);
            let seen = joined.entry(*order).or_insert(Joined {
                order: *order,
                begun,
                ended,
            });
            seen.begun = seen.begun.min(begun);
            seen.ended = seen.ended.min(ended);
        }
    }
    joined.into_values().collect()
}

fn waits(facts: &Facts, order: OrderId) -> bool {
    let found = facts.orders.get(&order);
    found.is_some_and(|found| found.status == OrderStatus::Waiting)
}

/// Nobody waits who came before somebody who waited and was served.
fn overtaken(joined: &[Joined], facts: &Facts, broken: &mut impl FnMut(String)) {
    let served = |order: OrderId| {
        let found = facts.orders.get(&order);
        found.is_some_and(super::super::facts::OrderFacts::was_served)
    };
    for early in joined.iter().filter(|early| waits(facts, early.order)) {
        for late in joined.iter().filter(|late| served(late.order)) {
            if early.ended < late.begun {
                broken(format!(
                    "order {} came after {}, which waits, and was served",
                    late.order, early.order
                ));
            }
        }
    }
}

/// Whoever was told that he has left does not wait, and is not served, with the place that he had.
fn stayed(history: &[Event], voucher: VoucherId, facts: &Facts, broken: &mut impl FnMut(String)) {
    let gone = history.iter().filter(|event| {
        matches!(&event.asked, Asked::Leave { voucher: of } if *of == voucher)
            && event.told == Told::Done
    });
    for leave in gone {
        let mine = history
            .iter()
            .filter(|event| event.buyer == leave.buyer && event.ended <= leave.begun);
        for event in mine {
            if let Asked::Purchase { voucher: of, .. } = &event.asked
                && *of == voucher
                && let Told::Purchase(Purchase::Waitlisted { order, .. }) = &event.told
                && let Some(found) = facts.orders.get(order)
                && (found.is_live() || found.status == OrderStatus::Waiting)
            {
                broken(format!(
                    "buyer {} left, and his order {order} is {:?}",
                    leave.buyer, found.status
                ));
            }
        }
    }
}

/// Nobody is served at once who came after somebody who waits, or who waited when that was decided.
fn jumped(
    history: &[Event],
    joined: &[Joined],
    facts: &Facts,
    voucher: VoucherId,
    broken: &mut impl FnMut(String),
) {
    if joined.is_empty() {
        return;
    }
    let decided = |order: OrderId| facts.orders.get(&order).and_then(|found| found.served_at);
    let waited = |early: &Joined, granted: OrderId| {
        waits(facts, early.order)
            || decided(early.order)
                .zip(decided(granted))
                .is_some_and(|(early, late)| late < early)
    };
    // A grant may be as old as the first call of its buyer whose answer was lost.
    let mut first_call: BTreeMap<BuyerId, Duration> = BTreeMap::new();
    for event in history {
        let Asked::Purchase { voucher: of, .. } = &event.asked else {
            continue;
        };
        if *of != voucher {
            continue;
        }
        let first = first_call.entry(event.buyer).or_insert(event.begun);
        *first = (*first).min(event.begun);
        let Told::Purchase(Purchase::Granted { order, .. }) = &event.told else {
            continue;
        };
        let mut before = joined.iter().filter(|early| early.ended < *first);
        if !joined.iter().any(|seat| seat.order == *order)
            && let Some(early) = before.find(|early| waited(early, *order))
        {
            let early = early.order;
            broken(format!(
                "order {order} was granted past {early}, which waited"
            ));
        }
    }
}

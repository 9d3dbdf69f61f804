//! I6, the half about money: a payment is one paid order or one refund record, never silence.

use std::collections::BTreeMap;

use seckill_domain::invariants::InvariantId;
use seckill_domain::{OrderId, OrderStatus};

use super::{Rule, Violation};
use crate::harness::facts::Facts;
use crate::harness::history::{Asked, Event, Told};
use crate::harness::records::MoneyFacts;
use crate::harness::shop::payment_id;

/// What became of a payment that paid for its order.
const PAID: &str = "paid";
/// Why money goes back that had paid for an order.
const REQUESTED: &str = "requested";

pub(super) fn judge(history: &[Event], facts: &Facts, violations: &mut Vec<Violation>) {
    let Some(money) = &facts.money else {
        return;
    };
    let mut broken = |how: String| {
        violations.push(Violation {
            broken: Rule::Promise(InvariantId::PaidXorExpired),
            how,
        });
    };
    payments(money, facts, &mut broken);
    orders(money, facts, &mut broken);
    told(history, money, &mut broken);
}

/// Each payment paid for one order, or goes back.
fn payments(money: &MoneyFacts, facts: &Facts, broken: &mut impl FnMut(String)) {
    let mut paid_by: BTreeMap<OrderId, &str> = BTreeMap::new();
    for (payment, (order, outcome)) in &money.payments {
        if outcome != PAID {
            if !money.refunds.contains_key(payment) {
                broken(format!("payment {payment} ({outcome}) does not go back"));
            }
            continue;
        }
        if let Some(other) = paid_by.insert(*order, payment) {
            broken(format!(
                "order {order} was paid by {other} and by {payment}"
            ));
        }
        let Some(found) = facts.orders.get(order) else {
            continue;
        };
        let is_paid = matches!(found.status, OrderStatus::Paid | OrderStatus::Refunded);
        let by = found.row.as_ref().and_then(|row| row.payment.as_deref());
        if !is_paid || by != Some(payment) {
            broken(format!(
                "payment {payment} has paid for order {order}, which is {:?} by {by:?}",
                found.status
            ));
        }
    }
}

/// Each paid order has its payment, and the money goes back if the order says so, and only then.
fn orders(money: &MoneyFacts, facts: &Facts, broken: &mut impl FnMut(String)) {
    for (order, found) in &facts.orders {
        let Some(row) = &found.row else {
            continue;
        };
        let is_refunded = match found.status {
            OrderStatus::Paid => false,
            OrderStatus::Refunded => true,
            _ => continue,
        };
        let Some(payment) = &row.payment else {
            broken(format!("order {order} is {:?} by nothing", found.status));
            continue;
        };
        let known = money.payments.get(payment);
        if known.is_none_or(|(of, outcome)| of != order || outcome != PAID) {
            broken(format!("order {order} is paid by {payment}: {known:?}"));
        }
        let back = money.refunds.get(payment);
        let goes_back = back.is_some_and(|(of, why)| of == order && why == REQUESTED);
        if goes_back != is_refunded || back.is_some() != is_refunded {
            broken(format!(
                "order {order} is {:?}, its money: {back:?}",
                found.status
            ));
        }
    }
}

/// Whoever was told that he paid has paid, and whoever told of money was written down.
fn told(history: &[Event], money: &MoneyFacts, broken: &mut impl FnMut(String)) {
    for event in history {
        let (payment, paid) = match (&event.asked, &event.told) {
            (Asked::Pay { order, payment }, Told::Order(OrderStatus::Paid)) => {
                (payment_id(*order, payment), true)
            }
            (Asked::Notice { payment }, Told::Done) => (payment.clone(), false),
            _ => continue,
        };
        let known = money.payments.get(&payment);
        if known.is_none_or(|(_, outcome)| paid && outcome != PAID) {
            broken(format!("payment {payment} was taken, and is {known:?}"));
        }
    }
}

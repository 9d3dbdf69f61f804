//! Promises about money.

use std::collections::BTreeMap;

use seckill_domain::invariants::InvariantId;
use seckill_domain::{Order, OrderId, OrderStatus, PaymentId, Refund, Stage};

use super::{Rule, Violation, against, broken};
use crate::promises::{Outcome, Told};
use crate::site::Site;
use crate::stores::now;

pub(super) fn judge(site: &Site, orders: &[Order]) -> Result<(), Violation> {
    let told = site.promises.told().clone();
    let refunds = now(site.stores.ledger.money.refunds(None, 100)).items;
    let by_id: BTreeMap<OrderId, &Order> = orders.iter().map(|it| (it.id, it)).collect();
    pays_or_goes_back(&told, &by_id, &refunds)?;
    for order in orders {
        in_time(&told, order)?;
    }
    whole(site, &told, &by_id, &refunds)
}

/// I6: money pays one order, or goes back.
fn pays_or_goes_back(
    told: &Told,
    orders: &BTreeMap<OrderId, &Order>,
    refunds: &[Refund],
) -> Result<(), Violation> {
    for (payment, outcomes) in &told.payments {
        if outcomes.len() > 1 {
            let how = format!("of payment {payment} was told {outcomes:?}");
            return broken(InvariantId::PaidXorExpired, how);
        }
        let Some((order, outcome)) = outcomes.first() else {
            continue;
        };
        let back = refunds.iter().any(|it| it.payment == *payment);
        let status = orders.get(order).map(|order| order.status());
        let fits = match (outcome, status) {
            (Outcome::Paid, Some(OrderStatus::Paid)) => !back,
            (Outcome::Paid, status) => back && status == Some(OrderStatus::Refunded),
            (Outcome::Refunded, _) => back,
        };
        if !fits {
            let how = format!("payment {payment} of order {order}: {outcome:?}, {status:?}");
            return broken(InvariantId::PaidXorExpired, how);
        }
    }
    Ok(())
}

/// Which payment has paid an order.
fn paid_by(order: &Order) -> Option<&PaymentId> {
    match &order.stage {
        Stage::Paid { payment } | Stage::Refunded { payment } => Some(payment),
        _ => None,
    }
}

/// I6: after the end of its payment window nobody pays an order, and nobody gives it up.
fn in_time(told: &Told, order: &Order) -> Result<(), Violation> {
    let Some(end) = order.expires_at else {
        return Ok(());
    };
    let first = match paid_by(order) {
        Some(payment) => told.pays.get(payment),
        None if order.status() == OrderStatus::Cancelled => told.cancels.get(&order.id),
        None => return Ok(()),
    };
    if first.is_some_and(|first| *first < end) {
        return Ok(());
    }
    let (id, stage) = (order.id, &order.stage);
    let how =
        format!("order {id}, whose window ended at {end:?}, is {stage:?}; asked for {first:?}");
    broken(InvariantId::PaidXorExpired, how)
}

/// Money that came is what its order costs, or it goes back, all of it.
fn whole(
    site: &Site,
    told: &Told,
    orders: &BTreeMap<OrderId, &Order>,
    refunds: &[Refund],
) -> Result<(), Violation> {
    for order in orders.values() {
        let came = paid_by(order).and_then(|payment| told.notices.get(payment));
        if came.is_some_and(|came| *came != order.amount) {
            let how = format!("{came:?} has paid {order:?}");
            return against(Rule::WholeMoney, how);
        }
    }
    for refund in refunds {
        let costs = orders.get(&refund.order).map(|order| order.amount);
        let came = told.notices.get(&refund.payment).copied().or(costs);
        if came.is_some_and(|came| came != refund.amount) {
            let how = format!("of {came:?} goes back {refund:?}");
            return against(Rule::WholeMoney, how);
        }
    }
    let sent = site.stores.provider.refunds();
    let is_sent = |refund: &&Refund| {
        let mut sent = sent.iter();
        sent.any(|it| it.id == refund.id && it.amount == refund.amount)
    };
    match refunds.iter().find(|refund| !is_sent(refund)) {
        None => Ok(()),
        Some(refund) => {
            let how = format!("the provider was not told of {refund:?}");
            broken(InvariantId::Drains, how)
        }
    }
}

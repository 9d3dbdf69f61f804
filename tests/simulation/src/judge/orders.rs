//! Promises about orders: what somebody was told, and what became of it.

use std::collections::BTreeMap;

use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{BuyerId, EventId, EventKind, Order, OrderId, OrderStatus, VoucherId};

use super::waitlist::EVENTS_MAX;
use super::{Violation, broken};
use crate::losses::Lost;
use crate::promises::Told;
use crate::site::{FORGED, Site};
use crate::stores::now;

pub(super) fn judge(site: &Site, orders: &[Order]) -> Result<(), Violation> {
    let by_id: BTreeMap<OrderId, &Order> = orders.iter().map(|it| (it.id, it)).collect();
    for order in orders {
        once(site, order)?;
    }
    let told = site.promises.told().clone();
    nothing_lost(site, orders)?;
    ends_stay(site, &told, &by_id)?;
    same_request(site, &told, &by_id)?;
    nothing_unasked(site, &told, orders)
}

/// I5 and I6, as the events tell an order's life.
fn once(site: &Site, order: &Order) -> Result<(), Violation> {
    let events = now(site
        .stores
        .ledger
        .events
        .of_order(order.id, EventId::new(0), EVENTS_MAX));
    let kinds = events.iter().map(|event| event.what.kind);
    let count = |of: fn(EventKind) -> bool| {
        u32::try_from(kinds.clone().filter(|kind| of(*kind)).count()).unwrap_or(u32::MAX)
    };
    let taken = count(|kind| {
        matches!(
            kind,
            EventKind::Promoted | EventKind::Order(OrderStatus::PendingPayment)
        )
    });
    let returned = count(|kind| {
        use OrderStatus::{Cancelled, Expired, Refunded};
        matches!(kind, EventKind::Order(Cancelled | Expired | Refunded))
    });
    if !invariants::once(taken, returned) {
        let how = format!(
            "order {} took {taken} times and gave back {returned} times",
            order.id
        );
        return broken(InvariantId::Once, how);
    }
    let paid = count(|kind| kind == EventKind::Order(OrderStatus::Paid));
    let expired = count(|kind| kind == EventKind::Order(OrderStatus::Expired));
    if paid + expired > 1 {
        let how = format!(
            "order {} was paid {paid} times, expired {expired} times",
            order.id
        );
        return broken(InvariantId::PaidXorExpired, how);
    }
    Ok(())
}

/// I4: whoever was told of an order finds it, and if he was told that he has units, he has or had
/// them, or reads why not.
pub(super) fn nothing_lost(site: &Site, orders: &[Order]) -> Result<(), Violation> {
    let orders: BTreeMap<OrderId, &Order> = orders.iter().map(|it| (it.id, it)).collect();
    let told = site.promises.told();
    for (id, promise) in told.orders.iter().filter(|(_, it)| !it.excused) {
        let Some(order) = orders.get(id) else {
            if site.stores.has(*id) {
                // Parked: it is read as queued.
                continue;
            }
            let how = format!(
                "order {id}, told to buyer {} by {:?}, is gone",
                promise.buyer, promise.by
            );
            return broken(InvariantId::NoSilentLoss, how);
        };
        if order.buyer != promise.buyer || order.voucher != promise.voucher {
            return broken(
                InvariantId::NoSilentLoss,
                format!("order {id} is somebody else's"),
            );
        }
        let without = matches!(
            order.status(),
            OrderStatus::Waiting | OrderStatus::Withdrawn | OrderStatus::ClosedOut
        );
        // That he was given units in his turn may be lost with the hot data; then he waits again.
        let lost = site.watch.has_lost_of(*id, Lost::Promotion);
        if promise.units && without && !lost {
            let how = format!("order {id} had units, and is {:?}", order.status());
            return broken(InvariantId::NoSilentLoss, how);
        }
    }
    Ok(())
}

/// I6: an end that somebody was told of stays the end.
fn ends_stay(
    site: &Site,
    told: &Told,
    orders: &BTreeMap<OrderId, &Order>,
) -> Result<(), Violation> {
    for (id, end) in &told.ends {
        let Some(order) = orders.get(id) else {
            continue;
        };
        let is = order.status();
        let stays = is == *end || (*end, is) == (OrderStatus::Paid, OrderStatus::Refunded);
        // That a place was given up may be lost with the hot data.
        let lost = !end.is_ledgers() && site.watch.has_lost_of(*id, Lost::End);
        if !stays && !lost {
            let how = format!("order {id} was {end:?}, and is {is:?}");
            return broken(InvariantId::PaidXorExpired, how);
        }
    }
    Ok(())
}

/// Who says that an order has come to its end.
trait Says {
    /// Whether only the ledger can say so.
    fn is_ledgers(&self) -> bool;
}

impl Says for OrderStatus {
    fn is_ledgers(&self) -> bool {
        !matches!(self, Self::Withdrawn | Self::ClosedOut | Self::Rejected)
    }
}

/// I9: a key stands for one order.
fn same_request(
    site: &Site,
    told: &Told,
    orders: &BTreeMap<OrderId, &Order>,
) -> Result<(), Violation> {
    for (used, got) in &told.keys {
        let (voucher, buyer, key) = used;
        let mut got = got.clone();
        // Of a place under a key that has an order it is expected to be that order's, unless the gate
        // had forgotten what the key had.
        let places = told.places.get(used).into_iter().flatten();
        let wrong = places.filter(|(_, when)| {
            let lost = |order: &OrderId| site.watch.was_lost_at(*order, *when);
            !got.iter().all(lost)
        });
        let wrong: Vec<OrderId> = wrong.map(|(order, _)| *order).collect();
        got.extend(wrong);
        let mut got: Vec<OrderId> = got.into_iter().collect();
        got.sort_by_key(|order| site.watch.decided(*order));
        for pair in got.windows(2) {
            if !is_forgotten(site, *voucher, pair[0], pair[1]) {
                let how = format!("buyer {buyer} got {got:?} of voucher {voucher} for key {key}");
                return broken(InvariantId::Idempotent, how);
            }
        }
    }
    let mut by_key: BTreeMap<(VoucherId, BuyerId, &str), OrderId> = BTreeMap::new();
    for order in orders.values() {
        let Some(key) = &order.key else { continue };
        let known = by_key.insert((order.voucher, order.buyer, key.as_str()), order.id);
        if let Some(known) = known {
            let how = format!("key {key} has the orders {known} and {}", order.id);
            return broken(InvariantId::Idempotent, how);
        }
    }
    Ok(())
}

/// Whether the gate had forgotten the first order when it decided the other one, or was itself
/// forgotten when it did.
fn is_forgotten(site: &Site, voucher: VoucherId, first: OrderId, other: OrderId) -> bool {
    let watch = &site.watch;
    let when = watch.decided(other);
    when.is_some_and(|when| watch.was_lost_at(first, when))
        || watch.was_decided_blindly(voucher, other)
}

/// I9: a call makes one order at most.
fn nothing_unasked(site: &Site, told: &Told, orders: &[Order]) -> Result<(), Violation> {
    let mut made: BTreeMap<(VoucherId, BuyerId), usize> = BTreeMap::new();
    let asked = |it: &&Order| it.key.is_none() && it.buyer != BuyerId::new(FORGED);
    let keyless = orders.iter().filter(asked);
    let keyless = keyless.filter(|it| !site.watch.has_lost_key_of(it));
    for order in keyless {
        *made.entry((order.voucher, order.buyer)).or_default() += 1;
    }
    for ((voucher, buyer), orders) in made {
        let calls = told.calls.get(&(voucher, buyer)).copied().unwrap_or(0);
        if orders > calls {
            let how =
                format!("buyer {buyer} asked {calls} times for {voucher}, got {orders} orders");
            return broken(InvariantId::Idempotent, how);
        }
    }
    Ok(())
}

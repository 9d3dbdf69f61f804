//! I7: the waitlist is served strictly in order of arrival.

use std::collections::BTreeMap;
use std::time::Duration;

use seckill_application::ports::Clock as _;
use seckill_domain::invariants::{self, InvariantId};
use seckill_domain::{EventId, EventKind, Order, OrderId, OrderStatus, Ticket, Voucher};

use super::{Violation, broken};
use crate::coverage::Seen;
use crate::losses::Lost;
use crate::site::Site;
use crate::stores::now;

/// Most events that a look at an order takes.
pub(super) const EVENTS_MAX: usize = 100;

/// What the ledger's events tell of an order that was given units.
struct Served<'a> {
    order: &'a Order,
    /// The place of the event among all.
    event: EventId,
    when: Duration,
    /// In its turn, and not at once.
    promoted: bool,
}

impl<'a> Served<'a> {
    fn of(site: &Site, order: &'a Order) -> Option<Self> {
        let events = &site.stores.ledger.events;
        let events = now(events.of_order(order.id, EventId::new(0), EVENTS_MAX));
        let event = events.into_iter().find(|it| {
            matches!(
                it.what.kind,
                EventKind::Promoted | EventKind::Order(OrderStatus::PendingPayment)
            )
        })?;
        let clock = &site.nature.clock;
        let ago = event.at.until(clock.now());
        Some(Self {
            order,
            event: event.id,
            when: clock.monotonic().saturating_sub(ago),
            promoted: event.what.kind == EventKind::Promoted,
        })
    }
}

/// A place that was lost with hot data excuses that others are served until it is there again, and
/// nothing else.
pub(super) fn fair(site: &Site, voucher: &Voucher, orders: &[Order]) -> Result<(), Violation> {
    let ours = || orders.iter().filter(|order| order.voucher == voucher.id);
    let mut served: Vec<Served<'_>> = ours().filter_map(|it| Served::of(site, it)).collect();
    served.sort_unstable_by_key(|it| it.event);
    by_turn(site, voucher, &served)?;
    overtaken(site, &ours().map(|it| (it.id, it)).collect(), &served)
}

/// In the order in which they were given units, their turns rise. A hot store that forgot whom it
/// had given a turn gives it again: then two have it.
fn by_turn(site: &Site, voucher: &Voucher, served: &[Served<'_>]) -> Result<(), Violation> {
    let promoted = served.iter().filter(|it| it.promoted);
    let turns: Vec<(&Served<'_>, Ticket)> = promoted
        .filter_map(|it| Some((it, it.order.ticket?)))
        .collect();
    let twice = site.nature.coverage.times(Seen::Failover) > 0;
    for (at, (later, turn)) in turns.iter().enumerate() {
        for (earlier, before) in &turns[..at] {
            let rises = invariants::served_in_order(&[*before, *turn]) || (twice && before == turn);
            let order = later.order.id;
            // A gate whose counter went back gave a turn of long ago.
            let excused = site.watch.was_lost_at(order, earlier.when)
                || site.watch.was_decided_blindly(voucher.id, order);
            if !rises && !excused {
                let how = format!(
                    "voucher {}: {} with {before:?} was served before {} with {turn:?}",
                    voucher.id, earlier.order.id, order
                );
                return broken(InvariantId::FairWaitlist, how);
            }
        }
    }
    Ok(())
}

/// Nobody who had been told that he waits before somebody else was decided waits still when that one
/// is served.
fn overtaken(
    site: &Site,
    ours: &BTreeMap<OrderId, &Order>,
    served: &[Served<'_>],
) -> Result<(), Violation> {
    let told = site.promises.told();
    for (id, promise) in &told.orders {
        let (Some(early), Some(since)) = (ours.get(id), promise.waits) else {
            continue;
        };
        let turn = served.iter().find(|it| it.order.id == *id);
        let waits = early.status() == OrderStatus::Waiting;
        let waited = |late: &Served<'_>| turn.map_or(waits, |turn| late.event < turn.event);
        let mut late = served.iter().filter(|late| waited(late));
        let overtakes = |late: &&Served<'_>| {
            // What nobody saw decided is at most as old as its buyer's first call.
            let first = told
                .first_calls
                .get(&(late.order.voucher, late.order.buyer));
            let decided = site.watch.decided(late.order.id).or(first.copied());
            // Who was told that he has units gets them, though the gate has forgotten it meanwhile.
            let kept = !late.promoted && site.watch.has_lost_of(late.order.id, Lost::Claim);
            // Whoever came while a place was forgotten has a turn before it.
            let unknown = |when| site.watch.was_lost_at(*id, when);
            decided.is_some_and(|decided| decided > since && !unknown(decided))
                && !kept
                && !site
                    .watch
                    .was_decided_blindly(late.order.voucher, late.order.id)
                && !unknown(late.when)
        };
        if let Some(late) = late.find(overtakes) {
            let how = format!(
                "{id} waited, and {}, who came later, was served",
                late.order.id
            );
            return broken(InvariantId::FairWaitlist, how);
        }
    }
    Ok(())
}

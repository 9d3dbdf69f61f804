//! Who holds units of a voucher, and who waits for some.

use seckill_application::ports::{Claimant, HoldersPage, WaitersPage};
use seckill_domain::{BuyerId, Claim, Held, Sale, VoucherId};

/// Orders after which a page is full; the buyer who fills it is still taken whole, and so are those
/// who share a turn.
const PAGE_MIN: usize = 1_000;

/// What a buyer has.
pub(super) fn of(sale: &Sale, buyer: BuyerId) -> Claimant {
    Claimant {
        held: sale.held_by(buyer).to_vec(),
        seat: sale.waitlist().seat(buyer).cloned(),
    }
}

/// A page of holders, by rising buyer. The cursor is the first buyer of the page and not a count, so
/// that whoever goes in between moves nobody off the next one.
pub(super) fn holders(voucher: VoucherId, sale: &Sale, cursor: u64) -> HoldersPage {
    let mut rest: Vec<(BuyerId, &Held)> = sale
        .holders()
        .filter(|(buyer, _)| buyer.get() >= cursor)
        .collect();
    rest.sort_unstable_by_key(|(buyer, held)| (*buyer, held.order));
    let last = rest.get(PAGE_MIN - 1).map(|(buyer, _)| *buyer);
    let end = last.map_or(rest.len(), |last| {
        rest.partition_point(|(buyer, _)| *buyer <= last)
    });
    let next = rest.get(end).map(|(buyer, _)| buyer.get());
    rest.truncate(end);
    let claim = |(buyer, held): (BuyerId, &Held)| Claim {
        order: held.order,
        voucher,
        buyer,
        quantity: held.quantity,
        key: None,
    };
    HoldersPage {
        claims: rest.into_iter().map(claim).collect(),
        next,
    }
}

/// A page of those who wait, by rising turn. The cursor is the last turn of the page before.
pub(super) fn waiters(sale: &Sale, cursor: u64) -> WaitersPage {
    let mut rest = sale.waitlist().seats();
    let mut seats = Vec::new();
    let next = loop {
        let Some(seat) = rest.find(|seat| seat.ticket.get() > cursor) else {
            break None;
        };
        let last = seats.last().map(|last: &seckill_domain::Seat| last.ticket);
        if seats.len() >= PAGE_MIN && last != Some(seat.ticket) {
            break last.map(seckill_domain::Ticket::get);
        }
        seats.push(seat.clone());
    };
    WaitersPage { seats, next }
}

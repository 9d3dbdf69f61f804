//! Who holds units of a voucher, a page at a time.

use seckill_application::ports::HoldersPage;
use seckill_domain::{BuyerId, Claim, Held, Sale, VoucherId};

/// Orders after which a page is full; the buyer who fills it is still taken whole.
const PAGE_MIN: usize = 1_000;

/// One page, by rising buyer. The cursor is the first buyer of the page and not a count, so that
/// whoever goes in between moves nobody off the next one.
pub(super) fn page(voucher: VoucherId, sale: &Sale, cursor: u64) -> HoldersPage {
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

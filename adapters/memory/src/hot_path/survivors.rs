//! What is left of a voucher, a page at a time.

use std::collections::HashMap;

use seckill_application::ports::{LOAD_CHUNK_MAX, Survivors};
use seckill_domain::{Claim, IdempotencyKey, OrderId, Sale, Seat, VoucherId};

/// One page: first the holders, by buyer and order, then the seats, by ticket. Sorted, so that a
/// run can be repeated exactly.
pub(super) fn page(voucher: VoucherId, sale: Option<&Sale>, cursor: u64) -> Survivors {
    let Some(sale) = sale else {
        return Survivors {
            holders: Vec::new(),
            seats: Vec::new(),
            next: None,
        };
    };
    let cursor = usize::try_from(cursor).unwrap_or(usize::MAX);
    let all = holders(voucher, sale);
    let (held, total) = (all.len(), all.len() + sale.waitlist().seats().count());
    let holders: Vec<Claim> = all.into_iter().skip(cursor).take(LOAD_CHUNK_MAX).collect();
    let seats: Vec<Seat> = sale
        .waitlist()
        .seats()
        .skip(cursor.saturating_sub(held))
        .take(LOAD_CHUNK_MAX - holders.len())
        .cloned()
        .collect();
    let end = cursor.saturating_add(holders.len() + seats.len());
    Survivors {
        holders,
        seats,
        next: (end < total).then_some(end as u64),
    }
}

fn holders(voucher: VoucherId, sale: &Sale) -> Vec<Claim> {
    let keys: HashMap<OrderId, &IdempotencyKey> = sale
        .keys()
        .map(|(_, key, first)| (first.order, key))
        .collect();
    let mut holders: Vec<Claim> = sale
        .holders()
        .map(|(buyer, held)| Claim {
            order: held.order,
            voucher,
            buyer,
            quantity: held.quantity,
            key: keys.get(&held.order).copied().cloned(),
        })
        .collect();
    holders.sort_unstable_by_key(|claim| (claim.buyer, claim.order));
    holders
}

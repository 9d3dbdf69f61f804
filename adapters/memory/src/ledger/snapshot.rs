//! Everything about a sale that the gate needs.

use seckill_application::ports::{
    Holder, KeyUse, LOAD_CHUNK_MAX, LoadChunk, OpenSale, SaleSnapshot,
};
use seckill_domain::{
    Claim, Decision, Held, Order, OrderStatus, PartitionId, PlaceAtFirst, Remembered, Seat,
    VoucherId,
};

use super::book::Book;
use super::parked::ParkedRow;

/// The snapshot of a voucher in this partition; `None` if it is unknown.
pub(super) fn of(book: &Book, voucher: VoucherId, partition: PartitionId) -> Option<SaleSnapshot> {
    let row = book.vouchers.get(&voucher)?;
    let mut all = LoadChunk::default();
    for order in book.orders_of(voucher) {
        collect(&mut all, order);
    }
    let parked = || book.parked.of_voucher(voucher);
    let unheld: u32 = parked().map(ParkedRow::unheld).sum();
    for (claim, first) in parked().filter_map(|it| granted(it.decision()?)) {
        collect_parked(&mut all, claim, first);
    }
    all.seats.sort_unstable_by_key(|seat| seat.ticket);
    Some(SaleSnapshot {
        sale: OpenSale {
            terms: row.sale_terms(),
            free: row.stock_units.saturating_sub(unheld),
            version: row.version,
            applied: book.head(partition).applied,
        },
        chunks: in_chunks(all),
    })
}

/// What took units at the gate.
fn granted(decision: &Decision) -> Option<(&Claim, PlaceAtFirst)> {
    match decision {
        Decision::Granted(claim) => Some((claim, PlaceAtFirst::Granted)),
        Decision::Promoted(claim) => Some((claim, PlaceAtFirst::Waitlisted)),
        _ => None,
    }
}

fn collect(all: &mut LoadChunk, order: &Order) {
    let first = match order.ticket {
        Some(_) => PlaceAtFirst::Waitlisted,
        None => PlaceAtFirst::Granted,
    };
    if let Some(key) = &order.key {
        all.keys.push(KeyUse {
            buyer: order.buyer,
            key: key.clone(),
            first: Remembered {
                order: order.id,
                quantity: order.quantity,
                first,
            },
        });
    }
    if order.status().is_live() {
        all.holders.push(Holder {
            buyer: order.buyer,
            held: Held {
                order: order.id,
                quantity: order.quantity,
                promoted: order.ticket.is_some(),
            },
        });
    }
    if let (OrderStatus::Waiting, Some(ticket)) = (order.status(), order.ticket) {
        all.seats.push(Seat {
            ticket,
            order: order.id,
            buyer: order.buyer,
            quantity: order.quantity,
            key: order.key.clone(),
        });
    }
}

/// A grant that the ledger could not apply holds its units nevertheless, and its key is used.
fn collect_parked(all: &mut LoadChunk, claim: &Claim, first: PlaceAtFirst) {
    let order = claim.order;
    let is_held = |holder: &Holder| (holder.held.order, holder.buyer) == (order, claim.buyer);
    if all.holders.iter().any(is_held) {
        return;
    }
    all.seats.retain(|seat| seat.order != order);
    all.holders.push(Holder {
        buyer: claim.buyer,
        held: Held {
            order: claim.order,
            quantity: claim.quantity,
            promoted: first == PlaceAtFirst::Waitlisted,
        },
    });
    let known = all.keys.iter().any(|used| used.first.order == order);
    if let Some(key) = claim.key.as_ref().filter(|_| !known) {
        all.keys.push(KeyUse {
            buyer: claim.buyer,
            key: key.clone(),
            first: Remembered {
                order: claim.order,
                quantity: claim.quantity,
                first,
            },
        });
    }
}

/// At least one chunk, so that the first one clears what an earlier attempt loaded.
fn in_chunks(mut all: LoadChunk) -> Vec<LoadChunk> {
    let longest = all.holders.len().max(all.seats.len()).max(all.keys.len());
    let count = longest.div_ceil(LOAD_CHUNK_MAX).max(1);
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        chunks.push(LoadChunk {
            holders: take(&mut all.holders),
            seats: take(&mut all.seats),
            keys: take(&mut all.keys),
        });
    }
    chunks
}

/// The first part of a list, taken off it.
fn take<T>(list: &mut Vec<T>) -> Vec<T> {
    let rest = list.split_off(list.len().min(LOAD_CHUNK_MAX));
    std::mem::replace(list, rest)
}

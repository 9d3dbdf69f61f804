//! Everything about a sale that the gate needs.

use std::collections::HashMap;

use seckill_application::ports::{
    Holder, KeyUse, LOAD_CHUNK_MAX, LoadChunk, OpenSale, SaleSnapshot,
};
use seckill_domain::{
    Claim, Decision, Held, Order, OrderId, OrderStatus, PartitionId, PlaceAtFirst, Remembered,
    Seat, VoucherId,
};

use super::book::Book;

/// The snapshot of a voucher in this partition; `None` if it is unknown.
pub(super) fn of(book: &Book, voucher: VoucherId, partition: PartitionId) -> Option<SaleSnapshot> {
    let row = book.vouchers.get(&voucher)?;
    let parked = parked_grants(book, voucher);
    let mut all = LoadChunk::default();
    for order in book.orders_of(voucher) {
        collect(&mut all, order, parked.contains_key(&order.id));
    }
    for (claim, first) in parked.into_values() {
        collect_parked(&mut all, claim, first);
    }
    all.seats.sort_unstable_by_key(|seat| seat.ticket);
    Some(SaleSnapshot {
        sale: OpenSale {
            terms: row.sale_terms(),
            free: row.stock_units,
            version: row.version,
            applied: book.head(partition).applied,
        },
        chunks: in_chunks(all),
    })
}

/// Grants that took units at the gate and that the ledger could not apply.
fn parked_grants(book: &Book, voucher: VoucherId) -> HashMap<OrderId, (&Claim, PlaceAtFirst)> {
    book.parked
        .values()
        .filter_map(|message| granted(message.decision.as_ref()?))
        .filter(|(claim, _)| claim.voucher == voucher)
        .map(|(claim, first)| (claim.order, (claim, first)))
        .collect()
}

fn granted(decision: &Decision) -> Option<(&Claim, PlaceAtFirst)> {
    match decision {
        Decision::Granted(claim) => Some((claim, PlaceAtFirst::Granted)),
        Decision::Promoted(claim) => Some((claim, PlaceAtFirst::Waitlisted)),
        _ => None,
    }
}

fn collect(all: &mut LoadChunk, order: &Order, parked: bool) {
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
    // A parked grant is added as what it is, not as what the ledger has of it.
    if parked {
        return;
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

fn collect_parked(all: &mut LoadChunk, claim: &Claim, first: PlaceAtFirst) {
    all.holders.push(Holder {
        buyer: claim.buyer,
        held: Held {
            order: claim.order,
            quantity: claim.quantity,
            promoted: first == PlaceAtFirst::Waitlisted,
        },
    });
    if let Some(key) = &claim.key {
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

fn in_chunks(mut all: LoadChunk) -> Vec<LoadChunk> {
    let mut chunks = Vec::new();
    while !(all.holders.is_empty() && all.seats.is_empty() && all.keys.is_empty()) {
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

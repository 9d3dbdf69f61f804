//! Everything about a sale that the gate needs.

use std::collections::HashSet;

use seckill_application::ports::{
    Holder, KeyUse, LOAD_CHUNK_MAX, LoadChunk, OpenSale, SaleSnapshot,
};
use seckill_domain::{
    BuyerId, Claim, Decision, Held, Order, OrderId, OrderStatus, PartitionId, PlaceAtFirst,
    Remembered, Seat, Ticket, Timestamp, VoucherId,
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
    let settled: HashSet<BuyerId> = all.seats.iter().map(|seat| seat.buyer).collect();
    // Oldest first: the newest message about an order decides.
    for row in parked() {
        let Some(decision) = row.decision() else {
            continue;
        };
        // What an order that has its units already has come to since, the ledger knows.
        let takes_nothing = |claim: &Claim| {
            let order = book.orders.get(&claim.order);
            row.held() + row.unheld() == 0 && order.is_some_and(|it| it.buyer == claim.buyer)
        };
        match decision {
            Decision::Granted(claim) | Decision::Promoted(claim) if takes_nothing(claim) => {}
            Decision::Granted(claim) => hold(&mut all, claim, PlaceAtFirst::Granted),
            Decision::Promoted(claim) => hold(&mut all, claim, PlaceAtFirst::Waitlisted),
            Decision::Joined { claim, ticket } => {
                // The same; and whoever waits there has no other place.
                let is_known = book.orders.contains_key(&claim.order);
                if !is_known && !settled.contains(&claim.buyer) {
                    wait(&mut all, claim, *ticket);
                }
            }
            Decision::Left { claim, .. } | Decision::Lost(claim) => {
                all.seats.retain(|seat| seat.order != claim.order);
            }
            Decision::Withdrawn { .. } => {}
        }
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
        due: book.orders_of(voucher).filter_map(due).collect(),
    })
}

/// When the payment window of an order ends, if it is unpaid.
fn due(order: &Order) -> Option<(OrderId, Timestamp)> {
    let ends_at = order.expires_at?;
    (order.status() == OrderStatus::PendingPayment).then_some((order.id, ends_at))
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

fn is_held(all: &LoadChunk, claim: &Claim) -> bool {
    let is_his = |it: &Holder| (it.held.order, it.buyer) == (claim.order, claim.buyer);
    all.holders.iter().any(is_his)
}

/// A grant that the ledger could not apply holds its units nevertheless.
fn hold(all: &mut LoadChunk, claim: &Claim, first: PlaceAtFirst) {
    if is_held(all, claim) {
        return;
    }
    all.seats.retain(|seat| seat.order != claim.order);
    all.holders.push(Holder {
        buyer: claim.buyer,
        held: Held {
            order: claim.order,
            quantity: claim.quantity,
            promoted: first == PlaceAtFirst::Waitlisted,
        },
    });
    use_key(all, claim, first);
}

/// A place that the ledger could not apply waits in its turn nevertheless. One for each buyer: a
/// newer one was given because the gate had lost the other.
fn wait(all: &mut LoadChunk, claim: &Claim, ticket: Ticket) {
    if is_held(all, claim) {
        return;
    }
    all.seats.retain(|seat| seat.buyer != claim.buyer);
    all.seats.push(Seat {
        ticket,
        order: claim.order,
        buyer: claim.buyer,
        quantity: claim.quantity,
        key: claim.key.clone(),
    });
    use_key(all, claim, PlaceAtFirst::Waitlisted);
}

fn use_key(all: &mut LoadChunk, claim: &Claim, first: PlaceAtFirst) {
    let Some(key) = &claim.key else {
        return;
    };
    let is_used = |it: &KeyUse| (it.buyer, &it.key) == (claim.buyer, key);
    if !all.keys.iter().any(is_used) {
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

//! What an entry of the stream is to the ledger.

use seckill_domain::Sequence;

use crate::ports::{BatchItem, Delivery, EntryId, Taken, Unreadable};

/// Appends an entry's items; returns the last decision's number after them.
pub(super) fn push_items(
    items: &mut Vec<BatchItem>,
    delivery: Delivery,
    applied: Sequence,
    taken: Option<Taken>,
) -> Sequence {
    let id = delivery.id;
    match delivery.body {
        Err(body) => {
            let entry = id;
            items.push(BatchItem::Unreadable { entry, body, taken });
            taken.map_or(applied, |taken| taken.last)
        }
        Ok(entry) => {
            let mut sequence = entry.first;
            let mut last = applied;
            for decision in entry.decisions {
                items.push(BatchItem::Decision {
                    sequence,
                    entry: id,
                    decision,
                });
                last = sequence;
                sequence = sequence.next();
            }
            last
        }
    }
}

pub(super) fn foreign(entry: EntryId, reason: &str) -> BatchItem {
    let body = Unreadable {
        raw: String::new(),
        reason: reason.to_owned(),
        named: None,
    };
    let taken = None;
    BatchItem::Unreadable { entry, body, taken }
}

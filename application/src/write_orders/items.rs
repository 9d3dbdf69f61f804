//! What an entry of the stream is to the ledger.

use seckill_domain::Sequence;

use crate::ports::{BatchItem, Delivery, EntryId, Unreadable};

/// Appends an entry's items; returns the last decision's number after them.
pub(super) fn push_items(
    items: &mut Vec<BatchItem>,
    delivery: Delivery,
    applied: Sequence,
) -> Sequence {
    let id = delivery.id;
    match delivery.body {
        Err(body) => {
            items.push(BatchItem::Unreadable { entry: id, body });
            applied
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
    };
    BatchItem::Unreadable { entry, body }
}

//! What happened, for those who want to be told.

use crate::{BuyerId, OrderId, OrderStatus, Timestamp, VoucherId};

/// Something that became true in a ledger transaction, and was written down in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewEvent {
    /// What.
    pub kind: EventKind,
    /// On which voucher.
    pub voucher: VoucherId,
    /// About which order of which buyer; `None` for what happens to a voucher.
    pub order: Option<(OrderId, BuyerId)>,
}

/// An event with its number. Numbers rise per order: whoever has seen one has seen all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its number, unique in the ledger.
    pub id: EventId,
    /// What happened.
    pub what: NewEvent,
    /// When, by the ledger's clock.
    pub at: Timestamp,
}

/// The number of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventId(u64);

impl EventId {
    /// Wraps a stored number.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// An order is in this stage now.
    Order(OrderStatus),
    /// The head of the waitlist was given units: its payment window runs.
    Promoted,
    /// Money for an order is on its way back.
    RefundRecorded,
    /// A voucher went on sale.
    VoucherPublished,
    /// Its sale was paused.
    VoucherPaused,
    /// Its sale goes on.
    VoucherResumed,
    /// Its sale is over.
    VoucherClosed,
    /// Its settings changed.
    VoucherAmended,
    /// Its units were adjusted.
    StockAdjusted,
}

impl NewEvent {
    /// An order has reached the stage it is in.
    pub fn of_order(order: &crate::Order) -> Self {
        Self {
            kind: EventKind::Order(order.status()),
            voucher: order.voucher,
            order: Some((order.id, order.buyer)),
        }
    }

    /// Something happened to a voucher.
    pub fn of_voucher(voucher: VoucherId, kind: EventKind) -> Self {
        Self {
            kind,
            voucher,
            order: None,
        }
    }
}

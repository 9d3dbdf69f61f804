//! An order on the wire.

use seckill_application::OrderView;
use seckill_domain::{Order, Stage};
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::{Id, Instant, OrderStatusWord, UserId, reject_reason};

/// An order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderBody {
    id: Id,
    voucher_id: Id,
    user_id: UserId,
    #[schema(example = 1)]
    quantity: u32,
    /// `waiting` → `queued` → `pending_payment` → `paid` → `refunded`; or an end: `cancelled`,
    /// `expired`, `rejected` (see `reason`), `withdrawn` (left the waitlist), `closed_out` (the sale
    /// ended while it waited).
    status: OrderStatusWord,
    /// The place on the waitlist, counted from 1, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    position: Option<u32>,
    /// What the units cost together, in minor units.
    #[schema(example = 8_000)]
    amount_minor: u64,
    /// ISO 4217.
    #[schema(example = "CNY", pattern = "^[A-Z]{3}$")]
    currency: String,
    /// When it was decided.
    created_at: Instant,
    /// The end of the payment window; null while the order is queued or waiting. Nothing moves it.
    #[schema(required = true)]
    expires_at: Option<Instant>,
    /// Why it was rejected: `no_stock`, `limit_reached`, `lost`, `not_enough_units`, `discarded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "no_stock")]
    reason: Option<&'static str>,
    /// After how many milliseconds to look again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    poll_after_ms: Option<u32>,
}

impl From<OrderView> for OrderBody {
    fn from(view: OrderView) -> Self {
        Self {
            position: view.position,
            ..Self::from(view.order)
        }
    }
}

impl From<Order> for OrderBody {
    fn from(order: Order) -> Self {
        let status = OrderStatusWord::from(order.status());
        Self {
            id: order.id.into(),
            voucher_id: order.voucher.into(),
            user_id: order.buyer.into(),
            quantity: order.quantity,
            status,
            position: None,
            amount_minor: order.amount.minor,
            currency: order.amount.currency.to_string(),
            created_at: Instant(order.created_at),
            expires_at: order.expires_at.map(Instant),
            reason: match order.stage {
                Stage::Rejected { reason } => Some(reject_reason(reason)),
                _ => None,
            },
            poll_after_ms: status.poll_after_ms(),
        }
    }
}

//! A voucher on the wire.

use seckill_application::VoucherView;
use seckill_domain::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::{Id, Instant, SaleStatusWord};

/// A voucher.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Voucher)]
pub(crate) struct VoucherBody {
    id: Id,
    #[schema(example = "Dinner for two")]
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Any evening but Sunday")]
    description: Option<String>,
    status: SaleStatusWord,
    /// What a unit is worth, in minor units.
    #[schema(example = 10_000)]
    face_value_minor: u64,
    /// What a unit costs, in minor units.
    #[schema(example = 8_000)]
    price_minor: u64,
    /// ISO 4217.
    #[schema(example = "CNY", pattern = "^[A-Z]{3}$")]
    currency: String,
    /// Units the sale has in all.
    #[schema(example = 100)]
    total_units: u32,
    /// Units nobody has.
    #[schema(example = 42)]
    available_units: u32,
    /// Most units one buyer may have.
    #[schema(example = 1)]
    per_buyer_limit: u32,
    /// First instant of the sale.
    opens_at: Instant,
    /// First instant after the sale.
    closes_at: Instant,
    /// How long an order may stay unpaid, in seconds.
    #[schema(example = 900)]
    payment_window_s: u64,
    /// Most buyers who may wait; 0 for no waitlist.
    #[schema(example = 0)]
    waitlist_capacity: u32,
    /// How many wait.
    #[schema(example = 0)]
    waitlist_length: u32,
    /// When it was created.
    created_at: Instant,
    /// The time here, to count down to `opens_at` by.
    server_time: Instant,
}

impl VoucherBody {
    pub(crate) fn of(view: VoucherView, now: Timestamp) -> Self {
        let VoucherView {
            voucher,
            available_units,
            waitlist_length,
        } = view;
        let terms = voucher.terms;
        Self {
            id: voucher.id.into(),
            title: terms.title,
            description: terms.description,
            status: voucher.status.into(),
            face_value_minor: terms.face_value.minor,
            price_minor: terms.price.minor,
            currency: terms.price.currency.to_string(),
            total_units: voucher.total_units,
            available_units,
            per_buyer_limit: terms.per_buyer_limit,
            opens_at: Instant(terms.window.opens_at),
            closes_at: Instant(terms.window.closes_at),
            payment_window_s: terms.payment_window.as_secs(),
            waitlist_capacity: terms.waitlist_capacity,
            waitlist_length,
            created_at: Instant(voucher.created_at),
            server_time: Instant(now),
        }
    }
}

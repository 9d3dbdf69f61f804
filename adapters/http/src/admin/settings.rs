//! A voucher's settings as administrators write them. What they may be is said by the domain,
//! which names every one that does not fit.

use std::time::Duration;

use seckill_application::ports::NewVoucher;
use seckill_domain::{Amendment, Currency, Money, SaleWindow, VoucherTerms};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use validator::Validate;

use crate::extract::{whole, whole_if_given};
use crate::problem::Problem;
use crate::wire::{Instant, text};

/// A voucher to create.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = NewVoucher, example = json!({
    "title": "Dinner for two", "description": "Any evening but Sunday", "face_value_minor": 10_000,
    "price_minor": 8_000, "currency": "CNY", "total_units": 100, "per_buyer_limit": 1,
    "opens_at": "2026-01-01T08:00:00+08:00", "closes_at": "2036-01-01T08:00:00+08:00",
    "payment_window_s": 900, "waitlist_capacity": 50
}))]
#[serde(deny_unknown_fields)]
pub(super) struct NewVoucherBody {
    #[schema(schema_with = text::title)]
    title: String,
    #[serde(default)]
    #[schema(schema_with = text::description)]
    description: Option<String>,
    /// What a unit is worth, in minor units.
    #[serde(deserialize_with = "whole")]
    #[schema(maximum = 1_000_000_000_000_u64, example = 10_000)]
    face_value_minor: u64,
    /// What a unit costs, in minor units.
    #[serde(deserialize_with = "whole")]
    #[schema(maximum = 1_000_000_000_000_u64, example = 8_000)]
    price_minor: u64,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$", example = "CNY")]
    currency: String,
    #[serde(deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 100_000_000, example = 100)]
    total_units: u32,
    /// Most units one buyer may have.
    #[serde(default = "per_buyer_limit", deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 1_000, default = 1)]
    per_buyer_limit: u32,
    /// First instant of the sale; may lie in the past.
    opens_at: Instant,
    /// First instant after the sale.
    closes_at: Instant,
    /// How long an order may stay unpaid, in seconds.
    #[serde(default = "payment_window_s", deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 86_400, default = 900)]
    payment_window_s: u32,
    /// Most buyers who may wait; 0 for no waitlist.
    #[serde(default, deserialize_with = "whole")]
    #[schema(maximum = 1_000_000, default = 0)]
    waitlist_capacity: u32,
}

fn per_buyer_limit() -> u32 {
    1
}

fn payment_window_s() -> u32 {
    900
}

impl TryFrom<NewVoucherBody> for NewVoucher {
    type Error = Problem;

    fn try_from(body: NewVoucherBody) -> Result<Self, Problem> {
        let currency: Currency = body
            .currency
            .parse()
            .map_err(|_| Problem::field("currency", "three upper-case letters, as in ISO 4217"))?;
        let money = |minor| Money { minor, currency };
        Ok(Self {
            terms: VoucherTerms {
                title: body.title,
                description: body.description.filter(|text| !text.is_empty()),
                face_value: money(body.face_value_minor),
                price: money(body.price_minor),
                per_buyer_limit: body.per_buyer_limit,
                window: SaleWindow {
                    opens_at: body.opens_at.0,
                    closes_at: body.closes_at.0,
                },
                payment_window: Duration::from_secs(u64::from(body.payment_window_s)),
                waitlist_capacity: body.waitlist_capacity,
            },
            total_units: body.total_units,
        })
    }
}

/// Settings to change; those left out stay. After publishing, `face_value_minor`, `price_minor`,
/// `total_units`, `per_buyer_limit`, `opens_at` and `payment_window_s` are frozen.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = VoucherChange, example = json!({"title": "Lunch for two", "waitlist_capacity": 80}))]
#[serde(deny_unknown_fields)]
pub(super) struct AmendmentBody {
    #[serde(default, deserialize_with = "given")]
    #[schema(schema_with = text::title)]
    title: Option<String>,
    // Null or an empty one removes it.
    #[serde(default, deserialize_with = "text_or_none")]
    #[schema(schema_with = text::description)]
    description: Option<String>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, maximum = 1_000_000_000_000_u64, example = 10_000)]
    face_value_minor: Option<u64>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, maximum = 1_000_000_000_000_u64, example = 8_000)]
    price_minor: Option<u64>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, minimum = 1, maximum = 100_000_000, example = 100)]
    total_units: Option<u32>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000, example = 1)]
    per_buyer_limit: Option<u32>,
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    opens_at: Option<Instant>,
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    closes_at: Option<Instant>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, minimum = 1, maximum = 86_400, example = 900)]
    payment_window_s: Option<u32>,
    #[serde(default, deserialize_with = "whole_if_given")]
    #[schema(nullable = false, maximum = 1_000_000, example = 50)]
    waitlist_capacity: Option<u32>,
}

/// A field that is there has a value: null is not a way to leave a setting as it is.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A description that is not there any more is an empty one.
fn text_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(Some(text.unwrap_or_default()))
}

impl From<AmendmentBody> for Amendment {
    fn from(body: AmendmentBody) -> Self {
        Self {
            title: body.title,
            description: body.description,
            face_value_minor: body.face_value_minor,
            price_minor: body.price_minor,
            total_units: body.total_units,
            per_buyer_limit: body.per_buyer_limit,
            opens_at: body.opens_at.map(|at| at.0),
            closes_at: body.closes_at.map(|at| at.0),
            payment_window: body
                .payment_window_s
                .map(|seconds| Duration::from_secs(u64::from(seconds))),
            waitlist_capacity: body.waitlist_capacity,
        }
    }
}

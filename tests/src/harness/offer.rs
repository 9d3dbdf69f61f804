//! What an administrator puts on sale.

use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// A voucher to create.
#[derive(Debug, Clone)]
pub struct Offer {
    body: Value,
}

impl Offer {
    /// A sale of this many units that is open for an hour, one per buyer, no waitlist.
    pub fn of(units: u32) -> Self {
        Self {
            body: json!({
                "title": "Tea for two",
                "face_value_minor": 10_000,
                "price_minor": 8_000,
                "currency": "CNY",
                "total_units": units,
                "opens_at": in_ms(-5_000),
                "closes_at": in_ms(3_600_000),
            }),
        }
    }

    /// With any field set to any value.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.body[field] = value.into();
        self
    }

    /// Without a field.
    #[must_use]
    pub fn without(mut self, field: &str) -> Self {
        self.body.as_object_mut().expect("an object").remove(field);
        self
    }

    /// Units one buyer may have.
    #[must_use]
    pub fn limit(self, units: u32) -> Self {
        self.with("per_buyer_limit", units)
    }

    /// Buyers who may wait.
    #[must_use]
    pub fn waitlist(self, capacity: u32) -> Self {
        self.with("waitlist_capacity", capacity)
    }

    /// Seconds an order may stay unpaid.
    #[must_use]
    pub fn payment_window_s(self, seconds: u32) -> Self {
        self.with("payment_window_s", seconds)
    }

    /// Opens this many milliseconds from now.
    #[must_use]
    pub fn opens_in_ms(self, ms: i64) -> Self {
        self.with("opens_at", in_ms(ms))
    }

    /// Closes this many milliseconds from now.
    #[must_use]
    pub fn closes_in_ms(self, ms: i64) -> Self {
        self.with("closes_at", in_ms(ms))
    }

    /// The request's body.
    pub fn body(&self) -> &Value {
        &self.body
    }
}

/// RFC 3339, this many milliseconds from now.
pub fn in_ms(ms: i64) -> String {
    let at = OffsetDateTime::now_utc() + Duration::milliseconds(ms);
    at.format(&Rfc3339).expect("a date that can be written")
}

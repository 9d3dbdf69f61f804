//! What the tests put on sale.

use std::time::Duration;

use seckill_domain::{Money, SaleWindow, VoucherTerms};

use crate::world::{SALE, START};

pub(crate) const PRICE_MINOR: u64 = 8_000;

/// Settings of a sale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) units: u32,
    pub(crate) limit: u32,
    pub(crate) waitlist: u32,
    pub(crate) payment_window: Duration,
}

impl Offer {
    /// One unit per buyer, no waitlist, 15 minutes to pay.
    pub(crate) const fn of(units: u32) -> Self {
        Self {
            units,
            limit: 1,
            waitlist: 0,
            payment_window: Duration::from_mins(15),
        }
    }

    pub(crate) const fn waitlist(self, waitlist: u32) -> Self {
        Self { waitlist, ..self }
    }

    pub(crate) const fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    pub(crate) const fn payment_window(self, payment_window: Duration) -> Self {
        Self {
            payment_window,
            ..self
        }
    }
}

impl Offer {
    pub(crate) fn terms(self) -> VoucherTerms {
        VoucherTerms {
            title: "Hot pot for two".to_owned(),
            description: None,
            face_value: money(10_000),
            price: money(PRICE_MINOR),
            per_buyer_limit: self.limit,
            window: SaleWindow {
                opens_at: START,
                closes_at: START.plus(SALE),
            },
            payment_window: self.payment_window,
            waitlist_capacity: self.waitlist,
        }
    }
}

pub(crate) fn money(minor: u64) -> Money {
    Money {
        minor,
        currency: "CNY".parse().expect("a currency"),
    }
}

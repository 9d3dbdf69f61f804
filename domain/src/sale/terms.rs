//! What the gate goes by.

use crate::{Admission, Timestamp};

/// Where a voucher is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleStatus {
    /// Being prepared; nobody can see it.
    Draft,
    /// On sale within its window.
    Published,
    /// Purchases, joins and promotions are stopped for now.
    Paused,
    /// Over.
    Closed,
}

/// What the gate has to know about a voucher to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaleTerms {
    /// Where the voucher is in its life.
    pub status: SaleStatus,
    /// First instant of the sale.
    pub opens_at: Timestamp,
    /// First instant after the sale.
    pub closes_at: Timestamp,
    /// Most live units one buyer may have.
    pub per_buyer_limit: u32,
    /// Most buyers who may wait; 0 for no waitlist.
    pub waitlist_capacity: u32,
    /// Units the sale has in all.
    pub total_units: u32,
}

impl SaleTerms {
    /// Whether the sale is over at `now`, by hand or by the clock.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.status == SaleStatus::Closed || now >= self.closes_at
    }

    /// Why an attempt is turned away at `now` whatever the stock, if it is.
    pub fn refusal(&self, now: Timestamp) -> Option<Admission> {
        if self.is_over(now) {
            Some(Admission::Closed)
        } else if self.status != SaleStatus::Published {
            Some(Admission::Paused)
        } else if now < self.opens_at {
            Some(Admission::NotOpen {
                opens_at: self.opens_at,
            })
        } else {
            None
        }
    }
}

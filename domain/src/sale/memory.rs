//! What a sale remembers of its buyers.

use crate::{OrderId, PlaceAtFirst};

/// Units that a buyer holds under one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The order.
    pub order: OrderId,
    /// How many units.
    pub quantity: u32,
    /// Whether he waited for them.
    pub promoted: bool,
}

/// The first use of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The order it got.
    pub order: OrderId,
    /// The quantity it asked for: the fingerprint of the request.
    pub quantity: u32,
    /// What it was told.
    pub first: PlaceAtFirst,
}

//! How the gate follows the ledger.

use std::fmt;

use crate::{BuyerId, Claim, OrderId, SaleTerms, VoucherId};

/// How far the gate has followed the ledger on one voucher. Every ledger transaction that changes
/// the voucher's units or settings raises it by one; the gate applies each number once, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GateVersion(u64);

impl GateVersion {
    /// Wraps a stored number.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The bare number, for storage.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The version after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for GateVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Everything that one ledger transaction changed about one voucher, for the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateUpdate {
    /// Which voucher.
    pub voucher: VoucherId,
    /// The version the gate has once it has applied this.
    pub version: GateVersion,
    /// What changed, in order.
    pub changes: Vec<GateChange>,
}

/// One change for the gate to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateChange {
    /// An order gave its units back.
    Release {
        /// The order.
        order: OrderId,
        /// Who held them.
        buyer: BuyerId,
        /// How many.
        quantity: u32,
    },
    /// The ledger ended an order that waits: its place is given up. No unit moves, and nothing that
    /// the order holds by now.
    DropPlace {
        /// The order.
        order: OrderId,
        /// Who waits under it.
        buyer: BuyerId,
    },
    /// Units were added to the sale.
    AddUnits {
        /// How many.
        units: u32,
    },
    /// Status, window or waitlist capacity changed. `total_units` of the terms is not followed:
    /// units only move by [`GateChange::AddUnits`] and withdrawal.
    SetTerms(SaleTerms),
    /// Reconciliation: the ledger has this order live and the gate does not hold it. Put the holder
    /// back; free units are not touched, the order took its own long ago.
    RestoreHolder(Claim),
    /// Reconciliation: the gate holds this order and neither ledger nor stream has it. Append the
    /// grant again, if the gate still holds it.
    AppendAgain(Claim),
}

impl GateUpdate {
    /// Units that the ledger has given back or added and that the gate does not have until it has
    /// applied this.
    pub fn units_returned(&self) -> u32 {
        self.changes.iter().map(GateChange::units_returned).sum()
    }
}

impl GateChange {
    fn units_returned(&self) -> u32 {
        match self {
            Self::Release { quantity, .. } => *quantity,
            Self::AddUnits { units } => *units,
            Self::DropPlace { .. }
            | Self::SetTerms(_)
            | Self::RestoreHolder(_)
            | Self::AppendAgain(_) => 0,
        }
    }
}

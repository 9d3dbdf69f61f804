//! How many live units of a voucher one buyer has.

/// A buyer's live units of one voucher, and the most he may have. The last line of defence against
/// repeat purchases: the ledger keeps it as a row with a check constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    units: u32,
    limit: u32,
}

/// The change would leave the range 0 to limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a buyer's live units must stay between 0 and the limit of {limit}")]
pub struct HoldingRefused {
    /// The most live units the buyer may have.
    pub limit: u32,
}

impl Holding {
    /// A buyer who has nothing yet.
    pub const fn none(limit: u32) -> Self {
        Self { units: 0, limit }
    }

    /// Live units.
    pub const fn units(self) -> u32 {
        self.units
    }

    /// Units that may still be bought.
    pub const fn remaining(self) -> u32 {
        self.limit.saturating_sub(self.units)
    }

    /// Takes units on, or refuses and leaves the holding as it was.
    pub fn add(&mut self, units: u32) -> Result<(), HoldingRefused> {
        if units > self.remaining() {
            return Err(HoldingRefused { limit: self.limit });
        }
        self.units += units;
        Ok(())
    }

    /// Gives units back, or refuses and leaves the holding as it was.
    pub fn remove(&mut self, units: u32) -> Result<(), HoldingRefused> {
        self.units = self
            .units
            .checked_sub(units)
            .ok_or(HoldingRefused { limit: self.limit })?;
        Ok(())
    }
}

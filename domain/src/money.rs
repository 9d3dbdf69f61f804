//! Money in integer minor units.

use std::fmt;
use std::str::FromStr;

use crate::text::BadText;

/// An ISO 4217 alphabetic code, such as `CNY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The three letters.
    pub fn as_str(&self) -> &str {
        // The constructor admits ASCII only.
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Currency {
    type Err = BadText;

    fn from_str(text: &str) -> Result<Self, BadText> {
        match text.as_bytes() {
            &[a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(BadText("three upper-case letters, as in ISO 4217")),
        }
    }
}

/// An amount in minor units (cents, fen) of one currency; never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    /// Minor units.
    pub minor: u64,
    /// Of which currency.
    pub currency: Currency,
}

impl Money {
    /// This amount times a number of units; saturates.
    #[must_use]
    pub fn times(self, units: u32) -> Self {
        Self {
            minor: self.minor.saturating_mul(u64::from(units)),
            ..self
        }
    }
}

//! Short texts chosen by clients.

use std::fmt;
use std::str::FromStr;

/// A text that does not fit; holds what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {0}")]
pub struct BadText(pub &'static str);

macro_rules! visible_ascii {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadText;

            fn from_str(text: &str) -> Result<Self, BadText> {
                let fits = (1..=64).contains(&text.len())
                    && text.bytes().all(|b| b.is_ascii_graphic());
                if fits { Ok(Self(text.into())) } else {
                    Err(BadText("1 to 64 visible ASCII characters without spaces"))
                }
            }
        }
    };
}

visible_ascii!(
    /// The `Idempotency-Key` of a purchase, scoped to buyer and voucher.
    IdempotencyKey
);
visible_ascii!(
    /// The payment provider's id of a payment; the key that makes paying repeatable.
    PaymentId
);

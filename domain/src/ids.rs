//! Identifiers. Each is a private integer that prints as decimal digits and parses only from its
//! canonical form, because clients treat ids as opaque strings (64-bit numbers lose digits in
//! browsers and in Lua).

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// Text that is not the canonical decimal form of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical decimal id")]
pub struct BadId;

fn parse_canonical(text: &str, min: u64) -> Result<u64, BadId> {
    let leads_with_zero = text.starts_with('0') && text.len() > 1;
    if leads_with_zero || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadId);
    }
    let value: u64 = text.parse().map_err(|_| BadId)?;
    if value < min { Err(BadId) } else { Ok(value) }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident from $min:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number that is known to be such an id.
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The bare number, for storage.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                parse_canonical(text, $min).map(Self)
            }
        }
    };
}

id!(
    /// A voucher on offer, numbered by the ledger.
    VoucherId from 1
);
id!(
    /// An order, a place on the waitlist, or both in turn: a promoted order keeps its id.
    OrderId from 1
);
id!(
    /// A person who buys; the `sub` of a token, `user_id` on the wire. Numbered by somebody else,
    /// perhaps from 0.
    BuyerId from 0
);
id!(
    /// One change of a voucher's stock, numbered by the ledger.
    AdjustmentId from 1
);

/// A slice of the vouchers with its own admission stream; the unit of scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(u16);

impl PartitionId {
    /// Wraps a partition's number, counted from 0.
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// The bare number, for keys and rows.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How many partitions a deployment has. Fixed for its life: the number decides where a voucher's
/// keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions(NonZeroU16);

impl Partitions {
    /// A deployment of `count` partitions.
    pub const fn new(count: NonZeroU16) -> Self {
        Self(count)
    }

    /// How many there are.
    pub const fn count(self) -> u16 {
        self.0.get()
    }

    /// The partition of a voucher: its number modulo the count. The ledger numbers vouchers one
    /// after the other, so they spread evenly.
    pub const fn of(self, voucher: VoucherId) -> PartitionId {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the remainder is below a u16"
        )]
        PartitionId((voucher.get() % self.0.get() as u64) as u16)
    }

    /// Every partition, in order.
    pub fn all(self) -> impl Iterator<Item = PartitionId> {
        (0..self.0.get()).map(PartitionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_digits_are_ids() {
        assert_eq!("18446744073709551615".parse(), Ok(OrderId::new(u64::MAX)));
        for bad in [
            "",
            "0",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1e3",
            "18446744073709551616",
            "١",
        ] {
            assert_eq!(bad.parse::<OrderId>(), Err(BadId), "{bad:?}");
        }
        assert_eq!("0".parse(), Ok(BuyerId::new(0)), "not ours to number");
        assert_eq!("00".parse::<BuyerId>(), Err(BadId));
    }

    #[test]
    fn consecutive_vouchers_spread_over_the_partitions() {
        let partitions = Partitions::new(NonZeroU16::new(4).unwrap());
        let of: Vec<u16> = (1..=8)
            .map(|n| partitions.of(VoucherId::new(n)).get())
            .collect();
        assert_eq!(of, [1, 2, 3, 0, 1, 2, 3, 0]);
    }
}

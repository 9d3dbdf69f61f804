//! The numbers that order an admission stream and fence its writers.

use std::fmt;

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a stored number.
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// The bare number, for storage.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

counter!(
    /// The life of a partition's hot data. The ledger raises it whenever Redis is found to have
    /// lost something; what an earlier life still says is refused.
    Epoch
);
counter!(
    /// The number of a decision within its partition: rising by one, without a gap, across epochs.
    Sequence
);
counter!(
    /// The right to write a partition's decisions into the ledger. Each new holder of the lease
    /// draws a higher one from the ledger, and the ledger refuses all lower ones.
    Fence
);

/// How a stream entry continues what the ledger has applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// Starts with the very next decision.
    Next,
    /// Lies wholly within what was applied: a redelivery, if its content is the same.
    Replay,
    /// Neither: decisions are missing, or the stream has been here before. Redis went back.
    Broken,
}

impl Continuity {
    /// Judges an entry of `count` decisions that starts with `first` against the last applied
    /// decision.
    pub fn judge(applied: Sequence, first: Sequence, count: usize) -> Self {
        let last = first.get().saturating_add(count as u64).saturating_sub(1);
        if first == applied.next() {
            Self::Next
        } else if last <= applied.get() {
            Self::Replay
        } else {
            Self::Broken
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_next_or_a_whole_replay_continues() {
        let judge =
            |first, count| Continuity::judge(Sequence::new(10), Sequence::new(first), count);
        assert_eq!(judge(11, 5), Continuity::Next);
        assert_eq!(judge(6, 5), Continuity::Replay);
        assert_eq!(
            judge(7, 5),
            Continuity::Broken,
            "straddles the applied position"
        );
        assert_eq!(judge(12, 1), Continuity::Broken, "a gap");
    }
}

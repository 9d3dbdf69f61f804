//! Every key that exists. All keys of a partition share one hash tag, so that they are on one node
//! of a cluster and a script may use them together.

use std::fmt;

use seckill_domain::{Epoch, PartitionId, VoucherId};

/// The keys, by the names that the headers of the scripts use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyName {
    /// Epoch, sequence, applied sequence, size of the index.
    Meta,
    /// Index of the orders and adjustments that were decided lately.
    Decided,
    /// The admission stream of the epoch.
    Stream,
    /// The admission stream of the epoch before the next one.
    Previous,
    /// The admission stream of the next epoch.
    Next,
    /// A voucher's terms, free units, counts and version.
    Sale,
    /// Who holds units.
    Holders,
    /// Who waits, by ticket.
    Waiters,
    /// What those who wait want.
    Seats,
    /// First uses of idempotency keys.
    Uses,
    /// The mark that a voucher is being loaded.
    Loading,
    /// Holders that are being loaded.
    StagedHolders,
    /// Waiters that are being loaded.
    StagedWaiters,
    /// Seats that are being loaded.
    StagedSeats,
    /// First uses of keys that are being loaded.
    StagedUses,
    /// A lease.
    Lease,
    /// The registry of worker numbers.
    Workers,
    /// The daily counter of order ids.
    Counter,
    /// Orders by the end of their payment window.
    Delays,
    /// The gate's own name.
    Name,
    /// Written to see whether writes are taken.
    Probe,
}

impl KeyName {
    /// Its name in the headers of the scripts, and in the key itself.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Decided => "decided",
            Self::Stream => "stream",
            Self::Previous => "previous",
            Self::Next => "next",
            Self::Sale => "sale",
            Self::Holders => "holders",
            Self::Waiters => "waiters",
            Self::Seats => "seats",
            Self::Uses => "uses",
            Self::Loading => "loading",
            Self::StagedHolders => "staged_holders",
            Self::StagedWaiters => "staged_waiters",
            Self::StagedSeats => "staged_seats",
            Self::StagedUses => "staged_uses",
            Self::Lease => "lease",
            Self::Workers => "workers",
            Self::Counter => "counter",
            Self::Delays => "delays",
            Self::Name => "name",
            Self::Probe => "probe",
        }
    }
}

/// What a script works on: enough to build each of its keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) partition: PartitionId,
    pub(crate) voucher: VoucherId,
    pub(crate) epoch: Epoch,
    /// The epoch to begin.
    pub(crate) next: Epoch,
    /// The name of a lease.
    pub(crate) lease: &'a str,
}

impl<'a> Address<'a> {
    /// Keys that belong to no partition.
    pub(crate) fn of_namespace(namespace: &'a str) -> Self {
        Self {
            namespace,
            partition: PartitionId::new(0),
            voucher: VoucherId::new(0),
            epoch: Epoch::new(0),
            next: Epoch::new(0),
            lease: "",
        }
    }

    /// A key, to be written into a command.
    pub(crate) fn key(self, name: KeyName) -> Key<'a> {
        Key {
            address: self,
            name,
        }
    }
}

/// What processes publish on: channels are no keys, but live in the same namespace. They know no
/// database numbers, so whoever listens must bear what is not meant for him.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// An order was scheduled that is due before all others.
    Wakes,
    /// Something happened to orders.
    Notices,
}

impl Channel {
    /// Its name.
    pub(crate) fn of_namespace(self, namespace: &str) -> String {
        match self {
            Self::Wakes => format!("{namespace}:delays:wakes"),
            Self::Notices => format!("{namespace}:notices"),
        }
    }
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    address: Address<'a>,
    name: KeyName,
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address {
            namespace,
            partition,
            voucher,
            epoch,
            next,
            lease,
        } = self.address;
        let stream = |f: &mut fmt::Formatter<'_>, epoch: u64| {
            write!(f, "{{{namespace}:p{partition}}}:stream:{epoch}")
        };
        let word = self.name.word();
        match self.name {
            KeyName::Stream => stream(f, epoch.get()),
            KeyName::Previous => stream(f, next.get().saturating_sub(1)),
            KeyName::Next => stream(f, next.get()),
            KeyName::Meta | KeyName::Decided => {
                write!(f, "{{{namespace}:p{partition}}}:{word}")
            }
            KeyName::Delays | KeyName::Name | KeyName::Probe => write!(f, "{namespace}:{word}"),
            KeyName::Lease => write!(f, "{namespace}:lease:{lease}"),
            KeyName::Workers | KeyName::Counter => write!(f, "{namespace}:order_ids:{word}"),
            KeyName::Sale
            | KeyName::Holders
            | KeyName::Waiters
            | KeyName::Seats
            | KeyName::Uses
            | KeyName::Loading
            | KeyName::StagedHolders
            | KeyName::StagedWaiters
            | KeyName::StagedSeats
            | KeyName::StagedUses => {
                write!(f, "{{{namespace}:p{partition}}}:v{voucher}:{word}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_partition_share_its_hash_tag() {
        let address = Address {
            partition: PartitionId::new(3),
            voucher: VoucherId::new(42),
            epoch: Epoch::new(7),
            next: Epoch::new(9),
            lease: "writer:3",
            ..Address::of_namespace("shop")
        };
        let text = |name| address.key(name).to_string();
        assert_eq!(text(KeyName::Meta), "{shop:p3}:meta");
        assert_eq!(text(KeyName::Stream), "{shop:p3}:stream:7");
        assert_eq!(text(KeyName::Previous), "{shop:p3}:stream:8");
        assert_eq!(text(KeyName::Next), "{shop:p3}:stream:9");
        assert_eq!(text(KeyName::StagedSeats), "{shop:p3}:v42:staged_seats");
        assert_eq!(text(KeyName::Lease), "shop:lease:writer:3");
        assert_eq!(text(KeyName::Workers), "shop:order_ids:workers");
        assert_eq!(text(KeyName::Delays), "shop:delays");
        assert_eq!(text(KeyName::Name), "shop:name");
        assert_eq!(Channel::Notices.of_namespace("shop"), "shop:notices");
    }
}

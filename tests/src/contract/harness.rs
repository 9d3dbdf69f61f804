//! What a suite needs of an adapter beside its ports.

use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::{HotPath, LedgerPorts};
use seckill_domain::{PartitionId, Partitions, Timestamp, VoucherId};

/// Partitions of every hot store and ledger under contract.
pub const PARTITIONS: u16 = 2;
/// How many decisions the ledger may be behind at every gate under contract.
pub const BACKLOG_LIMIT: u64 = 1_000;

/// Something done to a hot store behind the ports' back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// All data is gone.
    Wipe,
    /// One piece is gone.
    Lose {
        /// Of which voucher, or of whose partition.
        voucher: VoucherId,
        /// As named by [`HotHarness::pieces`].
        piece: String,
    },
    /// The consumer group of a partition's stream is gone.
    LoseGroup(PartitionId),
    /// A partition's stream is gone, with its consumer group.
    LoseStream(PartitionId),
    /// Somebody else appended an entry with these fields.
    PlantEntry {
        /// To which partition's stream.
        partition: PartitionId,
        /// Names and values.
        fields: Vec<(String, String)>,
    },
    /// More units are free than there are.
    PlantUnits {
        /// Of which voucher.
        voucher: VoucherId,
        /// How many more.
        units: u32,
    },
}

/// An empty hot store of [`PARTITIONS`] partitions with a backlog limit of [`BACKLOG_LIMIT`].
#[async_trait]
pub trait HotHarness: Send + Sync {
    /// The ports of a process.
    fn hot(&self) -> &HotPath;

    /// The ports of one more process over the same store.
    async fn another_process(&self) -> HotPath;

    /// The gate's clock.
    async fn gate_time(&self) -> Timestamp;

    /// Lets this much time go by, for the gate, the leases and whoever waits. Promises keep it
    /// short: for real adapters it is real.
    async fn elapse(&self, time: Duration);

    /// Does harm.
    async fn harm(&self, harm: Harm);

    /// Names of all pieces of a voucher and its partition that may be lost one by one: in Redis, the
    /// keys that are there.
    async fn pieces(&self, voucher: VoucherId) -> Vec<String>;

    /// The partitions.
    fn partitions(&self) -> Partitions {
        Partitions::new(std::num::NonZeroU16::new(PARTITIONS).expect("not zero"))
    }
}

/// An empty ledger.
#[async_trait]
pub trait LedgerHarness: Send + Sync {
    /// The ports of a process.
    fn ledger(&self) -> &LedgerPorts;

    /// The ports of one more process over the same ledger.
    async fn another_process(&self) -> LedgerPorts;

    /// Lets this much time go by on the ledger's clock. For real adapters it is real.
    async fn elapse(&self, time: Duration);

    /// The partitions of the deployment.
    fn partitions(&self) -> Partitions {
        Partitions::new(std::num::NonZeroU16::new(PARTITIONS).expect("not zero"))
    }
}

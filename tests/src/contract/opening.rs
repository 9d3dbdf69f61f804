//! Sales to open at a gate.

use std::time::Duration;

use seckill_application::ports::{
    EpochBegun, Holder, HotPath, KeyUse, LoadBegun, LoadChunk, LoadStep, LoadToken, OpenSale,
    Opened, PartitionState,
};
use seckill_domain::{
    BuyerId, Epoch, GateVersion, Held, OrderId, Partitions, PlaceAtFirst, Remembered, SaleStatus,
    SaleTerms, Seat, Sequence, Ticket, Timestamp, VoucherId,
};

use super::HotHarness;
use super::stall::Stall;

/// The voucher on sale unless another is named. Its digits do not survive a double.
pub(super) const VOUCHER: VoucherId = VoucherId::new(9_007_199_254_740_993);
/// The first life of a partition.
pub(super) const FIRST_EPOCH: Epoch = Epoch::new(1);
/// A token's life that no promise outlives.
pub(super) const LONG: Duration = Duration::from_mins(2);

const HOUR_MS: i64 = 3_600_000;

/// A sale to open. Unless told otherwise: on sale since an hour ago, one unit per buyer, no
/// waitlist, nobody in it, version 0.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    voucher: VoucherId,
    free: u32,
    total: u32,
    limit: u32,
    waitlist: u32,
    status: SaleStatus,
    window: Option<(Timestamp, Timestamp)>,
    version: GateVersion,
    chunk: LoadChunk,
}

impl Opening {
    /// A sale of so many free units.
    pub(super) fn of(units: u32) -> Self {
        Self {
            voucher: VOUCHER,
            free: units,
            total: units,
            limit: 1,
            waitlist: 0,
            status: SaleStatus::Published,
            window: None,
            version: GateVersion::default(),
            chunk: LoadChunk::default(),
        }
    }

    pub(super) fn voucher(self, voucher: VoucherId) -> Self {
        Self { voucher, ..self }
    }

    pub(super) fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    pub(super) fn waitlist(self, waitlist: u32) -> Self {
        Self { waitlist, ..self }
    }

    pub(super) fn status(self, status: SaleStatus) -> Self {
        Self { status, ..self }
    }

    pub(super) fn window(self, opens_at: Timestamp, closes_at: Timestamp) -> Self {
        let window = Some((opens_at, closes_at));
        Self { window, ..self }
    }

    pub(super) fn version(self, version: u64) -> Self {
        let version = GateVersion::new(version);
        Self { version, ..self }
    }

    /// With a holder, whose units are not among the free ones.
    pub(super) fn holder(mut self, buyer: BuyerId, order: OrderId, quantity: u32) -> Self {
        let held = Held {
            order,
            quantity,
            promoted: false,
        };
        self.total += quantity;
        self.chunk.holders.push(Holder { buyer, held });
        self
    }

    /// With a buyer who waits.
    pub(super) fn seat(mut self, ticket: u64, buyer: BuyerId, order: OrderId, units: u32) -> Self {
        self.chunk.seats.push(Seat {
            ticket: Ticket::new(ticket),
            order,
            buyer,
            quantity: units,
            key: None,
        });
        self
    }

    /// With a key that was used.
    pub(super) fn key(mut self, buyer: BuyerId, key: &str, order: OrderId, quantity: u32) -> Self {
        let first = Remembered {
            order,
            quantity,
            first: PlaceAtFirst::Granted,
        };
        let key = key.parse().expect("a key");
        self.chunk.keys.push(KeyUse { buyer, key, first });
        self
    }

    /// Who is in it.
    pub(super) fn chunk(&self) -> &LoadChunk {
        &self.chunk
    }

    /// What the gate is told, `applied` being the last decision the snapshot contains.
    pub(super) fn open_sale(&self, now: Timestamp, applied: Sequence) -> OpenSale {
        let (opens_at, closes_at) = self.window.unwrap_or((
            Timestamp::from_millis(now.as_millis() - HOUR_MS),
            Timestamp::from_millis(now.as_millis() + HOUR_MS),
        ));
        OpenSale {
            terms: SaleTerms {
                status: self.status,
                opens_at,
                closes_at,
                per_buyer_limit: self.limit,
                waitlist_capacity: self.waitlist,
                total_units: self.total,
            },
            free: self.free,
            version: self.version,
            applied,
        }
    }

    /// Begins the partition if it is new, and loads and opens the sale.
    pub(super) async fn open<H: HotHarness + ?Sized>(self, harness: &H) -> Stall {
        let now = harness.gate_time().await;
        self.open_at(harness.hot(), harness.partitions(), now).await
    }

    /// The same in any hot store, whose time it is.
    pub(super) async fn open_at(
        self,
        hot: &HotPath,
        partitions: Partitions,
        now: Timestamp,
    ) -> Stall {
        let hot = hot.clone();
        let (epoch, _) = begin_partition(&hot, partitions, self.voucher).await;
        let token = LoadToken(format!("opening-{}", self.voucher));
        let begun = hot
            .loader
            .begin_load(self.voucher, &token, LONG)
            .await
            .unwrap();
        let LoadBegun::Begun { sequence, .. } = begun else {
            panic!("cannot begin to load: {begun:?}");
        };
        let loaded = hot
            .loader
            .load(self.voucher, &token, &self.chunk, 0)
            .await
            .unwrap();
        assert!(matches!(loaded, LoadStep::Done(_)), "{loaded:?}");
        let sale = self.open_sale(now, sequence);
        let opened = hot
            .loader
            .open(self.voucher, &token, &sale, 1)
            .await
            .unwrap();
        assert_eq!(opened, Opened::Opened);
        Stall::new(hot, partitions, self.voucher, epoch, sale)
    }
}

/// Begins a voucher's partition if it is new. Returns its epoch and last decision.
pub(super) async fn begin_partition(
    hot: &HotPath,
    partitions: Partitions,
    voucher: VoucherId,
) -> (Epoch, Sequence) {
    let partition = partitions.of(voucher);
    match hot.loader.partition(partition).await.unwrap() {
        PartitionState::Open {
            epoch, sequence, ..
        } => (epoch, sequence),
        PartitionState::Missing => {
            let start = Sequence::default();
            let begun = hot
                .loader
                .begin_epoch(partition, FIRST_EPOCH, start)
                .await
                .unwrap();
            assert_eq!(begun, EpochBegun::Begun);
            (FIRST_EPOCH, start)
        }
    }
}

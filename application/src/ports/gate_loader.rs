//! Loading and rebuilding the gate: one protocol for publishing, a cold start, eviction, a wiped or
//! older Redis, a deleted key and a failover.
//!
//! 1. If the partition is missing or went back: draw a new epoch from the ledger, then
//!    [`GateLoader::begin_epoch`].
//! 2. [`GateLoader::begin_load`] marks the voucher as loading, under a token that expires.
//! 3. Read the [`GateLoader::survivors`]: what the gate still holds. What is in neither ledger nor
//!    stream is appended again ([`GateLoader::append_again`]). Meanwhile processes
//!    [`GateLoader::offer`] the grants and places that they answered and that the ledger does not
//!    have.
//! 4. Wait until the ledger has applied the last of it.
//! 5. Read one snapshot of the ledger, [`GateLoader::load`] it in chunks, and
//!    [`GateLoader::open`].

use std::time::Duration;

use async_trait::async_trait;
use seckill_domain::{
    BuyerId, Claim, Epoch, GateVersion, Held, IdempotencyKey, PartitionId, Remembered, SaleTerms,
    Seat, Sequence, VoucherId,
};

use crate::Fault;

/// Most claims, holders, seats or keys of one call of the loading protocol.
pub const LOAD_CHUNK_MAX: usize = 1_000;

/// The right to load one voucher; random, so that no two loaders ever share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadToken(pub String);

/// A partition's hot data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionState {
    /// Something essential is gone: the epoch and sequence, the stream, or its consumer group.
    Missing,
    /// It is there.
    Open {
        /// Its life.
        epoch: Epoch,
        /// Its last decision.
        sequence: Sequence,
        /// The last decision that was acknowledged as applied.
        applied: Sequence,
    },
}

/// Reply to beginning an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochBegun {
    /// The partition now lives in this epoch. Every voucher in it has to be loaded.
    Begun,
    /// It lives in this epoch or a later one already; nothing changed.
    NotNewer(Epoch),
}

/// Reply to beginning to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBegun {
    /// The voucher is marked as loading; nothing is admitted until it is opened.
    Begun {
        /// The partition's life.
        epoch: Epoch,
        /// The partition's last decision: none of this voucher follows but what is appended again.
        sequence: Sequence,
    },
    /// Another loader's token is alive.
    Busy,
    /// The partition has to be begun first.
    PartitionMissing,
}

/// Reply to a step of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadStep {
    /// Done. For claims that were appended: the partition's last decision now.
    Done(Sequence),
    /// The token expired, the epoch changed, or a chunk before this one is missing; start again.
    NotMine,
}

/// What is left of a voucher at the gate, a page at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivors {
    /// Who holds units.
    pub holders: Vec<Claim>,
    /// Who waits, in no particular order.
    pub seats: Vec<Seat>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<u64>,
}

/// A holder to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub buyer: BuyerId,
    /// What.
    pub held: Held,
}

/// The first use of a key, to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// Whose key.
    pub buyer: BuyerId,
    /// The key.
    pub key: IdempotencyKey,
    /// Its first use.
    pub first: Remembered,
}

/// A part of a sale to load; at most [`LOAD_CHUNK_MAX`] of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadChunk {
    /// Who holds units.
    pub holders: Vec<Holder>,
    /// Who waits.
    pub seats: Vec<Seat>,
    /// Which keys were used.
    pub keys: Vec<KeyUse>,
}

/// What opens a sale after loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSale {
    /// What the gate goes by.
    pub terms: SaleTerms,
    /// Units nobody has, of the snapshot.
    pub free: u32,
    /// The version of the snapshot.
    pub version: GateVersion,
    /// The last decision that the snapshot contains.
    pub applied: Sequence,
}

/// Reply to opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The sale is at the gate.
    Opened,
    /// The token expired, the epoch changed, or chunks are missing; start again.
    NotMine,
    /// Something was appended for this voucher after the snapshot: wait for this decision, and take
    /// another snapshot.
    Behind(Sequence),
}

/// Reply to offering what a process remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Each is on the stream now: as a grant or a place if there was room, or the voucher is being
    /// loaded; else as lost. Orders that the gate knows are left as they are.
    Taken,
    /// The partition has to be begun first; nothing changed.
    PartitionMissing,
    /// The voucher is neither loading nor open; nothing changed.
    NotLoaded,
}

/// The loading protocol. Every method is one atomic step and may be repeated.
#[async_trait]
pub trait GateLoader: Send + Sync {
    /// A partition's hot data.
    async fn partition(&self, partition: PartitionId) -> Result<PartitionState, Fault>;

    /// Starts a new life of a partition: an empty stream with its consumer group at the start, the
    /// index of decided orders emptied, the sequence going on from `applied`. Only for an epoch
    /// higher than the one in place. Vouchers stay as they are and count as not loaded.
    async fn begin_epoch(
        &self,
        partition: PartitionId,
        epoch: Epoch,
        applied: Sequence,
    ) -> Result<EpochBegun, Fault>;

    /// Marks a voucher as loading for `ttl`. The token of a loader that is gone expires; one that
    /// calls again with its own token gets the full `ttl` again.
    async fn begin_load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        ttl: Duration,
    ) -> Result<LoadBegun, Fault>;

    /// What the gate still holds of a voucher, from `cursor` (0 at first), about
    /// [`LOAD_CHUNK_MAX`] at a time. Only stable while it is loading.
    async fn survivors(&self, voucher: VoucherId, cursor: u64) -> Result<Survivors, Fault>;

    /// Appends holders and seats again to the stream, as granted and joined, the seats with the
    /// turns they had. For claims found in neither ledger nor stream. Claims that were decided by an
    /// entry which stands in the stream are skipped.
    async fn append_again(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        holders: &[Claim],
        seats: &[Seat],
    ) -> Result<LoadStep, Fault>;

    /// Loads a part of the snapshot, beside what is there: the chunk at this place, counted from 0.
    /// The first one clears what an earlier attempt loaded; one that follows on a chunk that is
    /// missing, because a failover lost it, is refused.
    async fn load(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        chunk: &LoadChunk,
        place: usize,
    ) -> Result<LoadStep, Fault>;

    /// Puts what was loaded in place of what was there and admits buyers again, if it was loaded in
    /// so many chunks: a failover may lose the last of them and keep the token.
    async fn open(
        &self,
        voucher: VoucherId,
        token: &LoadToken,
        sale: &OpenSale,
        chunks: usize,
    ) -> Result<Opened, Fault>;

    /// Gives the voucher up for now: the next loader may begin at once. Nothing if not its own.
    async fn abandon(&self, voucher: VoucherId, token: &LoadToken) -> Result<(), Fault>;

    /// Closes the gate of a voucher whose hot data is known to be wrong, until it is loaded again.
    async fn unload(&self, voucher: VoucherId) -> Result<(), Fault>;

    /// Offers grants and places that a process answered and that may be lost. Each is left as it is
    /// if the gate knows the order. A grant is taken while the voucher is loading, or if free stock
    /// and the buyer's limit allow; a place is taken, with the turn it had, while the voucher is
    /// loading, or if the buyer neither waits nor would get more than he may and the list has room.
    /// What is not taken is recorded as lost, and the buyer's key remembered for it. At most [`LOAD_CHUNK_MAX`] of each, of one voucher.
    async fn offer(
        &self,
        voucher: VoucherId,
        claims: &[Claim],
        seats: &[Seat],
    ) -> Result<Offered, Fault>;

    /// Records as lost what a process answered about a sale that has left the gate for good, except
    /// what was decided by an entry that stands in the stream. At most [`LOAD_CHUNK_MAX`], of one voucher.
    async fn lose(&self, voucher: VoucherId, claims: &[Claim]) -> Result<Offered, Fault>;
}

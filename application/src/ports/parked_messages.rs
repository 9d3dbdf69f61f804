//! Messages that could not be applied, and wait for an administrator.

use async_trait::async_trait;
use seckill_domain::{Claim, PartitionId, Timestamp, VoucherId};

use super::{EntryId, Page, ParkReason};
use crate::Fault;

/// A parked message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedMessage {
    /// Its number.
    pub id: u64,
    /// Where it came from.
    pub partition: PartitionId,
    /// The entry it came in.
    pub entry: EntryId,
    /// Of which voucher, if that could be read.
    pub voucher: Option<VoucherId>,
    /// Units of the ledger's stock that it holds until it is settled. None while its voucher is not in
    /// the ledger; once it is, those that the gate took.
    pub units: u32,
    /// The order that it is about, as it has it; `None` if it is about none, or could not be read.
    pub claim: Option<Claim>,
    /// What it says.
    pub raw: String,
    /// Why it was parked.
    pub reason: ParkReason,
    /// Details, in words.
    pub detail: String,
    /// Where it is.
    pub state: ParkedState,
    /// When it was parked.
    pub parked_at: Timestamp,
}

/// Where a parked message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParkedState {
    /// It waits.
    Parked,
    /// It was applied after all.
    Replayed,
    /// It was given up, for this reason.
    Discarded(String),
}

/// Reply to settling a parked message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkedReply {
    /// It is settled, now or by an earlier call of the same kind.
    Settled,
    /// There is none of this number.
    NotFound,
    /// It was settled the other way.
    Conflict,
    /// It cannot be applied still; it stays parked.
    StillUnfit(ParkReason),
}

/// The parked messages of the ledger.
#[async_trait]
pub trait ParkedMessages: Send + Sync {
    /// Messages, newest first, those before `before`, at most `limit` (1 to 100); only those that
    /// still wait if `waiting`.
    async fn list(
        &self,
        waiting: bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<ParkedMessage>, Fault>;

    /// Applies a message's decision in one transaction, as
    /// [`AdmissionLedger::apply`](super::AdmissionLedger::apply) would, with the units it holds:
    /// events included, the payment window begins now. The buyer's limit still counts: what stock,
    /// limit or the order as it is by now refuse is [`ParkReason::BadValues`]. Repeatable.
    async fn replay(&self, id: u64) -> Result<ParkedReply, Fault>;

    /// Gives a message up: the units it holds return to the stock, and the gate is told to release
    /// just as many, or to drop the place. The order of its claim is rejected (`discarded`), written
    /// first if the ledger has none and can have one; if it has come to live in another way it stays
    /// as it is, and so does the gate. A withdrawal's adjustment is refused and its units are added
    /// again. One transaction, with its events. Repeatable, whatever the reason.
    async fn discard(&self, id: u64, reason: &str) -> Result<ParkedReply, Fault>;
}

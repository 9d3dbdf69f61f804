//! Messages that could not be applied, and wait for an administrator.

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    EntryId, Page, ParkReason, ParkedMessage, ParkedMessages, ParkedReply, ParkedState,
};
use seckill_domain::{Decision, Epoch, PartitionId, Sequence, VoucherId};
use sqlx::mysql::MySqlRow;

use crate::fault::{Trouble, at_most};
use crate::page::{highest, page};
use crate::row::{get, get_time, need, words};
use crate::session::statement;
use crate::store::Store;
use crate::wire::{self, Parked};

mod discard;
mod replay;
mod settle;

const MESSAGES_MAX: usize = 100;

words!(
    /// The word for why a message was parked.
    park_word, read_park, ParkReason {
        Unreadable = "unreadable",
        UnknownVoucher = "unknown_voucher",
        BadValues = "bad_values",
    }
);

/// The columns of a parked message and their table, for [`row`].
macro_rules! select_parked {
    () => {
        "SELECT p.id, p.partition_id, p.epoch, p.seq, p.entry_ms, p.entry_no, p.voucher_id, \
         p.units, p.unheld_units, \
         EXISTS (SELECT 1 FROM voucher_stock s WHERE s.voucher_id = p.voucher_id) AS has_stock, \
         p.payload, p.reason, p.state, p.discarded_because, p.created_at \
         FROM parked_messages p "
    };
}
use select_parked;

/// A stored message, with what settling it needs.
struct Row {
    message: ParkedMessage,
    epoch: Epoch,
    sequence: Sequence,
    /// What was taken out of the stock for it.
    held: u32,
    /// What the gate took for it while the ledger had no stock of its voucher.
    unheld: u32,
    /// `None` for an entry that could not be read, unless it names one.
    decision: Option<Decision>,
}

fn row(row: &MySqlRow) -> Result<Row, Trouble> {
    let payload: String = get(row, "payload")?;
    let reason = read_park(get(row, "reason")?)?;
    let (decision, raw, detail) = match wire::read_parked(&payload)? {
        Parked::Entry(body) => (body.named, body.raw, body.reason),
        Parked::Decision(decision) => {
            let detail = detail(reason, &decision).to_owned();
            (Some(decision), payload, detail)
        }
    };
    let (held, unheld): (u32, u32) = (get(row, "units")?, get(row, "unheld_units")?);
    let message = ParkedMessage {
        id: get(row, "id")?,
        partition: PartitionId::new(get(row, "partition_id")?),
        entry: EntryId {
            millis: get(row, "entry_ms")?,
            counter: get(row, "entry_no")?,
        },
        voucher: get::<Option<u64>>(row, "voucher_id")?.map(VoucherId::new),
        units: held + if get(row, "has_stock")? { unheld } else { 0 },
        claim: decision.as_ref().and_then(Decision::claim).cloned(),
        raw,
        reason,
        detail,
        state: state(row)?,
        parked_at: get_time(row, "created_at")?,
    };
    Ok(Row {
        message,
        epoch: Epoch::new(get(row, "epoch")?),
        sequence: Sequence::new(get(row, "seq")?),
        held,
        unheld,
        decision,
    })
}

fn state(row: &MySqlRow) -> Result<ParkedState, Trouble> {
    Ok(match get(row, "state")? {
        "parked" => ParkedState::Parked,
        "replayed" => ParkedState::Replayed,
        "discarded" => {
            let because: Option<String> = get(row, "discarded_because")?;
            ParkedState::Discarded(need(because, "discarded_because")?)
        }
        other => return Err(Trouble::broken(format!("{other:?} is no ParkedState"))),
    })
}

/// What is wrong with a decision, in words.
fn detail(reason: ParkReason, decision: &Decision) -> &'static str {
    match (reason, decision) {
        (ParkReason::UnknownVoucher, _) => "its voucher is not in the ledger, or a draft",
        (ParkReason::BadValues, Decision::Withdrawn { .. }) => {
            "no such adjustment of so many units"
        }
        (ParkReason::BadValues, _) => {
            "no units, not what its order says, or values that the database refuses"
        }
        (ParkReason::Unreadable, _) => "it could not be read",
    }
}

#[async_trait]
impl ParkedMessages for Store {
    async fn list(
        &self,
        waiting: bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<ParkedMessage>, Fault> {
        const PORT: &str = "parked_messages.list";
        const ALL: &str = concat!(
            select_parked!(),
            "WHERE p.id <= ? ORDER BY p.id DESC LIMIT ?"
        );
        const WAITING: &str = concat!(
            select_parked!(),
            "WHERE p.state = 'parked' AND p.id <= ? ORDER BY p.id DESC LIMIT ?"
        );
        at_most(PORT, limit, MESSAGES_MAX)?;
        let sql = if waiting { WAITING } else { ALL };
        let read = || statement(sql).bind(highest(before)).bind(limit as u64 + 1);
        let rows = self.read(PORT, read).await?;
        let message = |found: &MySqlRow| row(found).map(|row| row.message);
        page(PORT, &rows, limit, message, |message| message.id)
    }

    async fn replay(&self, id: u64) -> Result<ParkedReply, Fault> {
        replay::replay(self, id).await
    }

    async fn discard(&self, id: u64, reason: &str) -> Result<ParkedReply, Fault> {
        discard::discard(self, id, reason).await
    }
}

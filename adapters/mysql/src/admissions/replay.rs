//! Telling a redelivered decision from another one with the same number.

use std::collections::{BTreeSet, HashMap, HashSet};

use seckill_application::Fault;
use seckill_application::ports::BatchItem;
use seckill_domain::{
    AdjustmentId, Claim, Decision, OrderId, OrderStatus, PartitionId, RejectReason, Sequence,
};
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;
use crate::json_rows::{json_ids, wanted_ids};
use crate::row::{self, get};
use crate::session::statement;
use crate::store::Store;

const PORT: &str = "admissions.has_applied";

/// An order, and the numbers of the last decisions about its place and about its units. An earlier one
/// said the same, or the order would not be what it is: a grant that was appended again, say.
struct Trace {
    buyer: u64,
    voucher: u64,
    quantity: u32,
    status: OrderStatus,
    reason: Option<RejectReason>,
    joined: Option<u64>,
    settled: Option<u64>,
}

/// What the ledger remembers of some decisions.
#[derive(Default)]
struct Memory {
    orders: HashMap<OrderId, Trace>,
    adjustments: HashMap<AdjustmentId, u64>,
    /// Number, voucher and order of parked decisions.
    parked: HashSet<(u64, u64, Option<u64>)>,
}

pub(super) async fn has_applied(
    store: &Store,
    partition: PartitionId,
    items: &[BatchItem],
) -> Result<bool, Fault> {
    let memory = remember(store, partition, items).await?;
    Ok(decisions(items).all(|(sequence, decision)| memory.has(sequence, decision)))
}

fn decisions(items: &[BatchItem]) -> impl Iterator<Item = (Sequence, &Decision)> {
    items.iter().filter_map(|item| match item {
        BatchItem::Decision {
            sequence, decision, ..
        } => Some((*sequence, decision)),
        BatchItem::Unreadable { .. } => None,
    })
}

async fn remember(
    store: &Store,
    partition: PartitionId,
    items: &[BatchItem],
) -> Result<Memory, Fault> {
    const ORDERS: &str = concat!(
        "SELECT o.id, o.voucher_id, o.user_id, o.quantity, o.status, o.reason, o.joined_seq, \
           o.settled_seq FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN orders o ON o.id = wanted.id"
    );
    const ADJUSTMENTS: &str = concat!(
        "SELECT a.id, a.settled_seq FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN stock_adjustments a ON a.id = wanted.id WHERE a.settled_seq IS NOT NULL"
    );
    const PARKED: &str = concat!(
        "SELECT p.seq, p.voucher_id, p.order_id FROM ",
        wanted_ids!(),
        "STRAIGHT_JOIN parked_messages p ON p.seq = wanted.id AND p.partition_id = ?"
    );
    let orders = ids(items, |decision| Some(decision.claim()?.order.get()));
    let adjustments = ids(items, |decision| match decision {
        Decision::Withdrawn { adjustment, .. } => Some(adjustment.get()),
        _ => None,
    });
    let sequences = json_ids(decisions(items).map(|(sequence, _)| sequence.get()));
    let mut memory = Memory::default();
    for row in store.read(PORT, || statement(ORDERS).bind(&orders)).await? {
        let (id, trace) = trace(&row).map_err(fault)?;
        memory.orders.insert(id, trace);
    }
    for row in store
        .read(PORT, || statement(ADJUSTMENTS).bind(&adjustments))
        .await?
    {
        let id = AdjustmentId::new(get(&row, "id").map_err(fault)?);
        let settled = get(&row, "settled_seq").map_err(fault)?;
        memory.adjustments.insert(id, settled);
    }
    let read = || statement(PARKED).bind(&sequences).bind(partition.get());
    for row in store.read(PORT, read).await? {
        memory.parked.insert(parked(&row).map_err(fault)?);
    }
    Ok(memory)
}

fn fault(trouble: Trouble) -> Fault {
    trouble.before_commit(PORT)
}

fn ids(items: &[BatchItem], id: impl Fn(&Decision) -> Option<u64>) -> String {
    let ids: BTreeSet<u64> = decisions(items)
        .filter_map(|(_, decision)| id(decision))
        .collect();
    json_ids(ids.into_iter())
}

fn trace(row: &MySqlRow) -> Result<(OrderId, Trace), Trouble> {
    let reason: Option<&str> = get(row, "reason")?;
    let trace = Trace {
        buyer: get(row, "user_id")?,
        voucher: get(row, "voucher_id")?,
        quantity: get(row, "quantity")?,
        status: row::read_status(get(row, "status")?)?,
        reason: reason.map(row::read_reason).transpose()?,
        joined: get(row, "joined_seq")?,
        settled: get(row, "settled_seq")?,
    };
    Ok((OrderId::new(get(row, "id")?), trace))
}

fn parked(row: &MySqlRow) -> Result<(u64, u64, Option<u64>), Trouble> {
    let voucher: Option<u64> = get(row, "voucher_id")?;
    let order = get(row, "order_id")?;
    Ok((get(row, "seq")?, voucher.unwrap_or(0), order))
}

impl Memory {
    fn has(&self, sequence: Sequence, decision: &Decision) -> bool {
        let number = sequence.get();
        let order = decision.claim().map(|claim| claim.order.get());
        if self
            .parked
            .contains(&(number, decision.voucher().get(), order))
        {
            return true;
        }
        match decision {
            Decision::Withdrawn { adjustment, .. } => {
                self.adjustments.get(adjustment) == Some(&number)
            }
            Decision::Joined { claim, .. } => self
                .trace(claim)
                .is_some_and(|trace| trace.joined >= Some(number)),
            Decision::Granted(claim) | Decision::Promoted(claim) => self
                .settled(claim, number)
                .is_some_and(Trace::was_given_units),
            Decision::Left { claim, .. } => self
                .settled(claim, number)
                .is_some_and(|trace| !trace.status.is_live()),
            Decision::Lost(claim) => self.settled(claim, number).is_some(),
        }
    }

    fn trace(&self, claim: &Claim) -> Option<&Trace> {
        self.orders.get(&claim.order).filter(|trace| {
            trace.buyer == claim.buyer.get()
                && trace.voucher == claim.voucher.get()
                && trace.quantity == claim.quantity
        })
    }

    fn settled(&self, claim: &Claim, number: u64) -> Option<&Trace> {
        self.trace(claim)
            .filter(|trace| trace.settled >= Some(number))
    }
}

impl Trace {
    /// Whether the order was settled by a grant: it has or had units, or was refused them.
    fn was_given_units(&self) -> bool {
        match self.status {
            OrderStatus::Waiting | OrderStatus::Withdrawn | OrderStatus::ClosedOut => false,
            OrderStatus::Rejected => !matches!(
                self.reason,
                Some(RejectReason::Lost | RejectReason::NotEnoughUnits)
            ),
            _ => true,
        }
    }
}

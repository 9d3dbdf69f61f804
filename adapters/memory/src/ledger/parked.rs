//! Messages that could not be applied, and wait for an administrator.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    AdjustmentState, BatchItem, EntryId, Page, ParkReason, ParkedMessage, ParkedMessages,
    ParkedReply, ParkedState, Verdict,
};
use seckill_domain::{Decision, OrderId, PartitionId, Sequence, Timestamp, VoucherId};

use super::MemoryLedger;
use super::admissions::rows_of;
use super::book::Book;
use super::changes::Changes;
use super::locks::Row;
use super::reads::page;
use super::settlement::Settlement;
use crate::chaos::at_most;

const MESSAGES_MAX: usize = 100;

/// Parked messages by number.
#[derive(Debug, Default)]
pub(super) struct Parked {
    rows: BTreeMap<u64, ParkedRow>,
    /// The messages that wait, by the order they are about, the newest one last.
    orders: HashMap<OrderId, BTreeSet<u64>>,
    last: u64,
}

/// A message with what was decided, if it could be read.
#[derive(Debug, Clone)]
pub(super) struct ParkedRow {
    message: ParkedMessage,
    decision: Option<(Sequence, Decision)>,
    /// What the gate took for it while the ledger had no stock of its voucher.
    unheld: u32,
}

/// A message that has no number yet.
#[derive(Debug)]
pub(super) struct NewParked {
    pub(super) partition: PartitionId,
    pub(super) entry: EntryId,
    pub(super) decision: Option<(Sequence, Decision)>,
    pub(super) raw: String,
    pub(super) reason: ParkReason,
    pub(super) detail: String,
    pub(super) units: u32,
    pub(super) unheld: u32,
    pub(super) at: Timestamp,
}

impl Parked {
    pub(super) fn add(&mut self, new: NewParked) {
        self.last += 1;
        let id = self.last;
        let decision = new.decision.as_ref().map(|(_, decision)| decision);
        if let Some(claim) = decision.and_then(Decision::claim) {
            self.orders.entry(claim.order).or_default().insert(id);
        }
        let message = ParkedMessage {
            id,
            partition: new.partition,
            entry: new.entry,
            voucher: decision.map(Decision::voucher),
            units: new.units,
            claim: decision.and_then(Decision::claim).cloned(),
            raw: new.raw,
            reason: new.reason,
            detail: new.detail,
            state: ParkedState::Parked,
            parked_at: new.at,
        };
        let row = ParkedRow {
            message,
            decision: new.decision,
            unheld: new.unheld,
        };
        self.rows.insert(id, row);
    }

    fn settle(&mut self, id: u64, state: ParkedState) {
        let Some(row) = self.rows.get_mut(&id) else {
            return;
        };
        row.message.state = state;
        if let Some(claim) = row.decision().and_then(Decision::claim) {
            let order = claim.order;
            if let Some(waiting) = self.orders.get_mut(&order) {
                waiting.remove(&id);
                if waiting.is_empty() {
                    self.orders.remove(&order);
                }
            }
        }
    }

    /// The newest waiting message about an order.
    pub(super) fn of_order(&self, order: OrderId) -> Option<&ParkedRow> {
        self.rows.get(self.orders.get(&order)?.last()?)
    }

    /// The waiting messages about a voucher, oldest first.
    pub(super) fn of_voucher(&self, voucher: VoucherId) -> impl Iterator<Item = &ParkedRow> {
        self.rows
            .values()
            .filter(move |row| row.waits() && row.message.voucher == Some(voucher))
    }
}

impl ParkedRow {
    fn waits(&self) -> bool {
        self.message.state == ParkedState::Parked
    }

    /// What was taken out of the stock for it.
    pub(super) fn held(&self) -> u32 {
        self.message.units
    }

    pub(super) fn unheld(&self) -> u32 {
        self.unheld
    }

    /// The message as it is by now: of a voucher that is there, it holds what it could not before.
    fn seen(&self, book: &Book) -> ParkedMessage {
        let mut message = self.message.clone();
        if message
            .voucher
            .is_some_and(|it| book.vouchers.contains_key(&it))
        {
            message.units += self.unheld;
        }
        message
    }

    pub(super) fn decided_at(&self) -> Timestamp {
        self.message.entry.written_at()
    }

    pub(super) fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref().map(|(_, decision)| decision)
    }
}

#[async_trait]
impl ParkedMessages for MemoryLedger {
    async fn list(
        &self,
        waiting: bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<ParkedMessage>, Fault> {
        const LIST: &str = "parked_messages.list";
        at_most(LIST, limit, MESSAGES_MAX)?;
        self.read(LIST, |book, _| {
            let rows = book.parked.rows.range(..before.unwrap_or(u64::MAX)).rev();
            let found = rows
                .filter(|(_, row)| !waiting || row.waits())
                .map(|(_, row)| row.seen(book));
            page(found, limit, |message| message.id)
        })
    }

    async fn replay(&self, id: u64) -> Result<ParkedReply, Fault> {
        let rows = |book: &Book| rows_of_message(book, id);
        self.when_free("parked_messages.replay", rows, |book, now| {
            match book.parked.rows.get(&id).cloned() {
                None => ParkedReply::NotFound,
                Some(row) => match row.message.state {
                    ParkedState::Parked => book.replay(&row, now),
                    ParkedState::Replayed => ParkedReply::Settled,
                    ParkedState::Discarded(_) => ParkedReply::Conflict,
                },
            }
        })
        .await
    }

    async fn discard(&self, id: u64, reason: &str) -> Result<ParkedReply, Fault> {
        let rows = |book: &Book| rows_of_message(book, id);
        self.when_free("parked_messages.discard", rows, |book, now| {
            match book.parked.rows.get(&id).cloned() {
                None => ParkedReply::NotFound,
                Some(row) => match row.message.state {
                    ParkedState::Parked => book.discard(&row, reason, now),
                    ParkedState::Replayed => ParkedReply::Conflict,
                    ParkedState::Discarded(_) => ParkedReply::Settled,
                },
            }
        })
        .await
    }
}

fn rows_of_message(book: &Book, id: u64) -> Vec<Row> {
    let row = book.parked.rows.get(&id);
    let decision = row.and_then(ParkedRow::decision);
    decision.map_or_else(Vec::new, |decision| rows_of([decision]))
}

impl Book {
    fn settlement(&self, partition: PartitionId, now: Timestamp) -> Settlement<'_> {
        Settlement {
            book: self,
            partition,
            now,
            changes: Changes::default(),
            due: Vec::new(),
        }
    }

    /// Applies a message as if it came now, with the units it holds back in the stock. Whatever is
    /// not as it should be leaves everything as it is.
    fn replay(&mut self, row: &ParkedRow, now: Timestamp) -> ParkedReply {
        let message = &row.message;
        let Some((sequence, decision)) = row.decision.clone() else {
            return ParkedReply::StillUnfit(ParkReason::Unreadable);
        };
        let item = BatchItem::Decision {
            sequence,
            entry: message.entry,
            decision,
        };
        let mut settlement = self.settlement(message.partition, now);
        settlement.give_back(row);
        let verdict = settlement.settle(&item);
        let changes = settlement.changes;
        match verdict {
            Verdict::Confirmed | Verdict::AlreadyThere => {
                self.commit(changes);
                self.parked.settle(message.id, ParkedState::Replayed);
                ParkedReply::Settled
            }
            Verdict::Parked(reason) => ParkedReply::StillUnfit(reason),
            Verdict::Rejected(_) => ParkedReply::StillUnfit(ParkReason::BadValues),
        }
    }

    fn discard(&mut self, row: &ParkedRow, reason: &str, now: Timestamp) -> ParkedReply {
        let message = &row.message;
        let mut settlement = self.settlement(message.partition, now);
        settlement.give_back(row);
        settlement.give_up(row);
        let changes = settlement.changes;
        self.commit(changes);
        let state = ParkedState::Discarded(reason.to_owned());
        self.parked.settle(message.id, state);
        ParkedReply::Settled
    }
}

impl Settlement<'_> {
    /// Puts the units that were taken out of the stock for a message back.
    fn give_back(&mut self, row: &ParkedRow) {
        let voucher = row.message.voucher;
        let voucher = voucher.and_then(|id| self.changes.voucher_mut(self.book, id));
        if let Some(voucher) = voucher {
            voucher.stock_units += row.held();
        }
    }

    /// Ends the order of a message, so that its buyer can read what became of it, and has the gate
    /// let go of what it took.
    fn give_up(&mut self, row: &ParkedRow) {
        let Some(decision) = row.decision() else {
            return;
        };
        if let Decision::Withdrawn { adjustment, .. } = decision {
            let refused = AdjustmentState::Refused;
            self.changes
                .settle_adjustment(self.book, *adjustment, refused);
        }
        let entry = row.message.entry;
        let claim = decision.claim();
        let over = claim.is_none_or(|claim| self.reject_discarded(entry, claim));
        let units = row.held() + row.unheld();
        if let Some(change) = decision.undone_by(units).filter(|_| over) {
            self.changes
                .follow(self.book, decision.voucher(), vec![change]);
        }
    }
}

//! The tables.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use seckill_application::ports::{Adjustment, EntryId, PartitionHead, Report};
use seckill_domain::{
    AdjustmentId, BuyerId, Decision, Epoch, Fence, GateUpdate, GateVersion, Holding,
    IdempotencyKey, Order, OrderId, OrderStatus, PartitionId, Sequence, Ticket, Timestamp, Voucher,
    VoucherId,
};

use super::LedgerGuard;
use super::changes::Changes;
use super::events::Events;
use super::money::Money;
use super::parked::Parked;

/// What is committed.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) vouchers: BTreeMap<VoucherId, Voucher>,
    pub(super) orders: HashMap<OrderId, Order>,
    pub(super) orders_by_buyer: BTreeSet<(BuyerId, OrderId)>,
    pub(super) orders_by_voucher: BTreeSet<(VoucherId, OrderId)>,
    /// Which order used an idempotency key first.
    pub(super) keys: HashMap<(VoucherId, BuyerId, IdempotencyKey), OrderId>,
    /// Orders that wait for units, in the order of their turns.
    pub(super) waiting: BTreeSet<(VoucherId, Ticket, OrderId)>,
    /// Orders that wait for payment, by the end of their payment window.
    pub(super) due: BTreeSet<(Timestamp, OrderId)>,
    pub(super) holdings: HashMap<(VoucherId, BuyerId), Holding>,
    pub(super) adjustments: HashMap<AdjustmentId, AdjustmentRow>,
    pub(super) adjustment_keys: HashMap<(VoucherId, IdempotencyKey), AdjustmentId>,
    /// Updates that the gate may not have, each with its place among all.
    pub(super) outbox: BTreeMap<VoucherId, BTreeMap<GateVersion, (u64, GateUpdate)>>,
    pub(super) parked: Parked,
    pub(super) events: Events,
    pub(super) money: Money,
    /// Reconciliations that ran, the first one first.
    pub(super) reports: VecDeque<Report>,
    /// How often sales were loaded into the gate.
    pub(super) loads: HashMap<VoucherId, Loads>,
    pub(super) partitions: HashMap<PartitionId, PartitionRow>,
    pub(super) partition_count: Option<u16>,
    pub(super) lacks: Option<LedgerGuard>,
    last_voucher: u64,
    last_adjustment: u64,
    last_update: u64,
}

/// How often a sale was loaded into the gate, the first time included.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loads {
    pub(super) count: u32,
    /// How many of them reports have told of.
    pub(super) told: u32,
}

impl Loads {
    /// Loads that no report has told of; the first one is none to tell of.
    pub(super) fn untold(self) -> u32 {
        self.count.saturating_sub(self.told.max(1))
    }

    pub(super) fn tell(&mut self, reloads: u32) {
        self.told = (self.told.max(1) + reloads).min(self.count.max(1));
    }
}

/// An adjustment with its voucher.
#[derive(Debug, Clone)]
pub(super) struct AdjustmentRow {
    pub(super) voucher: VoucherId,
    pub(super) adjustment: Adjustment,
}

/// A partition's position, and what was applied up to there.
#[derive(Debug)]
pub(super) struct PartitionRow {
    pub(super) head: PartitionHead,
    /// One mark per applied decision: numbers have no gaps, so the first has number 1.
    pub(super) applied: Vec<Mark>,
}

/// What tells one decision from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    kind: Kind,
    voucher: VoucherId,
    /// The order, or the adjustment.
    subject: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Granted,
    Joined,
    Left,
    Promoted,
    Withdrawn,
    Lost,
    Unreadable,
}

impl Default for PartitionRow {
    fn default() -> Self {
        Self {
            head: PartitionHead {
                epoch: Epoch::new(1),
                fence: Fence::default(),
                applied: Sequence::default(),
                entry: EntryId::START,
            },
            applied: Vec::new(),
        }
    }
}

impl Mark {
    /// Of a decision that could not be read; no other is like it.
    pub(super) const UNREADABLE: Self = Self {
        kind: Kind::Unreadable,
        voucher: VoucherId::new(0),
        subject: 0,
    };

    pub(super) fn of(decision: &Decision) -> Self {
        let kind = match decision {
            Decision::Granted(_) => Kind::Granted,
            Decision::Joined { .. } => Kind::Joined,
            Decision::Left { .. } => Kind::Left,
            Decision::Promoted(_) => Kind::Promoted,
            Decision::Withdrawn { .. } => Kind::Withdrawn,
            Decision::Lost(_) => Kind::Lost,
        };
        let subject = match decision {
            Decision::Withdrawn { adjustment, .. } => adjustment.get(),
            other => other.claim().map_or(0, |claim| claim.order.get()),
        };
        Self {
            kind,
            voucher: decision.voucher(),
            subject,
        }
    }
}

impl PartitionRow {
    /// Moves on by these decisions.
    pub(super) fn apply(&mut self, marks: impl IntoIterator<Item = Mark>) {
        self.applied.extend(marks);
        self.head.applied = Sequence::new(self.applied.len() as u64);
    }

    /// Whether this decision, with this number, was applied.
    pub(super) fn has_applied(&self, sequence: Sequence, decision: &Decision) -> bool {
        let at = sequence
            .get()
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.applied.get(at)) == Some(&Mark::of(decision))
    }
}

impl Book {
    /// The number of a new voucher. A transaction that rolls back leaves a gap.
    pub(super) fn next_voucher(&mut self) -> VoucherId {
        self.last_voucher += 1;
        VoucherId::new(self.last_voucher)
    }

    /// The number of a new adjustment. A transaction that rolls back leaves a gap.
    pub(super) fn next_adjustment(&mut self) -> AdjustmentId {
        self.last_adjustment += 1;
        AdjustmentId::new(self.last_adjustment)
    }

    /// A partition; new ones begin with epoch 1 and nothing applied.
    pub(super) fn partition(&mut self, id: PartitionId) -> &mut PartitionRow {
        self.partitions.entry(id).or_default()
    }

    /// A partition's position, without creating it.
    pub(super) fn head(&self, id: PartitionId) -> PartitionHead {
        let known = self.partitions.get(&id).map(|row| row.head);
        known.unwrap_or_else(|| PartitionRow::default().head)
    }

    /// A buyer's orders of one voucher, oldest first.
    pub(super) fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
    ) -> impl Iterator<Item = &Order> {
        self.orders_by_buyer
            .range((buyer, OrderId::new(0))..=(buyer, OrderId::new(u64::MAX)))
            .filter_map(|(_, id)| self.orders.get(id))
            .filter(move |order| order.voucher == voucher)
    }

    /// All orders of a voucher, oldest first.
    pub(super) fn orders_of(&self, voucher: VoucherId) -> impl Iterator<Item = &Order> {
        self.orders_by_voucher
            .range((voucher, OrderId::new(0))..=(voucher, OrderId::new(u64::MAX)))
            .filter_map(|(_, id)| self.orders.get(id))
    }

    /// Makes a transaction's changes so.
    pub(super) fn commit(&mut self, changes: Changes) {
        self.vouchers.extend(changes.vouchers);
        for order in changes.orders.into_values() {
            self.put_order(order);
        }
        for (key, order) in changes.keys {
            self.keys.entry(key).or_insert(order);
        }
        self.holdings.extend(changes.holdings);
        self.adjustments.extend(changes.adjustments);
        self.adjustment_keys.extend(changes.adjustment_keys);
        for update in changes.updates {
            self.last_update += 1;
            let updates = self.outbox.entry(update.voucher).or_default();
            updates.insert(update.version, (self.last_update, update));
        }
        for message in changes.parked {
            self.parked.add(message);
        }
        for (event, at) in changes.events {
            self.events.add(event, at);
        }
        self.money.payments.extend(changes.payments);
        for (payment, refund) in changes.refunds {
            self.money.add_refund(payment, refund);
        }
    }

    fn put_order(&mut self, order: Order) {
        if let Some(before) = self.orders.remove(&order.id) {
            self.forget_place(&before);
        }
        self.orders_by_buyer.insert((order.buyer, order.id));
        self.orders_by_voucher.insert((order.voucher, order.id));
        match (order.status(), order.ticket, order.expires_at) {
            (OrderStatus::Waiting, Some(ticket), _) => {
                self.waiting.insert((order.voucher, ticket, order.id));
            }
            (OrderStatus::PendingPayment, _, Some(expires_at)) => {
                self.due.insert((expires_at, order.id));
            }
            _ => {}
        }
        self.orders.insert(order.id, order);
    }

    fn forget_place(&mut self, order: &Order) {
        if let Some(ticket) = order.ticket {
            self.waiting.remove(&(order.voucher, ticket, order.id));
        }
        if let Some(expires_at) = order.expires_at {
            self.due.remove(&(expires_at, order.id));
        }
    }
}

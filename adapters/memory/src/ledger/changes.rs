//! What a transaction has changed and nobody else sees yet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use seckill_application::ports::{Adjustment, AdjustmentState, PaymentRecord};
use seckill_domain::{
    AdjustmentId, BuyerId, Claim, GateChange, GateUpdate, GateVersion, Holding, IdempotencyKey,
    NewEvent, Order, OrderId, PaymentId, Stage, Timestamp, Voucher, VoucherId,
};

use super::book::{AdjustmentRow, Book};
use super::money::NewRefund;
use super::parked::NewParked;

/// Rows as a transaction leaves them. Sorted, so that a run can be repeated exactly.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) vouchers: BTreeMap<VoucherId, Voucher>,
    pub(super) orders: BTreeMap<OrderId, Order>,
    pub(super) keys: BTreeMap<(VoucherId, BuyerId, IdempotencyKey), OrderId>,
    pub(super) holdings: BTreeMap<(VoucherId, BuyerId), Holding>,
    pub(super) adjustments: BTreeMap<AdjustmentId, AdjustmentRow>,
    pub(super) adjustment_keys: BTreeMap<(VoucherId, IdempotencyKey), AdjustmentId>,
    pub(super) updates: Vec<GateUpdate>,
    pub(super) parked: Vec<NewParked>,
    pub(super) events: Vec<(NewEvent, Timestamp)>,
    pub(super) payments: BTreeMap<PaymentId, PaymentRecord>,
    pub(super) refunds: BTreeMap<PaymentId, NewRefund>,
}

impl Changes {
    /// A voucher as this transaction sees it.
    pub(super) fn voucher<'a>(&'a self, book: &'a Book, id: VoucherId) -> Option<&'a Voucher> {
        self.vouchers.get(&id).or_else(|| book.vouchers.get(&id))
    }

    /// A voucher to change.
    pub(super) fn voucher_mut(&mut self, book: &Book, id: VoucherId) -> Option<&mut Voucher> {
        match self.vouchers.entry(id) {
            Entry::Occupied(ours) => Some(ours.into_mut()),
            Entry::Vacant(place) => Some(place.insert(book.vouchers.get(&id)?.clone())),
        }
    }

    /// An order as this transaction sees it.
    pub(super) fn order<'a>(&'a self, book: &'a Book, id: OrderId) -> Option<&'a Order> {
        self.orders.get(&id).or_else(|| book.orders.get(&id))
    }

    /// Writes an order.
    pub(super) fn put_order(&mut self, order: Order) {
        if let Some(key) = order.key.clone() {
            let key = (order.voucher, order.buyer, key);
            self.keys.entry(key).or_insert(order.id);
        }
        self.orders.insert(order.id, order);
    }

    /// A buyer's holding to change; one who has none yet may have up to `limit`.
    pub(super) fn holding_mut(
        &mut self,
        book: &Book,
        voucher: VoucherId,
        buyer: BuyerId,
        limit: u32,
    ) -> &mut Holding {
        let known = book.holdings.get(&(voucher, buyer)).copied();
        self.holdings
            .entry((voucher, buyer))
            .or_insert_with(|| known.unwrap_or_else(|| Holding::none(limit)))
    }

    /// An adjustment as this transaction sees it.
    pub(super) fn adjustment<'a>(
        &'a self,
        book: &'a Book,
        id: AdjustmentId,
    ) -> Option<&'a AdjustmentRow> {
        self.adjustments
            .get(&id)
            .or_else(|| book.adjustments.get(&id))
    }

    /// The adjustment that was recorded with a key.
    pub(super) fn adjustment_of<'a>(
        &'a self,
        book: &'a Book,
        key: &(VoucherId, IdempotencyKey),
    ) -> Option<&'a Adjustment> {
        let known = self.adjustment_keys.get(key);
        let id = known.or_else(|| book.adjustment_keys.get(key))?;
        Some(&self.adjustment(book, *id)?.adjustment)
    }

    /// Moves an adjustment on. `false` if it is not pending.
    pub(super) fn settle_adjustment(
        &mut self,
        book: &Book,
        id: AdjustmentId,
        state: AdjustmentState,
    ) -> bool {
        let pending = self
            .adjustment(book, id)
            .filter(|row| row.adjustment.state == AdjustmentState::Pending);
        let Some(mut row) = pending.cloned() else {
            return false;
        };
        row.adjustment.state = state;
        self.adjustments.insert(id, row);
        true
    }

    /// Raises a voucher's version, and has the gate follow.
    pub(super) fn follow(
        &mut self,
        book: &Book,
        voucher: VoucherId,
        changes: Vec<GateChange>,
    ) -> Option<GateVersion> {
        let row = self.voucher_mut(book, voucher)?;
        row.version = row.version.next();
        let version = row.version;
        self.updates.push(GateUpdate {
            voucher,
            version,
            changes,
        });
        Some(version)
    }

    /// Whether the buyer waits for the voucher by another order.
    pub(super) fn waits_already(&self, book: &Book, claim: &Claim) -> bool {
        let waits = |order: &Order| {
            (order.voucher, order.buyer) == (claim.voucher, claim.buyer)
                && order.id != claim.order
                && order.stage == Stage::Waiting
        };
        let first = (claim.buyer, OrderId::new(0));
        let last = (claim.buyer, OrderId::new(u64::MAX));
        let mut stored = book.orders_by_buyer.range(first..=last);
        stored.any(|(_, id)| self.order(book, *id).is_some_and(waits))
            || self.orders.values().any(waits)
    }

    /// Which order has a claim's key: the first of the buyer's orders of the voucher that used it.
    pub(super) fn user_of_key(&self, book: &Book, claim: &Claim) -> Option<OrderId> {
        let key = (claim.voucher, claim.buyer, claim.key.clone()?);
        let ours = || self.keys.get(&key).copied();
        book.keys.get(&key).copied().or_else(ours)
    }
}

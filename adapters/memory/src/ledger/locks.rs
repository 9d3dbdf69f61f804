//! Row locks.

use std::collections::HashMap;

use seckill_domain::{AdjustmentId, BuyerId, IdempotencyKey, OrderId, PaymentId, VoucherId};

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TransactionId(u64);

/// A row, whether or not it exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Row {
    Order(OrderId),
    Holding(VoucherId, BuyerId),
    Voucher(VoucherId),
    Adjustment(AdjustmentId),
    AdjustmentKey(VoucherId, IdempotencyKey),
    Payment(PaymentId),
    Refund(PaymentId),
}

/// What became of a wish for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// The transaction has it.
    Yes,
    /// Another one has it; the wish is noted.
    Busy,
    /// The one that has it waits, directly or not, for this one.
    Deadlock,
}

/// Who has which row, and who waits for which.
#[derive(Debug, Default)]
pub(super) struct Locks {
    transactions: u64,
    owners: HashMap<Row, TransactionId>,
    taken: HashMap<TransactionId, Vec<Row>>,
    waiting: HashMap<TransactionId, Row>,
}

impl Locks {
    /// A transaction that has no row yet.
    pub(super) fn begin(&mut self) -> TransactionId {
        self.transactions += 1;
        TransactionId(self.transactions)
    }

    /// Takes a row if it is free or the transaction's already; does not wait for it.
    pub(super) fn try_take(&mut self, transaction: TransactionId, row: &Row) -> bool {
        if let Some(owner) = self.owners.get(row) {
            return *owner == transaction;
        }
        self.owners.insert(row.clone(), transaction);
        self.taken.entry(transaction).or_default().push(row.clone());
        true
    }

    /// Takes a row if it is free or the transaction's already, and waits for it if not.
    pub(super) fn take(&mut self, transaction: TransactionId, row: &Row) -> Taken {
        if self.try_take(transaction, row) {
            return Taken::Yes;
        }
        let owner = self.owners.get(row);
        if owner.is_some_and(|owner| self.waits_for(*owner, transaction)) {
            return Taken::Deadlock;
        }
        self.waiting.insert(transaction, row.clone());
        Taken::Busy
    }

    /// Whether `waiter` waits for `owner`, directly or through others. A transaction waits for at
    /// most one row, and a circle is never closed, so the chain ends.
    fn waits_for(&self, waiter: TransactionId, owner: TransactionId) -> bool {
        let mut at = waiter;
        while let Some(next) = self.waiting.get(&at).and_then(|row| self.owners.get(row)) {
            if *next == owner {
                return true;
            }
            at = *next;
        }
        false
    }

    pub(super) fn stop_waiting(&mut self, transaction: TransactionId) {
        self.waiting.remove(&transaction);
    }

    /// Frees everything the transaction has.
    pub(super) fn release(&mut self, transaction: TransactionId) {
        self.waiting.remove(&transaction);
        for row in self.taken.remove(&transaction).unwrap_or_default() {
            self.owners.remove(&row);
        }
    }

    /// Whether anybody has this row.
    pub(super) fn is_taken(&self, row: &Row) -> bool {
        self.owners.contains_key(row)
    }

    /// Whether nobody has any row.
    pub(super) fn is_idle(&self) -> bool {
        self.owners.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64) -> Row {
        Row::Voucher(VoucherId::new(number))
    }

    #[test]
    fn a_row_has_one_owner_until_he_lets_go() {
        let mut locks = Locks::default();
        let [a, b] = [locks.begin(), locks.begin()];
        assert_eq!(locks.take(a, &row(1)), Taken::Yes);
        assert_eq!(locks.take(a, &row(1)), Taken::Yes, "his already");
        assert_eq!(locks.take(b, &row(1)), Taken::Busy);
        locks.release(a);
        assert_eq!(locks.take(b, &row(1)), Taken::Yes);
        locks.release(b);
        assert!(locks.is_idle());
    }

    #[test]
    fn whoever_closes_a_circle_is_refused() {
        let mut locks = Locks::default();
        let [a, b, c] = [locks.begin(), locks.begin(), locks.begin()];
        for (owner, number) in [(a, 1), (b, 2), (c, 3)] {
            assert_eq!(locks.take(owner, &row(number)), Taken::Yes);
        }
        assert_eq!(locks.take(a, &row(2)), Taken::Busy);
        assert_eq!(locks.take(b, &row(3)), Taken::Busy);
        assert_eq!(locks.take(c, &row(1)), Taken::Deadlock);
        locks.stop_waiting(b);
        assert_eq!(locks.take(c, &row(1)), Taken::Busy, "b gave up waiting");
    }
}

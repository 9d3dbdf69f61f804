//! Reads of what is committed.

use std::ops::Bound;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{
    Ledger, LedgerTally, Page, ParkedOrder, SaleSnapshot, UnitOfWork, VoucherFilter,
};
use seckill_domain::{
    BuyerId, GateVersion, IdempotencyKey, Order, OrderId, OrderStatus, SaleStatus, Ticket,
    Timestamp, Voucher, VoucherId,
};

use super::book::Book;
use super::parked::ParkedRow;
use super::unit_of_work::Transaction;
use super::{MemoryLedger, snapshot};
use crate::chaos::at_most;

const VOUCHERS_MAX: usize = 1_000;
const ORDERS_MAX: usize = 100;
const STAGES_MAX: usize = 1_000;

#[async_trait]
impl Ledger for MemoryLedger {
    async fn begin(&self) -> Result<Box<dyn UnitOfWork>, Fault> {
        let call = self.shared.chaos.enter("ledger.begin")?;
        let transaction: Box<dyn UnitOfWork> = Box::new(Transaction::begin(self.clone()));
        call.answer(transaction)
    }

    async fn voucher(&self, id: VoucherId) -> Result<Option<Voucher>, Fault> {
        self.read("ledger.voucher", |book, _| book.vouchers.get(&id).cloned())
    }

    async fn vouchers(
        &self,
        filter: VoucherFilter,
        before: Option<VoucherId>,
        limit: usize,
    ) -> Result<Page<Voucher>, Fault> {
        const VOUCHERS: &str = "ledger.vouchers";
        at_most(VOUCHERS, limit, VOUCHERS_MAX)?;
        self.read(VOUCHERS, |book, now| {
            let before = before.unwrap_or(VoucherId::new(u64::MAX));
            let found = book
                .vouchers
                .range(..before)
                .rev()
                .map(|(_, voucher)| voucher)
                .filter(|voucher| passes(filter, voucher, now));
            page(found.cloned(), limit, |voucher| voucher.id.get())
        })
    }

    async fn order(&self, id: OrderId) -> Result<Option<Order>, Fault> {
        self.read("ledger.order", |book, _| book.orders.get(&id).cloned())
    }

    async fn parked_order(&self, id: OrderId) -> Result<Option<ParkedOrder>, Fault> {
        self.read("ledger.parked_order", |book, _| {
            let row = book.parked.of_order(id)?;
            Some(ParkedOrder {
                claim: row.decision()?.claim()?.clone(),
                decided_at: row.decided_at(),
            })
        })
    }

    async fn stages(&self, ids: &[OrderId]) -> Result<Vec<(OrderId, OrderStatus)>, Fault> {
        const STAGES: &str = "ledger.stages";
        at_most(STAGES, ids.len(), STAGES_MAX)?;
        self.read(STAGES, |book, _| {
            let stage = |id: &OrderId| {
                let status = book.status_of(*id)?;
                Some((*id, status))
            };
            ids.iter().filter_map(stage).collect()
        })
    }

    async fn orders_of(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<Order>, Fault> {
        const ORDERS_OF: &str = "ledger.orders_of";
        at_most(ORDERS_OF, limit, ORDERS_MAX)?;
        self.read(ORDERS_OF, |book, _| {
            let end = before.map_or(Bound::Included((buyer, OrderId::new(u64::MAX))), |before| {
                Bound::Excluded((buyer, before))
            });
            let found = book
                .orders_by_buyer
                .range((Bound::Included((buyer, OrderId::new(0))), end))
                .rev()
                .filter_map(|(_, id)| book.orders.get(id));
            page(found.cloned(), limit, |order| order.id.get())
        })
    }

    async fn orders_on(
        &self,
        voucher: VoucherId,
        buyer: BuyerId,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Order>, Fault> {
        self.read("ledger.orders_on", |book, _| {
            book.orders_on(voucher, buyer)
                .filter(|order| {
                    let status = order.status();
                    let of_key = key.is_some() && order.key.as_ref() == key;
                    status.is_live() || status == OrderStatus::Waiting || of_key
                })
                .cloned()
                .collect()
        })
    }

    async fn sale_snapshot(&self, voucher: VoucherId) -> Result<Option<SaleSnapshot>, Fault> {
        let partition = self.shared.partitions.of(voucher);
        self.read("ledger.sale_snapshot", |book, _| {
            snapshot::of(book, voucher, partition)
        })
    }

    async fn tally(
        &self,
        voucher: VoucherId,
        gate_version: GateVersion,
    ) -> Result<Option<LedgerTally>, Fault> {
        let head = self.shared.partitions.of(voucher);
        self.read("ledger.tally", |book, _| {
            let row = book.vouchers.get(&voucher)?;
            // Counted from the orders themselves, so that a wrong stock shows.
            let (mut awaiting_payment, mut paid) = (0, 0);
            for order in book.orders_of(voucher) {
                match order.status() {
                    OrderStatus::PendingPayment => awaiting_payment += order.quantity,
                    OrderStatus::Paid => paid += order.quantity,
                    _ => {}
                }
            }
            let parked = || book.parked.of_voucher(voucher);
            let unheld: u32 = parked().map(ParkedRow::unheld).sum();
            let newer = book.outbox.get(&voucher).into_iter().flat_map(|updates| {
                let newer = updates.range(gate_version.next()..);
                newer.map(|(_, (_, update))| u64::from(update.units_returned()))
            });
            Some(LedgerTally {
                total: row.total_units,
                stock: row.stock_units.saturating_sub(unheld),
                parked: parked().map(ParkedRow::held).sum::<u32>() + unheld,
                awaiting_payment,
                paid,
                version: row.version,
                units_returned_after: newer.sum(),
                head: book.head(head),
            })
        })
    }

    async fn waiting_position(&self, order: OrderId) -> Result<Option<u32>, Fault> {
        self.read("ledger.waiting_position", |book, _| {
            let row = book.orders.get(&order)?;
            let place = (row.voucher, row.ticket?, row.id);
            if !book.waiting.contains(&place) {
                return None;
            }
            let first = (row.voucher, Ticket::new(0), OrderId::new(0));
            let ahead = book.waiting.range(first..place).count();
            u32::try_from(ahead + 1).ok()
        })
    }

    async fn is_unsettled(&self, voucher: VoucherId) -> Result<bool, Fault> {
        self.read("ledger.is_unsettled", |book, _| {
            let open = |order: &Order| !order.status().is_final();
            book.outbox.contains_key(&voucher)
                || book.parked.of_voucher(voucher).next().is_some()
                || book.orders_of(voucher).any(open)
        })
    }

    async fn ping(&self) -> Result<(), Fault> {
        self.shared.chaos.enter("ledger.ping")?.answer(())
    }
}

impl Book {
    /// The stage of an order. One that is parked counts as queued, and no more as waiting.
    pub(super) fn status_of(&self, id: OrderId) -> Option<OrderStatus> {
        let parked = self.parked.of_order(id).map(|_| OrderStatus::Queued);
        match self.orders.get(&id).map(Order::status) {
            None => parked,
            Some(OrderStatus::Waiting) => parked.or(Some(OrderStatus::Waiting)),
            status => status,
        }
    }
}

impl MemoryLedger {
    /// One statement that changes something, as the call `name`.
    pub(super) fn write<T>(
        &self,
        name: &'static str,
        act: impl FnOnce(&mut Book, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let call = self.shared.chaos.enter(name)?;
        let now = self.shared.clock.now();
        let mut state = self.state();
        let answer = act(&mut state.book, now);
        drop(state);
        call.answer(answer)
    }

    /// One look at what is committed, as the call `name`.
    pub(super) fn read<T>(
        &self,
        name: &'static str,
        look: impl FnOnce(&Book, Timestamp) -> T,
    ) -> Result<T, Fault> {
        let call = self.shared.chaos.enter(name)?;
        let now = self.shared.clock.now();
        let state = self.state();
        let answer = look(&state.book, now);
        drop(state);
        call.answer(answer)
    }
}

fn passes(filter: VoucherFilter, voucher: &Voucher, now: Timestamp) -> bool {
    let on_sale = matches!(voucher.status, SaleStatus::Published | SaleStatus::Paused);
    match filter {
        VoucherFilter::All => true,
        VoucherFilter::Public => voucher.status != SaleStatus::Draft,
        VoucherFilter::OnSale => on_sale,
        VoucherFilter::Closing => voucher.status == SaleStatus::Closed && !voucher.retired,
        VoucherFilter::Overdue => on_sale && voucher.terms.window.closes_at <= now,
    }
}

/// The first `limit` of what was found, and where the next page starts.
pub(super) fn page<T>(
    mut found: impl Iterator<Item = T>,
    limit: usize,
    id: impl Fn(&T) -> u64,
) -> Page<T> {
    let items: Vec<T> = found.by_ref().take(limit).collect();
    let more = found.next().is_some();
    let next = items.last().filter(|_| more).map(id);
    Page { items, next }
}

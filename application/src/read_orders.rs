//! A buyer looks his orders up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_domain::{
    BuyerId, Money, Order, OrderId, OrderStatus, PlaceAtFirst, Stage, Ticket, VoucherId,
};

use crate::patience::{LOOK_PATIENCE, within};
use crate::ports::{
    Clock, GateOrder, HotPath, Ledger, LedgerPorts, Page, ParkedOrder, Place, PlaceReply,
    PurchaseGate, VoucherFilter,
};
use crate::{Fault, RememberedAnswers};

/// An order with the place it has on the waitlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderView {
    /// The order.
    pub order: Order,
    /// Its place, counted from 1, while it waits.
    pub position: Option<u32>,
}

/// How long pay and cancel wait for the row of a queued order.
const ROW_PATIENCE: Duration = Duration::from_secs(2);
const ROW_PAUSE: Duration = Duration::from_millis(20);
const PRICES_MAX: usize = 10_000;
/// Most prices learned at once.
const LEARNED_MAX: usize = 1_000;

/// Reads orders: from the ledger, and from the gate while the ledger does not have them.
pub struct ReadOrders {
    gate: Arc<dyn PurchaseGate>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    remembered: Arc<RememberedAnswers>,
    prices: Mutex<HashMap<VoucherId, Money>>,
}

impl ReadOrders {
    /// Over these ports.
    pub fn new(
        hot: &HotPath,
        ledger: &LedgerPorts,
        clock: Arc<dyn Clock>,
        remembered: Arc<RememberedAnswers>,
    ) -> Self {
        Self {
            gate: hot.gate.clone(),
            ledger: ledger.ledger.clone(),
            clock,
            remembered,
            prices: Mutex::default(),
        }
    }

    /// A buyer's own order; somebody else's does not exist for him. A granted order is readable at
    /// once, whether or not the ledger has it, and also while the ledger is away.
    pub async fn find(&self, id: OrderId, buyer: BuyerId) -> Result<Option<OrderView>, Fault> {
        let look = self.ledger.order(id);
        let view = match within(&*self.clock, LOOK_PATIENCE, "ledger.order", look).await {
            Ok(Some(order)) => Some(self.with_place(order).await?),
            Ok(None) => match self.gate.find_order(id).await? {
                Some(found) => self.as_decided(found).await?,
                None => self.out_of_sight(id).await?,
            },
            // Of anything else only the ledger knows what became of it.
            Err(fault) => match self.gate.find_order(id).await? {
                Some(found) if found.is_gates_to_say() => self.as_decided(found).await?,
                Some(_) | None => return Err(fault),
            },
        };
        Ok(view.filter(|view| view.order.buyer == buyer))
    }

    /// A buyer's orders that the ledger has, newest first: an order is there about a second after it
    /// was granted; `limit` 1 to 100.
    pub async fn list(
        &self,
        buyer: BuyerId,
        before: Option<OrderId>,
        limit: usize,
    ) -> Result<Page<OrderView>, Fault> {
        let page = self.ledger.orders_of(buyer, before, limit).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for order in page.items {
            items.push(self.with_place(order).await?);
        }
        Ok(Page {
            items,
            next: page.next,
        })
    }

    /// A buyer's order once it has left the gate's queue; waits up to 2 s for that. `Ok(None)` if
    /// there is no such order of his.
    pub(crate) async fn find_settled(
        &self,
        id: OrderId,
        buyer: BuyerId,
    ) -> Result<Option<Order>, Fault> {
        let deadline = self.clock.monotonic() + ROW_PATIENCE;
        loop {
            match self.find(id, buyer).await? {
                None => return Ok(None),
                Some(view) if view.order.status() != OrderStatus::Queued => {
                    return Ok(Some(view.order));
                }
                Some(view) if self.clock.monotonic() >= deadline => return Ok(Some(view.order)),
                Some(_) => self.clock.sleep(ROW_PAUSE).await,
            }
        }
    }

    /// Whether the gate has decided what the ledger does not have yet: that the order has its units,
    /// parked ones included, or has left the waitlist; or whether it may have, and lost it. Waits up
    /// to 2 s for the ledger.
    pub(crate) async fn is_still_queued(&self, id: OrderId) -> Result<bool, Fault> {
        let deadline = self.clock.monotonic() + ROW_PATIENCE;
        while self.is_on_its_way(id).await? {
            if self.clock.monotonic() >= deadline {
                return Ok(true);
            }
            self.clock.sleep(ROW_PAUSE).await;
        }
        Ok(false)
    }

    async fn is_on_its_way(&self, id: OrderId) -> Result<bool, Fault> {
        let stages = self.ledger.stages(&[id]).await?;
        match stages.first().map(|(_, status)| *status) {
            Some(OrderStatus::Queued) => Ok(true),
            None => Ok(self.gate.has_decided(id).await? || self.remembered.may_come_back().await?),
            Some(OrderStatus::Waiting) => {
                let found = self.gate.find_order(id).await?;
                Ok(found.is_some_and(|found| found.holds_units || found.left.is_some()))
            }
            Some(_) => Ok(false),
        }
    }

    /// A waiting order's place is the gate's to know; so is that it was just promoted.
    async fn with_place(&self, order: Order) -> Result<OrderView, Fault> {
        if order.status() != OrderStatus::Waiting {
            return Ok(OrderView {
                order,
                position: None,
            });
        }
        match self.gate.place(order.voucher, order.buyer).await {
            Ok(PlaceReply::At(Place::Waiting {
                order: waiting,
                position,
                ..
            })) if waiting == order.id => Ok(OrderView {
                order,
                position: Some(position),
            }),
            Ok(PlaceReply::At(Place::Promoted {
                order: promoted, ..
            })) if promoted == order.id => Ok(OrderView {
                order: Order {
                    stage: Stage::Queued,
                    ..order
                },
                position: None,
            }),
            Ok(_) | Err(_) => self.without_place(order).await,
        }
    }

    /// An order that waits for all the ledger knows, and has no place at the gate: it has left, or
    /// the gate is away.
    async fn without_place(&self, order: Order) -> Result<OrderView, Fault> {
        let found = self.gate.find_order(order.id).await.ok().flatten();
        if let Some(reason) = found.and_then(|found| found.left) {
            return Ok(OrderView {
                order: Order {
                    stage: reason.stage(),
                    ..order
                },
                position: None,
            });
        }
        let position = self.ledger.waiting_position(order.id).await?;
        Ok(OrderView { order, position })
    }

    /// An order that has no row and that no stream tells of. It is queued while its message is
    /// parked. What the gate has decided and the stream has lost comes back when gate and ledger are
    /// compared: until then nobody can say what it is, and it must not seem never to have been.
    async fn out_of_sight(&self, id: OrderId) -> Result<Option<OrderView>, Fault> {
        const PARKED: &str = "ledger.parked_order";
        let look = self.ledger.parked_order(id);
        if let Some(ParkedOrder { claim, decided_at }) =
            within(&*self.clock, LOOK_PATIENCE, PARKED, look).await?
        {
            return self
                .as_decided(GateOrder {
                    claim,
                    first: PlaceAtFirst::Granted,
                    decided_at,
                    holds_units: true,
                    position: None,
                    left: None,
                    applied: false,
                })
                .await;
        }
        if self.gate.has_decided(id).await? {
            let gone = "what was decided about the order is gone from the stream";
            return Err(Fault::unavailable("read_orders", gone));
        }
        if self.remembered.may_come_back().await? {
            let lost = "the gate has lost what it decided, and is told of it again";
            return Err(Fault::unavailable("read_orders", lost));
        }
        Ok(None)
    }

    /// An order as the gate decided it. `None` if it was of a voucher that there is not.
    async fn as_decided(&self, found: GateOrder) -> Result<Option<OrderView>, Fault> {
        let price = self.price(found.claim.voucher).await?;
        let position = found.position;
        Ok(price.map(|price| OrderView {
            order: Self::queued(found, price),
            position,
        }))
    }

    fn queued(found: GateOrder, price: Money) -> Order {
        let waited = found.first == PlaceAtFirst::Waitlisted;
        Order {
            id: found.claim.order,
            voucher: found.claim.voucher,
            buyer: found.claim.buyer,
            quantity: found.claim.quantity,
            amount: price.times(found.claim.quantity),
            key: found.claim.key,
            created_at: found.decided_at,
            ticket: waited.then_some(Ticket::new(0)),
            expires_at: None,
            stage: match found.left {
                Some(reason) => reason.stage(),
                None if found.holds_units || !waited => Stage::Queued,
                None => Stage::Waiting,
            },
        }
    }

    /// Learns the prices of the newest 1,000 vouchers on sale, in one read: what the gate grants
    /// while the ledger is away can then be shown with its amount, also by a process that has shown
    /// no order of the voucher before.
    pub async fn learn_prices(&self) -> Result<(), Fault> {
        let on_sale = VoucherFilter::OnSale;
        let page = self.ledger.vouchers(on_sale, None, LEARNED_MAX).await?;
        let prices = page.items.iter().map(|it| (it.id, it.terms.price));
        self.remember_prices(prices);
        Ok(())
    }

    /// Prices are frozen once a voucher is published, so they are read once.
    async fn price(&self, voucher: VoucherId) -> Result<Option<Money>, Fault> {
        if let Some(price) = self.prices().get(&voucher) {
            return Ok(Some(*price));
        }
        let look = self.ledger.voucher(voucher);
        let found = within(&*self.clock, LOOK_PATIENCE, "ledger.voucher", look).await?;
        let price = found.map(|found| found.terms.price);
        self.remember_prices(price.map(|price| (voucher, price)));
        Ok(price)
    }

    fn remember_prices(&self, more: impl IntoIterator<Item = (VoucherId, Money)>) {
        let mut prices = self.prices();
        if prices.len() >= PRICES_MAX {
            prices.clear();
        }
        prices.extend(more);
    }

    fn prices(&self) -> MutexGuard<'_, HashMap<VoucherId, Money>> {
        self.prices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

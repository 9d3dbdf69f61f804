//! One buyer: presses the button, then pays, cancels, or lets his order be.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use seckill_domain::{BuyerId, IdempotencyKey, OrderId, OrderStatus};

use super::door::{Done, Door, Told};
use super::history::{Call, History};

/// What a buyer means to do with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Pays,
    Cancels,
    Abandons,
}

#[derive(Debug, Clone, Copy)]
struct Order {
    id: OrderId,
    /// He waited for it; then he does not let it expire.
    waited: bool,
    done: bool,
}

/// A buyer with a mind of his own.
#[derive(Debug)]
pub(super) struct Buyer {
    pub(super) id: BuyerId,
    presses: u32,
    key: Option<IdempotencyKey>,
    fate: Fate,
    /// His order or place, while he looks after it.
    order: Mutex<Option<Order>>,
}

/// How often a buyer tries again what failed or could not be done yet.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

impl Buyer {
    pub(super) fn new(id: BuyerId, presses: u32, key: Option<IdempotencyKey>, fate: Fate) -> Self {
        Self {
            id,
            presses,
            key,
            fate,
            order: Mutex::default(),
        }
    }

    /// Presses the button, as often as he does, all at once.
    pub(super) async fn rush(&self, door: &Door, history: &History) {
        join_all((0..self.presses).map(|_| self.press(door, history))).await;
    }

    async fn press(&self, door: &Door, history: &History) {
        for _ in 0..TRIES {
            let begun = door.monotonic();
            let told = door.buy(history.voucher, self.id, self.key.as_ref()).await;
            history.timed(Call::Buy, door.monotonic().saturating_sub(begun));
            let failed = matches!(told, Told::Failed(_));
            let waited = matches!(told, Told::Waitlisted(_));
            if let Some(id) = history.told(self.id, told) {
                let mut mine = self.order.lock().unwrap_or_else(PoisonError::into_inner);
                let done = false;
                mine.get_or_insert(Order { id, waited, done });
            }
            if !failed {
                return;
            }
            door.sleep(PAUSE).await;
        }
    }

    /// Does what he means to do with the order that he was granted.
    pub(super) async fn decide(&self, door: &Door, history: &History) {
        if let Some(order) = self.looks_after()
            && !order.waited
            && self.fate != Fate::Abandons
        {
            self.act(door, history, order).await;
        }
    }

    /// Looks what became of his order, and does what he means to do if he was promoted. Whether
    /// something may still happen to it; `may_come_free`: whether somebody may give units back.
    pub(super) async fn look_again(
        &self,
        door: &Door,
        history: &History,
        may_come_free: bool,
    ) -> bool {
        let Some(order) = self.looks_after() else {
            return false;
        };
        match door.order(self.id, order.id).await.map(|seen| seen.status) {
            Some(OrderStatus::Waiting) => may_come_free,
            Some(OrderStatus::PendingPayment) if order.waited || self.fate != Fate::Abandons => {
                self.act(door, history, order).await;
                true
            }
            None | Some(OrderStatus::Queued | OrderStatus::PendingPayment) => true,
            Some(_) => {
                self.is_done();
                false
            }
        }
    }

    async fn act(&self, door: &Door, history: &History, order: Order) {
        for _ in 0..TRIES {
            let begun = door.monotonic();
            let (call, done) = if self.fate == Fate::Cancels {
                (Call::Cancel, door.cancel(self.id, order.id).await)
            } else {
                (Call::Pay, door.pay(self.id, order.id).await)
            };
            history.timed(call, door.monotonic().saturating_sub(begun));
            let again = matches!(done, Done::Failed(_) | Done::NotYet);
            history.done(call, order.id, done);
            if !again {
                return self.is_done();
            }
            door.sleep(PAUSE).await;
        }
    }

    fn looks_after(&self) -> Option<Order> {
        let mine = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        mine.filter(|order| !order.done)
    }

    fn is_done(&self) {
        let mut mine = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(order) = &mut *mine {
            order.done = true;
        }
    }
}

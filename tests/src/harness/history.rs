//! Who asked what, when, and what he was told.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::answer::Purchase;

/// What somebody asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// To buy.
    Purchase {
        /// What.
        voucher: VoucherId,
        /// How many units.
        quantity: u32,
        /// Under which idempotency key.
        key: Option<String>,
    },
    /// To pay.
    Pay {
        /// Which order.
        order: OrderId,
        /// By which payment.
        payment: String,
    },
    /// To give an order up.
    Cancel {
        /// Which.
        order: OrderId,
    },
    /// Where an order is.
    Look {
        /// Which.
        order: OrderId,
    },
    /// To write down that money moved; asked by the provider.
    Notice {
        /// The provider's id of the payment.
        payment: String,
    },
    /// To leave a waitlist.
    Leave {
        /// Of which voucher.
        voucher: VoucherId,
    },
}

/// What he was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// An answer to a purchase.
    Purchase(Purchase),
    /// The order, in this stage.
    Order(OrderStatus),
    /// It is done.
    Done,
    /// A problem.
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it says.
        code: String,
    },
    /// Nothing: whether it happened is not known.
    Nothing,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When it was sent, since the history began.
    pub begun: Duration,
    /// When the answer was there, since the history began.
    pub ended: Duration,
    /// Who.
    pub buyer: BuyerId,
    /// What.
    pub asked: Asked,
    /// And the answer.
    pub told: Told,
}

/// Everything that was asked and told, in the order in which the answers came.
#[derive(Debug)]
pub struct History {
    began: Instant,
    events: Mutex<Vec<Event>>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            events: Mutex::default(),
        }
    }
}

impl History {
    /// How long it is since the history began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Writes a call down that was sent at `begun` and answered now.
    pub fn record(&self, begun: Duration, buyer: BuyerId, asked: Asked, told: Told) {
        let event = Event {
            begun,
            ended: self.now(),
            buyer,
            asked,
            told,
        };
        self.lock().push(event);
    }

    /// What was written down so far.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Every order answered as granted, with its buyer, each once.
    pub fn granted(&self) -> Vec<(OrderId, BuyerId)> {
        let mut granted: Vec<_> = self
            .lock()
            .iter()
            .filter_map(|event| match &event.told {
                Told::Purchase(answer) => Some((answer.granted()?, event.buyer)),
                _ => None,
            })
            .collect();
        granted.sort_unstable();
        granted.dedup();
        granted
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What buyers were told, and what that promises them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seckill_application::Purchase;
use seckill_application::ports::PaymentOutcome;
use seckill_domain::{BuyerId, Money, OrderId, OrderStatus, PaymentId, Timestamp, VoucherId};

use crate::executor::Group;

/// An order that somebody was told of.
#[derive(Debug, Clone)]
pub struct Promise {
    /// Who.
    pub buyer: BuyerId,
    /// Of which voucher.
    pub voucher: VoucherId,
    /// The lives of processes that told him and remember.
    pub by: BTreeSet<Group>,
    /// Whether he was told that he has units.
    pub units: bool,
    /// When he was told first that he waits.
    pub waits: Option<Duration>,
    /// Redis has lost it, and no process lives that remembered it: the documented exception.
    pub excused: bool,
}

/// A purchase that a buyer asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wish {
    /// Of which voucher.
    pub voucher: VoucherId,
    /// Who asks.
    pub buyer: BuyerId,
    /// How many units.
    pub quantity: u32,
    /// Under which key.
    pub key: Option<String>,
}

/// Everything that was told.
#[derive(Debug, Default, Clone)]
pub struct Told {
    /// Orders.
    pub orders: BTreeMap<OrderId, Promise>,
    /// Orders by the key they were asked for with.
    pub keys: BTreeMap<(VoucherId, BuyerId, String), BTreeSet<OrderId>>,
    /// Places that a buyer was told of under such a key, and when: those of the key's order, or of
    /// another one by which he waits.
    pub places: BTreeMap<(VoucherId, BuyerId, String), BTreeSet<(OrderId, Duration)>>,
    /// How often each buyer asked without a key.
    pub calls: BTreeMap<(VoucherId, BuyerId), usize>,
    /// When each buyer asked first.
    pub first_calls: BTreeMap<(VoucherId, BuyerId), Duration>,
    /// Ends that somebody was told of.
    pub ends: Vec<(OrderId, OrderStatus)>,
    /// What the provider was told became of a payment.
    pub payments: BTreeMap<PaymentId, BTreeSet<(OrderId, Outcome)>>,
    /// When each payment was first spoken of, by its buyer or the provider.
    pub pays: BTreeMap<PaymentId, Timestamp>,
    /// How much came, by what the provider says.
    pub notices: BTreeMap<PaymentId, Money>,
    /// When an order was first asked to be given up.
    pub cancels: BTreeMap<OrderId, Timestamp>,
}

/// What the provider was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It pays its order.
    Paid,
    /// It goes back.
    Refunded,
}

impl From<PaymentOutcome> for Outcome {
    fn from(outcome: PaymentOutcome) -> Self {
        match outcome {
            PaymentOutcome::Paid => Self::Paid,
            PaymentOutcome::RefundedTooLate
            | PaymentOutcome::RefundedTooEarly
            | PaymentOutcome::RefundedSecond
            | PaymentOutcome::RefundedWrongAmount
            | PaymentOutcome::RefundedUnknownOrder => Self::Refunded,
        }
    }
}

/// The book in which it is written down.
#[derive(Default)]
pub struct Promises(Mutex<Told>);

impl Promises {
    /// What was told so far.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is about to ask for a purchase.
    pub fn asks(&self, wish: &Wish, when: Duration) {
        let mut told = self.told();
        let who = (wish.voucher, wish.buyer);
        told.first_calls.entry(who).or_insert(when);
        if wish.key.is_none() {
            *told.calls.entry(who).or_default() += 1;
        }
    }

    /// Somebody was answered.
    pub fn purchase(&self, wish: &Wish, by: Group, when: Duration, answer: &Purchase) {
        let mut told = self.told();
        let orders: &[OrderId] = match answer {
            Purchase::Granted { order, .. } | Purchase::Waitlisted { order, .. } => {
                if let Some(key) = &wish.key {
                    let key = (wish.voucher, wish.buyer, key.clone());
                    // Whoever waits is told his place under any key, which does not make it its.
                    let new = !matches!(answer, Purchase::Waitlisted { joined: false, .. });
                    if new {
                        told.keys.entry(key).or_default().insert(*order);
                    } else if told.keys.contains_key(&key) {
                        told.places.entry(key).or_default().insert((*order, when));
                    }
                }
                std::slice::from_ref(order)
            }
            Purchase::AlreadyHeld { orders } => orders,
            _ => &[],
        };
        let waits = matches!(answer, Purchase::Waitlisted { .. });
        let remembered = matches!(
            answer,
            Purchase::Granted { .. } | Purchase::Waitlisted { joined: true, .. }
        );
        for order in orders {
            let promise = told.orders.entry(*order).or_insert(Promise {
                buyer: wish.buyer,
                voucher: wish.voucher,
                by: BTreeSet::new(),
                units: false,
                waits: None,
                excused: false,
            });
            promise.by.extend(remembered.then_some(by));
            promise.units |= !waits;
            if waits && promise.waits.is_none() {
                promise.waits = Some(when);
            }
        }
    }

    /// Somebody was told of the end of an order.
    pub fn end(&self, order: OrderId, status: OrderStatus) {
        self.told().ends.push((order, status));
    }

    /// The provider was told what became of a payment.
    pub fn payment(&self, payment: &PaymentId, order: OrderId, outcome: Outcome) {
        let payments = &mut self.told().payments;
        payments
            .entry(payment.clone())
            .or_default()
            .insert((order, outcome));
    }

    /// Somebody is about to speak of a payment; the provider says how much came.
    pub fn pays(&self, payment: &PaymentId, when: Timestamp, came: Option<Money>) {
        let mut told = self.told();
        told.pays.entry(payment.clone()).or_insert(when);
        if let Some(came) = came {
            told.notices.insert(payment.clone(), came);
        }
    }

    /// Somebody is about to give an order up.
    pub fn cancels(&self, order: OrderId, when: Timestamp) {
        self.told().cancels.entry(order).or_insert(when);
    }

    /// Excuses every promise that meets a condition.
    pub fn excuse(&self, applies: impl Fn(OrderId, &Promise) -> bool) {
        for (order, promise) in &mut self.told().orders {
            promise.excused |= applies(*order, promise);
        }
    }
}

//! What the crowd was told, and what was seen meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use seckill_domain::invariants::{self, Tally};
use seckill_domain::{BuyerId, OrderId, VoucherId};

use super::door::{Done, Door, Told};

/// Everything that was recorded.
pub(super) struct History {
    pub(super) voucher: VoucherId,
    log: Mutex<Log>,
}

/// The record.
#[derive(Default)]
pub(super) struct Log {
    /// Answers by their word.
    pub(super) answers: BTreeMap<(Call, &'static str), u64>,
    /// How long calls took, in microseconds.
    pub(super) latencies: BTreeMap<Call, Histogram<u64>>,
    /// Order ids that were answered as granted or as a place, and to whom.
    pub(super) orders: HashMap<OrderId, Answered>,
    /// Every order id that a buyer was told by any answer.
    pub(super) ids_of: HashMap<BuyerId, BTreeSet<OrderId>>,
    /// Orders that were answered as paid, and as cancelled.
    pub(super) paid: BTreeSet<OrderId>,
    pub(super) cancelled: BTreeSet<OrderId>,
    /// Balances looked at while the crowd was there, and the first that was oversold.
    pub(super) looks: u64,
    pub(super) oversold: Option<Tally>,
    /// An order id that two buyers were told.
    pub(super) shared: Option<OrderId>,
}

/// What was answered about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) buyer: BuyerId,
    pub(super) waited: bool,
}

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    Buy,
    Pay,
    Cancel,
}

impl Call {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Buy => "purchase",
            Self::Pay => "payment",
            Self::Cancel => "cancellation",
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);
const DIGITS: u8 = 3;
/// What took longer counts as this long: an hour, in microseconds.
const SLOWEST_MICROS: u64 = 3_600_000_000;

impl History {
    pub(super) fn new(voucher: VoucherId) -> Self {
        Self {
            voucher,
            log: Mutex::default(),
        }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an answer; returns the order it speaks of.
    pub(super) fn told(&self, buyer: BuyerId, told: Told) -> Option<OrderId> {
        let (word, order, waited) = match told {
            Told::Granted(order) => ("granted", Some(order), false),
            Told::Waitlisted(order) => ("waitlisted", Some(order), true),
            Told::AlreadyHeld(order) => ("already_held", Some(order), false),
            Told::Refused(word) | Told::Failed(word) => (word, None, false),
        };
        let mut log = self.log();
        log.count(Call::Buy, word);
        let order = order?;
        let known = log
            .orders
            .entry(order)
            .or_insert(Answered { buyer, waited });
        if known.buyer != buyer {
            log.shared.get_or_insert(order);
        }
        log.ids_of.entry(buyer).or_default().insert(order);
        Some(order)
    }

    pub(super) fn done(&self, call: Call, order: OrderId, done: Done) {
        let mut log = self.log();
        let word = match done {
            Done::Yes => {
                let orders = match call {
                    Call::Cancel => &mut log.cancelled,
                    Call::Buy | Call::Pay => &mut log.paid,
                };
                orders.insert(order);
                "done"
            }
            Done::NotYet => "order_queued",
            Done::Refused(word) | Done::Failed(word) => word,
        };
        log.count(call, word);
    }

    pub(super) fn timed(&self, call: Call, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut log = self.log();
        if let Some(latencies) = log.latencies.get_mut(&call) {
            latencies.saturating_record(micros);
        } else if let Ok(mut latencies) = Histogram::new_with_max(SLOWEST_MICROS, DIGITS) {
            latencies.saturating_record(micros);
            log.latencies.insert(call, latencies);
        }
    }

    /// Looks at the balance all the time; never returns.
    pub(super) async fn watch(&self, door: &Door) -> Infallible {
        loop {
            if let Some(weighed) = door.balance(self.voucher).await {
                let mut log = self.log();
                log.looks += 1;
                if !invariants::never_oversold(&weighed.tally) {
                    log.oversold.get_or_insert(weighed.tally);
                }
            }
            door.sleep(LOOK_EVERY).await;
        }
    }
}

impl Log {
    fn count(&mut self, call: Call, word: &'static str) {
        *self.answers.entry((call, word)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_calls_are_told_as_slow() {
        let history = History::new(VoucherId::new(1));
        for millis in [1, 30, 4_000] {
            history.timed(Call::Buy, Duration::from_millis(millis));
        }
        history.timed(Call::Pay, Duration::MAX);
        let log = history.log();
        let bought = &log.latencies[&Call::Buy];
        assert!((29_900..30_100).contains(&bought.value_at_quantile(0.5)));
        assert!((3_990_000..4_010_000).contains(&bought.max()));
        assert!(log.latencies[&Call::Pay].max() >= SLOWEST_MICROS);
    }
}

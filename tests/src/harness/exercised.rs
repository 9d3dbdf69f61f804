//! How much of what is promised a run has tried: a promise that nobody made use of holds easily.

use std::collections::BTreeMap;
use std::fmt;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::facts::{Facts, OrderFacts};
use super::history::{Asked, Event, Told};

/// Counts of orders, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exercised {
    /// Orders that are paid (I6).
    pub paid: usize,
    /// Orders that were given up, whose units came back (I5).
    pub cancelled: usize,
    /// Keys that were used again, and stood for the same order (I9).
    pub repeated: usize,
    /// Orders of more than one unit (I3).
    pub several: usize,
    /// Orders that waited and were served (I7).
    pub promoted: usize,
    /// Places that were given up (I7).
    pub left: usize,
}

impl Exercised {
    /// By a history and the facts at its end.
    pub fn by(history: &[Event], facts: &Facts) -> Self {
        let count = |is_such: &dyn Fn(&OrderFacts) -> bool| {
            facts.orders.values().filter(|order| is_such(order)).count()
        };
        Self {
            paid: count(&|order| order.status == OrderStatus::Paid),
            cancelled: count(&|order| order.status == OrderStatus::Cancelled),
            repeated: repeated(history),
            several: count(&|order| order.quantity > 1 && order.was_served()),
            promoted: count(&|order| order.ticket.is_some() && order.was_served()),
            left: count(&|order| order.status == OrderStatus::Withdrawn),
        }
    }

    /// Panics if fewer than so many have paid, have given up, or have asked again.
    #[track_caller]
    pub(super) fn assert_lively(&self, least: usize) {
        let counts = [self.paid, self.cancelled, self.repeated];
        assert!(counts.iter().all(|count| *count >= least), "{self}");
    }

    /// Panics if fewer than so many had several units, or have waited for them.
    #[track_caller]
    pub(super) fn assert_contested(&self, least: usize) {
        let counts = [self.several, self.promoted];
        assert!(counts.iter().all(|count| *count >= least), "{self}");
    }
}

impl fmt::Display for Exercised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            paid,
            cancelled,
            repeated,
            several,
            promoted,
            left,
        } = self;
        write!(
            f,
            "{paid} paid, {cancelled} given up, {repeated} keys repeated"
        )?;
        if several + promoted + left > 0 {
            write!(
                f,
                ", {several} of several units, {promoted} promoted, {left} left the line"
            )?;
        }
        Ok(())
    }
}

fn repeated(history: &[Event]) -> usize {
    let mut told: BTreeMap<(VoucherId, BuyerId, &str, OrderId), usize> = BTreeMap::new();
    for event in history {
        if let (
            Asked::Purchase {
                voucher,
                key: Some(key),
                ..
            },
            Told::Purchase(answer),
        ) = (&event.asked, &event.told)
            && let Some(order) = answer.order()
        {
            *told.entry((*voucher, event.buyer, key, order)).or_default() += 1;
        }
    }
    told.values().filter(|times| **times > 1).count()
}

//! The checker: judges what was told by what there is, promise by promise.
//!
//! [`judge`] is a pure function over a [`History`] and [`Facts`], so that it can be tested by
//! planting what must be found. [`audit`] waits until all is quiet, asks, and judges.

mod changes;
mod contract;
mod gate;
mod money;
mod orders;
mod units;
mod waitlist;

use std::fmt;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use seckill_domain::invariants::InvariantId;
use seckill_domain::{OrderId, OrderStatus, VoucherId};

use super::facts::{Facts, Untold};
use super::history::{Event, History};
use super::ledger::Ledger;
use super::shop::Shop;
use super::wait::eventually;

/// How long a deployment may take to come to rest after the last fault has healed.
const QUIET_WITHIN: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What every run is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// One of the promises.
    Promise(InvariantId),
    /// Every answer is one that the contract has for the call.
    Contract,
}

/// Something that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub broken: Rule,
    /// How.
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.broken {
            Rule::Promise(promise) => write!(f, "{promise}: {}", self.how),
            Rule::Contract => write!(f, "contract: {}", self.how),
        }
    }
}

/// What the checker found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Every broken promise.
    pub violations: Vec<Violation>,
    /// The orders that somebody was told are granted.
    pub granted: Vec<OrderId>,
    /// Those of them that the ledger refused later.
    pub rejected: Vec<OrderId>,
    /// What was judged.
    pub facts: Facts,
}

impl Verdict {
    /// Panics, naming them, if any promise was broken.
    #[track_caller]
    pub fn assert_holds(&self) -> &Self {
        let broken: Vec<String> = self.violations.iter().map(ToString::to_string).collect();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
        self
    }

    /// Panics if a grant was taken back.
    #[track_caller]
    pub fn assert_none_rejected(&self) -> &Self {
        let rejected: Vec<_> = self
            .rejected
            .iter()
            .map(|order| (order, &self.facts.orders[order].reason))
            .collect();
        assert!(rejected.is_empty(), "grants taken back: {rejected:?}");
        self
    }

    /// Live orders of a voucher, by whomever.
    pub fn live_orders(&self, voucher: VoucherId) -> usize {
        let orders = self.facts.orders.values();
        orders
            .filter(|order| order.voucher == voucher && order.is_live())
            .count()
    }
}

/// Judges a history by the facts at its end.
pub fn judge(history: &[Event], facts: &Facts) -> Verdict {
    let mut violations = Vec::new();
    units::judge(facts, &mut violations);
    orders::judge(history, facts, &mut violations);
    waitlist::judge(history, facts, &mut violations);
    gate::judge(history, facts, &mut violations);
    money::judge(history, facts, &mut violations);
    changes::judge(history, facts, &mut violations);
    contract::judge(history, &mut violations);
    let granted = orders::granted(history);
    let rejected = granted
        .iter()
        .filter(|order| {
            let found = facts.orders.get(order);
            found.is_some_and(|found| found.status == OrderStatus::Rejected)
        })
        .copied()
        .collect();
    Verdict {
        violations,
        granted,
        rejected,
        facts: facts.clone(),
    }
}

/// Waits until every order that was told of is in the ledger, and nothing of these vouchers is on
/// its way.
pub async fn settle(shop: &Shop, history: &History, vouchers: &[VoucherId]) {
    let quiet = shop.clone().writing(&std::sync::Arc::default());
    stream::iter(history.granted())
        .for_each_concurrent(16, async |(order, buyer)| {
            let what = format!("order {order} leaves the queue");
            eventually(&what, QUIET_WITHIN, async || {
                match quiet.try_order(order, buyer).await {
                    // Whether it is there at all is for the checker to say.
                    Ok(reply) if reply.status == 404 => Ok(()),
                    Ok(reply) if reply.status == 200 => match reply.order_status() {
                        OrderStatus::Queued => Err(reply.text),
                        _ => Ok(()),
                    },
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        })
        .await;
    for voucher in vouchers {
        quiet.balanced(*voucher).await;
    }
}

/// Waits until the outboxes are empty, nothing is pending, and what is on sale is at the gate, for a
/// while: whether that is so is for the checker to say.
async fn at_rest(ledger: &Ledger, vouchers: &[VoucherId]) {
    let gate = ledger.gate().await;
    let begun = Instant::now();
    for voucher in vouchers {
        while begun.elapsed() < QUIET_WITHIN {
            // The gate first: what is not pending there by now is in the ledger, with its events.
            let at_the_gate = match &gate {
                Some(gate) => gate.facts(*voucher).await,
                None => break,
            };
            let held = ledger.held(*voucher).await;
            let sound = at_the_gate.map_or(held.retired, |facts| facts.pending.is_empty());
            if sound && held.untold == Untold::default() {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Waits until all is quiet, asks the service, the ledger and the gate, and judges. Not while payment windows
/// are about to end: the questions are not asked in one moment.
pub async fn audit(
    shop: &Shop,
    history: &History,
    vouchers: &[VoucherId],
    ledger: Option<&Ledger>,
) -> Verdict {
    settle(shop, history, vouchers).await;
    if let Some(ledger) = ledger {
        at_rest(ledger, vouchers).await;
    }
    let facts = Facts::gather(shop, history, vouchers, ledger).await;
    judge(&history.events(), &facts)
}

//! Whether every promise was kept, judged from what the crowd was told and what the ledger says.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use anyhow::Context as _;
use seckill_domain::invariants::{self, InvariantId, Tally};
use seckill_domain::{BuyerId, OrderId, OrderStatus, Ticket};

use super::door::{Door, Seen};
use super::history::{History, Log};
use super::plan::Plan;

/// One line for each promise.
#[derive(Debug)]
pub(super) struct Verdict(Vec<(InvariantId, Finding)>);

#[derive(Debug)]
enum Finding {
    Holds(String),
    Broken(String),
    NotJudged(&'static str),
}

/// What there is at the end.
struct End<'a> {
    plan: &'a Plan,
    log: &'a Log,
    /// Every order of the voucher that anybody was told of or has.
    orders: HashMap<OrderId, (BuyerId, Seen)>,
    tally: Tally,
    conserved: bool,
    settled: bool,
}

/// Judges. `settled`: whether everything came to rest by itself.
pub(super) async fn judge(
    door: &Door,
    plan: &Plan,
    history: &History,
    settled: bool,
) -> anyhow::Result<Verdict> {
    let (asked, buyers) = {
        let log = history.log();
        let asked: Vec<(OrderId, BuyerId)> = log
            .orders
            .iter()
            .map(|(order, answered)| (*order, answered.buyer))
            .collect();
        let buyers: Vec<BuyerId> = log.ids_of.keys().copied().collect();
        (asked, buyers)
    };
    let mut orders = HashMap::new();
    for buyer in buyers {
        let his = door.orders(buyer, history.voucher).await?;
        orders.extend(his.into_iter().map(|(order, seen)| (order, (buyer, seen))));
    }
    for (order, buyer) in asked {
        if !orders.contains_key(&order)
            && let Some(seen) = door.order(buyer, order).await
        {
            orders.insert(order, (buyer, seen));
        }
    }
    let weighed = door.balance(history.voucher).await;
    let weighed = weighed.context("the balance of the voucher cannot be read")?;
    let log = history.log();
    let end = End {
        plan,
        log: &log,
        orders,
        tally: weighed.tally,
        conserved: weighed.holds && invariants::conserved(&weighed.tally),
        settled,
    };
    Ok(Verdict(
        InvariantId::ALL
            .into_iter()
            .map(|promise| (promise, end.find(promise)))
            .collect(),
    ))
}

fn finding(broken: &[String], holds: impl Into<String>) -> Finding {
    match broken.first() {
        None => Finding::Holds(holds.into()),
        Some(first) if broken.len() == 1 => Finding::Broken(first.clone()),
        Some(first) => Finding::Broken(format!("{first}, and {} more", broken.len() - 1)),
    }
}

impl End<'_> {
    fn find(&self, promise: InvariantId) -> Finding {
        match promise {
            InvariantId::Conservation => self.conservation(),
            InvariantId::NeverOversold => self.never_oversold(),
            InvariantId::Limit => self.limit(),
            InvariantId::NoSilentLoss => self.no_silent_loss(),
            InvariantId::Once => self.once(),
            InvariantId::PaidXorExpired => self.paid_xor_expired(),
            InvariantId::FairWaitlist => self.fair_waitlist(),
            InvariantId::Drains => self.drains(),
            InvariantId::Idempotent => self.idempotent(),
        }
    }

    fn conservation(&self) -> Finding {
        let Tally {
            total,
            free,
            in_flight,
            parked,
            awaiting_payment,
            paid,
        } = self.tally;
        let sum = format!(
            "{total} = {free} free + {in_flight} in flight + {parked} parked + \
             {awaiting_payment} unpaid + {paid} paid"
        );
        if self.conserved {
            Finding::Holds(sum)
        } else {
            Finding::Broken(sum)
        }
    }

    fn never_oversold(&self) -> Finding {
        let now = (!invariants::never_oversold(&self.tally)).then_some(self.tally);
        let broken: Vec<String> = (self.log.oversold.into_iter().chain(now))
            .map(|tally| {
                format!(
                    "{} live of {}, {} free",
                    tally.live(),
                    tally.total,
                    tally.free
                )
            })
            .collect();
        finding(&broken, format!("looked {} times", self.log.looks + 1))
    }

    fn limit(&self) -> Finding {
        let mut live: BTreeMap<BuyerId, u32> = BTreeMap::new();
        for (buyer, seen) in self.orders.values() {
            if seen.status.is_live() {
                *live.entry(*buyer).or_default() += seen.quantity;
            }
        }
        let broken: Vec<String> = live
            .iter()
            .filter(|(_, units)| !invariants::within_limit(**units, self.plan.limit))
            .map(|(buyer, units)| format!("buyer {buyer} has {units} units"))
            .collect();
        finding(&broken, format!("{} buyers have units", live.len()))
    }

    fn no_silent_loss(&self) -> Finding {
        let mut broken = Vec::new();
        for (order, answered) in &self.log.orders {
            match self.orders.get(order).map(|(_, seen)| seen.status) {
                None => broken.push(format!("order {order} of {} is gone", answered.buyer)),
                Some(OrderStatus::Queued) => {
                    broken.push(format!("order {order} never reached the ledger"));
                }
                Some(OrderStatus::Waiting | OrderStatus::Withdrawn) if !answered.waited => {
                    broken.push(format!("order {order} was granted and has no units"));
                }
                Some(_) => {}
            }
        }
        let read = format!("{} answered orders read back", self.log.orders.len());
        finding(&broken, read)
    }

    fn once(&self) -> Finding {
        let mut broken: Vec<String> = Vec::new();
        broken.extend(
            self.log
                .shared
                .map(|order| format!("order {order} is two buyers'")),
        );
        let mut held = 0;
        for (order, (_, seen)) in &self.orders {
            let (taken, returned) = match seen.status {
                OrderStatus::Queued | OrderStatus::PendingPayment | OrderStatus::Paid => (1, 0),
                OrderStatus::Cancelled | OrderStatus::Expired | OrderStatus::Refunded => (1, 1),
                OrderStatus::Waiting
                | OrderStatus::Rejected
                | OrderStatus::Withdrawn
                | OrderStatus::ClosedOut => (0, 0),
            };
            if !invariants::once(taken, returned) {
                broken.push(format!("order {order} took {taken}, returned {returned}"));
            }
            held += i64::from((taken - returned) * seen.quantity);
        }
        if held != self.tally.live() {
            let live = self.tally.live();
            broken.push(format!(
                "orders hold {held} units, the ledger counts {live}"
            ));
        }
        finding(
            &broken,
            format!("{held} units held by orders, as the ledger counts"),
        )
    }

    fn paid_xor_expired(&self) -> Finding {
        let mut broken = Vec::new();
        for order in &self.log.paid {
            let status = self.orders.get(order).map(|(_, seen)| seen.status);
            if status != Some(OrderStatus::Paid) {
                broken.push(format!(
                    "order {order} was answered as paid and is {status:?}"
                ));
            }
        }
        for (order, (_, seen)) in &self.orders {
            let paid = seen.status == OrderStatus::Paid;
            if paid && !self.log.paid.contains(order) && self.log.cancelled.contains(order) {
                broken.push(format!(
                    "order {order} was answered as cancelled and is paid"
                ));
            }
        }
        finding(&broken, format!("{} payments stand", self.log.paid.len()))
    }

    /// Those who were served came before those who still wait, and were served in their order. The
    /// end of the payment window shows when the ledger got an order.
    fn fair_waitlist(&self) -> Finding {
        let turns = |served: bool| {
            self.orders.values().filter_map(move |(_, seen)| {
                let was_served = match seen.status {
                    OrderStatus::Waiting => Some(false),
                    OrderStatus::PendingPayment
                    | OrderStatus::Paid
                    | OrderStatus::Cancelled
                    | OrderStatus::Expired
                    | OrderStatus::Refunded => Some(true),
                    _ => None,
                }?;
                let turn = (seen.expires_at, seen.ticket?);
                (was_served == served).then_some(turn)
            })
        };
        if self.log.orders.values().any(|order| order.waited)
            && turns(true).chain(turns(false)).next().is_none()
        {
            return Finding::NotJudged("turns cannot be seen from outside");
        }
        let mut served: Vec<_> = turns(true).collect();
        served.sort_unstable();
        let served: Vec<Ticket> = served.into_iter().map(|(_, ticket)| ticket).collect();
        let first_waiting = turns(false).map(|(_, ticket)| ticket).min();
        let mut broken = Vec::new();
        if !invariants::served_in_order(&served) {
            broken.push("somebody was served before his turn".to_owned());
        }
        if let (Some(last), Some(first)) = (served.iter().max(), first_waiting)
            && *last > first
        {
            broken.push("somebody still waits who came before one who was served".to_owned());
        }
        finding(
            &broken,
            format!("{} buyers served from the waitlist", served.len()),
        )
    }

    fn drains(&self) -> Finding {
        if self.settled {
            Finding::Holds("nothing is under way any more".to_owned())
        } else {
            Finding::Broken("something is still under way".to_owned())
        }
    }

    fn idempotent(&self) -> Finding {
        let broken: Vec<String> = self
            .log
            .ids_of
            .iter()
            .filter(|(_, ids)| ids.len() > 1)
            .map(|(buyer, ids)| format!("buyer {buyer} was told {} order ids", ids.len()))
            .collect();
        let same = format!(
            "{} buyers were told one order id each",
            self.log.ids_of.len()
        );
        finding(&broken, same)
    }
}

impl Verdict {
    /// Whether no promise was broken.
    pub(super) fn holds(&self) -> bool {
        !self
            .0
            .iter()
            .any(|(_, finding)| matches!(finding, Finding::Broken(_)))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (promise, finding) in &self.0 {
            let name = promise.to_string();
            match finding {
                Finding::Holds(why) => writeln!(f, "  {name:<24} holds       {why}")?,
                Finding::Broken(why) => writeln!(f, "  {name:<24} BROKEN      {why}")?,
                Finding::NotJudged(why) => writeln!(f, "  {name:<24} not judged  {why}")?,
            }
        }
        let verdict = if self.holds() {
            "every promise that could be judged was kept"
        } else {
            "a promise was broken"
        };
        write!(f, "\n{verdict}")
    }
}

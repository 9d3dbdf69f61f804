//! What a deployment says when all is quiet: the other half of what the checker judges.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use seckill_domain::invariants::Tally;
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};

use super::answer::Reply;
use super::history::{History, Told};
use super::ledger::Ledger;
use super::records::{GateFacts, MoneyFacts, RowFacts};
use super::shop::Shop;

/// How long a busy machine may take for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Between two questions.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// One order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderFacts {
    /// Of which voucher.
    pub voucher: VoucherId,
    /// Whose.
    pub buyer: BuyerId,
    /// How many units.
    pub quantity: u32,
    /// Where it is.
    pub status: OrderStatus,
    /// Why it was rejected.
    pub reason: Option<String>,
    /// Whether its buyer can read it.
    pub shown: bool,
    /// Its turn on the waitlist, if the ledger was asked.
    pub ticket: Option<u64>,
    /// When it was served or left the list, as a number that rises, if the ledger was asked.
    pub served_at: Option<u64>,
    /// What else the ledger knows, if it was asked.
    pub row: Option<RowFacts>,
}

/// The ledger's counters of one voucher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldFacts {
    /// Units in all.
    pub total: i64,
    /// Units in no live order and not parked.
    pub stock: i64,
    /// Units of parked messages.
    pub parked: i64,
    /// Live units of each buyer.
    pub units: BTreeMap<BuyerId, i64>,
    /// Orders of parked messages.
    pub parked_orders: BTreeSet<OrderId>,
    /// What the gate, listeners and the payment provider have not been told.
    pub untold: Untold,
    /// Whether it is over and has left the gate for good.
    pub retired: bool,
}

/// How much waits in the ledger's outboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Untold {
    /// Updates that the gate has not followed.
    pub updates: i64,
    /// Events that nobody has heard of.
    pub events: i64,
    /// Refunds that the provider does not know of.
    pub refunds: i64,
}

/// One voucher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoucherFacts {
    /// Units one buyer may have.
    pub limit: u32,
    /// Where the units are, as the service says.
    pub tally: Tally,
    /// Whether the service says that its balance holds.
    pub holds: bool,
    /// The ledger's own counters, if it was asked.
    pub held: Option<HeldFacts>,
    /// What the gate has, if it was asked and the voucher is there.
    pub gate: Option<GateFacts>,
}

/// What there is. Orders that could not be read are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The vouchers.
    pub vouchers: BTreeMap<VoucherId, VoucherFacts>,
    /// Their orders: all of them if the ledger was asked, else those that somebody was told of.
    pub orders: BTreeMap<OrderId, OrderFacts>,
    /// Whether the gate was asked.
    pub gate_asked: bool,
    /// Whether purchases alone were written down: who gave what up is not known then.
    pub purchases_only: bool,
    /// Money that came and went, if the ledger was asked.
    pub money: Option<MoneyFacts>,
}

impl Facts {
    /// Asks the service for every order that the history tells of, as the buyer who was told, and
    /// for the vouchers; and the ledger, if there is one to ask, for everything.
    pub async fn gather(
        shop: &Shop,
        history: &History,
        vouchers: &[VoucherId],
        ledger: Option<&Ledger>,
    ) -> Self {
        let quiet = shop.clone().writing(&std::sync::Arc::default());
        let mut facts = Self::default();
        for voucher in vouchers {
            let balance = quiet.balance(*voucher).await;
            let seen = quiet.voucher(*voucher).await;
            let limit = seen.number("per_buyer_limit");
            let held = match ledger {
                Some(ledger) => Some(ledger.held(*voucher).await),
                None => None,
            };
            let known = VoucherFacts {
                limit: u32::try_from(limit).expect("a limit"),
                tally: balance.tally,
                holds: balance.holds,
                held,
                gate: None,
            };
            facts.vouchers.insert(*voucher, known);
        }
        facts.orders = Self::told_of(&quiet, history).await;
        if let Some(ledger) = ledger {
            facts.money = Some(ledger.money().await);
            facts.look_behind_the_gate(ledger).await;
            for voucher in vouchers {
                for (order, stored) in ledger.orders(*voucher).await {
                    // What the buyer was shown counts; the ledger adds what he is not shown.
                    let shown = facts.orders.entry(order).or_insert(stored.clone());
                    shown.ticket = stored.ticket;
                    shown.served_at = stored.served_at;
                    shown.row = stored.row;
                }
            }
        }
        facts
    }

    async fn look_behind_the_gate(&mut self, ledger: &Ledger) {
        let Some(gate) = ledger.gate().await else {
            return;
        };
        self.gate_asked = true;
        for (voucher, known) in &mut self.vouchers {
            known.gate = gate.facts(*voucher).await;
        }
    }

    /// What a buyer is told of his order: to come back later is no answer, for a while.
    async fn answered(shop: &Shop, order: OrderId, buyer: BuyerId) -> Reply {
        let begun = Instant::now();
        loop {
            let reply = shop.order(order, buyer).await;
            if reply.status != 503 || begun.elapsed() > ANSWERED_WITHIN {
                return reply;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn told_of(shop: &Shop, history: &History) -> BTreeMap<OrderId, OrderFacts> {
        let mut told: Vec<(OrderId, BuyerId)> = history
            .events()
            .into_iter()
            .flat_map(|event| {
                match event.told {
                    Told::Purchase(answer) => answer.orders(),
                    _ => Vec::new(),
                }
                .into_iter()
                .map(move |order| (order, event.buyer))
            })
            .collect();
        told.sort_unstable();
        told.dedup();
        stream::iter(told)
            .map(async |(order, buyer)| {
                let reply = Self::answered(shop, order, buyer).await;
                (reply.status == 200).then(|| (order, OrderFacts::read(&reply)))
            })
            .buffer_unordered(16)
            .filter_map(std::future::ready)
            .collect()
            .await
    }
}

impl OrderFacts {
    fn read(reply: &Reply) -> Self {
        Self {
            voucher: reply.voucher_id("voucher_id"),
            buyer: reply.word("user_id").parse().expect("an id"),
            quantity: u32::try_from(reply.number("quantity")).expect("a quantity"),
            status: reply.order_status(),
            reason: reply.body["reason"].as_str().map(ToOwned::to_owned),
            shown: true,
            ticket: None,
            served_at: None,
            row: None,
        }
    }

    /// Whether it has its units.
    pub fn is_live(&self) -> bool {
        self.status.is_live()
    }

    /// Whether it ever had units.
    pub fn was_served(&self) -> bool {
        self.is_live()
            || matches!(
                self.status,
                OrderStatus::Cancelled | OrderStatus::Expired | OrderStatus::Refunded
            )
    }
}

//! What the two books say behind the service's back: the gate in Redis, and money and keys in MySQL.

use std::collections::BTreeMap;

use seckill_domain::{BuyerId, OrderId, VoucherId};

use super::gate::Gate;

/// What the gate keeps of one voucher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateFacts {
    /// Units that are free.
    pub free: i64,
    /// Who holds which orders, and how many units of each.
    pub holders: BTreeMap<BuyerId, BTreeMap<OrderId, i64>>,
    /// Who waits with which order, the head first.
    pub waiters: Vec<(BuyerId, OrderId)>,
    /// Which order a buyer's idempotency key stands for.
    pub uses: BTreeMap<(BuyerId, String), OrderId>,
    /// Decisions that no consumer of the stream has acknowledged, whether or not one has read them.
    pub pending: Vec<String>,
}

/// What only the ledger knows of an order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFacts {
    /// The idempotency key that it was bought with.
    pub key: Option<String>,
    /// The provider's id of the payment that it was paid with.
    pub payment: Option<String>,
    /// The end of its payment window, in milliseconds of the database's clock.
    pub due_ms: Option<i64>,
    /// When it last moved on, by the same clock.
    pub moved_ms: i64,
}

/// Money that came and money that goes back, by the provider's id of the payment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MoneyFacts {
    /// For which order, and what became of it, in the words of the database: `paid`, or that it
    /// goes back.
    pub payments: BTreeMap<String, (OrderId, String)>,
    /// For which order, and why.
    pub refunds: BTreeMap<String, (OrderId, String)>,
}

impl Gate {
    /// What it keeps of a voucher; `None` if that is not at the gate, or not open there.
    pub async fn facts(&self, voucher: VoucherId) -> Option<GateFacts> {
        let mark = format!(":v{voucher}:sale");
        let keys = self.keys().await;
        let sale = keys.keys().find(|name| name.ends_with(&mark))?;
        let stem = sale.strip_suffix("sale").expect("its end");
        let partition = stem.split(":v").next().expect("its beginning");
        let mut now = redis::cmd("HMGET");
        now.arg(sale).arg(&["epoch", "free"]);
        let (opened, free): (Option<String>, Option<i64>) = self.run(&now).await;
        let mut epoch = redis::cmd("HGET");
        epoch.arg(format!("{partition}:meta")).arg("epoch");
        let epoch: Option<String> = self.run(&epoch).await;
        if opened.is_none() || opened != epoch {
            return None;
        }
        let hash = async |piece: &str| -> BTreeMap<String, String> {
            self.run(redis::cmd("HGETALL").arg(format!("{stem}{piece}")))
                .await
        };
        let stream = format!("{partition}:stream:{}", epoch.unwrap_or_default());
        Some(GateFacts {
            free: free?,
            holders: holders(&hash("holders").await),
            waiters: self.waiters(stem, &hash("seats").await).await,
            uses: uses(&hash("uses").await),
            pending: self.pending_of(&stream, voucher).await,
        })
    }

    async fn waiters(
        &self,
        stem: &str,
        seats: &BTreeMap<String, String>,
    ) -> Vec<(BuyerId, OrderId)> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(format!("{stem}waiters")).arg(0).arg(-1);
        let turns: Vec<(String, f64)> = self.run(range.arg("WITHSCORES")).await;
        let seat = |(buyer, ticket): (String, f64)| {
            let order = seat(seats, &buyer, ticket);
            let order = order.unwrap_or_else(|| panic!("buyer {buyer} waits without a seat"));
            (buyer.parse().expect("a buyer"), order)
        };
        turns.into_iter().map(seat).collect()
    }

    /// Decisions about this voucher that stand in a stream and are not acknowledged.
    async fn pending_of(&self, stream: &str, voucher: VoucherId) -> Vec<String> {
        let mut found = Vec::new();
        for group in self.groups(stream).await {
            let mut pending = redis::cmd("XPENDING");
            pending.arg(stream).arg(&group.name);
            let pending: Vec<(String, String, i64, i64)> =
                self.run(pending.arg("-").arg("+").arg(10_000)).await;
            for (id, ..) in pending {
                found.extend(self.decisions(stream, &id, &id).await);
            }
            let unread = format!("({}", group.delivered);
            found.extend(self.decisions(stream, &unread, "+").await);
        }
        let voucher = voucher.to_string();
        found.retain(|decision| decision.split(' ').nth(1) == Some(&voucher));
        found
    }

    /// What stands in a stream, a line for each decision.
    async fn decisions(&self, stream: &str, from: &str, to: &str) -> Vec<String> {
        let mut range = redis::cmd("XRANGE");
        let entries: Vec<(String, Vec<(String, String)>)> =
            self.run(range.arg(stream).arg(from).arg(to)).await;
        let fields = entries.into_iter().flat_map(|(_, fields)| fields);
        fields
            .filter(|(name, _)| name == "d")
            .flat_map(|(_, lines)| lines.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }
}

/// `order[:quantity[:p][:key]]` each, separated by spaces.
fn holders(hash: &BTreeMap<String, String>) -> BTreeMap<BuyerId, BTreeMap<OrderId, i64>> {
    let held = |token: &str| {
        let mut parts = token.split(':');
        let order = parts.next().expect("an order").parse().expect("an order");
        let quantity = parts.next().map_or(1, |text| text.parse().expect("units"));
        (order, quantity)
    };
    hash.iter()
        .map(|(buyer, tokens)| {
            let orders = tokens.split(' ').map(held).collect();
            (buyer.parse().expect("a buyer"), orders)
        })
        .collect()
}

/// `buyer key`, and `g|w order quantity`.
fn uses(hash: &BTreeMap<String, String>) -> BTreeMap<(BuyerId, String), OrderId> {
    hash.iter()
        .map(|(used, told)| {
            let (buyer, key) = used.split_once(' ').expect("a buyer and his key");
            let order = told.split(' ').nth(1).expect("an order");
            let used = (buyer.parse().expect("a buyer"), key.to_owned());
            (used, order.parse().expect("an order"))
        })
        .collect()
}

/// A block of sixteen turns has a line for each, `slot[:buyer] order[ quantity key]` with the slot in
/// hexadecimal; or `slot[:buyer].rest[ quantity key]`, after a line with what all orders begin with.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a turn is a whole number below 2^53"
)]
fn seat(seats: &BTreeMap<String, String>, buyer: &str, ticket: f64) -> Option<OrderId> {
    let ticket = ticket as u64;
    let block = seats.get(&(ticket / 16).to_string())?;
    let shared = block
        .lines()
        .next()
        .filter(|line| !line.contains([' ', '.']));
    let slot = format!("{:x}", ticket % 16);
    let line = |name: &str| {
        block.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (before, rest) = match rest.strip_prefix('.') {
                Some(rest) => (shared?, rest),
                None => ("", rest.strip_prefix(' ')?),
            };
            Some(format!("{before}{}", rest.split(' ').next()?))
        })
    };
    let order = line(&format!("{slot}:{buyer}")).or_else(|| line(&slot))?;
    order.parse().ok()
}

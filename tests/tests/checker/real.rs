//! What is planted in Redis and MySQL after a real run: what is gathered there is judged, and each
//! wrong is found.

use futures::future::join_all;
use seckill_domain::invariants::InvariantId;
use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Facts, Gate, Ledger, Offer, Rule, Shop, Site, Violation, audit, buyers, judge,
};

use crate::PROGRAM;

/// A sale that is over and sound: three units, the first one paid, and three who wait. Everybody
/// came with the key `once`.
struct Sale {
    shop: Shop,
    ledger: Ledger,
    gate: Gate,
    voucher: VoucherId,
    orders: Vec<(BuyerId, OrderId)>,
}

impl Sale {
    async fn over(site: &Site, shop: &Shop) -> Self {
        let shop = shop.clone().writing(&std::sync::Arc::default());
        let voucher = shop.sell(&Offer::of(3).waitlist(5)).await;
        let mut orders = Vec::new();
        for who in buyers(6) {
            let answer = shop.buy_some(voucher, who, 1, Some("once")).await;
            orders.push((who, answer.order().expect("an order")));
        }
        for (who, order) in &orders[..3] {
            shop.settled(*order, *who).await;
        }
        let (who, order) = orders[0];
        shop.pay(order, who, "p").await.assert_status(200);
        let ledger = site.ledger().await;
        let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
        verdict.assert_holds();
        Self {
            shop,
            ledger,
            gate: site.gate().await,
            voucher,
            orders,
        }
    }

    /// The whole collection, and the verdict.
    async fn found(&self) -> Vec<Violation> {
        let (shop, history) = (&self.shop, self.shop.history());
        let facts = Facts::gather(shop, history, &[self.voucher], Some(&self.ledger)).await;
        judge(&history.events(), &facts).violations
    }

    /// Changes the ledger by hand.
    async fn change(&self, statement: &'static str, about: u64) {
        let changed = self.ledger.change(statement, about).await;
        assert!(changed > 0, "nothing was planted by {statement}");
    }

    async fn key(&self, piece: &str) -> String {
        let [key] = self.gate.keys_of(self.voucher, [piece]).await;
        key
    }

    /// The second buyer has the third one's order, and the other way round.
    async fn swap_at_the_gate(&self) {
        let holders = self.key("holders").await;
        let [(one, first), (other, second)] = [self.orders[1], self.orders[2]];
        let mut swap = redis::cmd("HSET");
        swap.arg(&holders)
            .arg(one.to_string())
            .arg(second.to_string());
        swap.arg(other.to_string()).arg(first.to_string());
        assert_eq!(self.gate.run::<i64>(&swap).await, 0);
    }

    async fn plant(&self, plant: Plant) {
        let (who, order) = self.orders[1];
        match plant {
            Plant::Ledger(statement) => self.change(statement, order.get()).await,
            Plant::Sale(statement) => self.change(statement, self.voucher.get()).await,
            Plant::Holder => assert!(self.gate.drop_holder(self.voucher, who).await),
            Plant::Swap => self.swap_at_the_gate().await,
            Plant::Queue => {
                let waiters = self.key("waiters").await;
                let mut first = redis::cmd("ZRANGE");
                first.arg(&waiters).arg(0).arg(1).arg("WITHSCORES");
                let two: Vec<(String, f64)> = self.gate.run(&first).await;
                let mut swap = redis::cmd("ZADD");
                swap.arg(&waiters).arg(two[0].1).arg(&two[1].0);
                swap.arg(two[1].1).arg(&two[0].0);
                self.gate.run::<i64>(&swap).await;
            }
            Plant::Use => {
                let mut other = redis::cmd("HSET");
                other
                    .arg(self.key("uses").await)
                    .arg(format!("{who} once"))
                    .arg(format!("g {} 1", self.orders[2].1));
                assert_eq!(self.gate.run::<i64>(&other).await, 0);
            }
        }
    }
}

/// A wrong that is planted.
#[derive(Debug, Clone, Copy)]
enum Plant {
    /// By a statement about the order of the second buyer, who has not paid.
    Ledger(&'static str),
    /// By a statement about the voucher.
    Sale(&'static str),
    /// The gate forgets that the second buyer has his unit.
    Holder,
    /// At the gate two buyers have each other's orders.
    Swap,
    /// At the gate the first two who wait have changed places.
    Queue,
    /// At the gate the second buyer's key stands for another order.
    Use,
}

const PLANTS: &[(&str, Plant, InvariantId)] = &[
    (
        "lost",
        Plant::Ledger("DELETE FROM orders WHERE id = ?"),
        InvariantId::NoSilentLoss,
    ),
    (
        "doubled",
        Plant::Ledger(
            "INSERT INTO orders (id, voucher_id, user_id, quantity, amount_minor, currency, status, \
             created_at, expires_at, updated_at) SELECT id + 1099511627776, voucher_id, user_id, quantity, \
             amount_minor, currency, status, created_at, expires_at, updated_at \
             FROM orders WHERE id = ?",
        ),
        InvariantId::Limit,
    ),
    (
        "swapped",
        Plant::Sale(
            "UPDATE orders o JOIN (SELECT voucher_id, SUM(user_id) AS both_users FROM orders \
             WHERE voucher_id = ? AND status = 'pending_payment' GROUP BY voucher_id) s \
             ON o.voucher_id = s.voucher_id SET o.user_id = s.both_users - o.user_id, \
             o.idempotency_key = NULL WHERE o.status = 'pending_payment'",
        ),
        InvariantId::NoSilentLoss,
    ),
    (
        "a queue jump in the ledger",
        Plant::Sale(
            "UPDATE orders o JOIN (SELECT voucher_id, MIN(ticket) + MAX(ticket) AS both_ends \
             FROM orders WHERE voucher_id = ? AND status = 'waiting' GROUP BY voucher_id) s \
             ON o.voucher_id = s.voucher_id SET o.ticket = s.both_ends - o.ticket \
             WHERE o.status = 'waiting'",
        ),
        InvariantId::FairWaitlist,
    ),
    (
        "cancelled by nobody",
        Plant::Ledger("UPDATE orders SET status = 'cancelled' WHERE id = ?"),
        InvariantId::PaidXorExpired,
    ),
    (
        "expired before its time",
        Plant::Ledger("UPDATE orders SET status = 'expired' WHERE id = ?"),
        InvariantId::PaidXorExpired,
    ),
    (
        "money that nobody wrote down",
        Plant::Sale(
            "DELETE p FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.voucher_id = ?",
        ),
        InvariantId::PaidXorExpired,
    ),
    (
        "counted twice",
        Plant::Sale("UPDATE voucher_stock SET stock_units = stock_units + 1 WHERE voucher_id = ?"),
        InvariantId::Once,
    ),
    (
        "forgotten by the gate",
        Plant::Holder,
        InvariantId::Conservation,
    ),
    (
        "swapped at the gate",
        Plant::Swap,
        InvariantId::Conservation,
    ),
    (
        "a queue jump at the gate",
        Plant::Queue,
        InvariantId::FairWaitlist,
    ),
    (
        "a key that stands for another order",
        Plant::Use,
        InvariantId::Idempotent,
    ),
];

#[tokio::test]
async fn what_is_planted_after_a_real_run_is_found() {
    let Some(site) = Site::shared(PROGRAM).await else {
        return;
    };
    // Nobody mends what is planted.
    let site = site.with("SECKILL_RECONCILE_EVERY_S", "86400");
    let process = site.start().await;
    let shop = process.shop();
    let one = async |(what, plant, promise): &(&str, Plant, InvariantId)| {
        let sale = Sale::over(&site, &shop).await;
        sale.plant(*plant).await;
        let found = sale.found().await;
        let named = found.iter().any(|it| it.broken == Rule::Promise(*promise));
        assert!(named, "{what}: {found:?}");
    };
    join_all(PLANTS.iter().map(one)).await;
}

//! Everything at once: people who buy, wait, leave, pay, cancel and forget, while processes and
//! servers die and come back. In the end every promise holds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    History, Lost, Offer, Purchase, Reply, Shop, Site, Told, Verdict, audit, buyer, eventually,
};

use crate::on_own_servers;

on_own_servers!(every_promise_holds_through_a_storm);

/// People at a time.
const PEOPLE: u64 = 24;
/// Nobody tries anything more often than this.
const TRIES: usize = 400;

/// Where people go, and for how long.
struct Street {
    shops: Mutex<Vec<Shop>>,
    vouchers: [VoucherId; 2],
    closing: AtomicBool,
}

impl Street {
    /// These processes are open.
    fn open(&self, shops: Vec<Shop>) {
        *self.shops.lock().unwrap_or_else(PoisonError::into_inner) = shops;
    }

    fn shop(&self, turn: usize) -> Shop {
        let shops = self.shops.lock().unwrap_or_else(PoisonError::into_inner);
        shops[turn % shops.len()].clone()
    }

    /// Asks one process after the other until there is an answer that counts.
    async fn insist<T>(
        &self,
        mut ask: impl AsyncFnMut(Shop) -> Result<T, Lost>,
        again: impl Fn(&T) -> bool,
    ) -> T {
        for turn in 0..TRIES {
            match ask(self.shop(turn)).await {
                Ok(answer) if !again(&answer) => return answer,
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        panic!("no answer after {TRIES} tries");
    }

    /// One person after the other, until the street closes.
    async fn walk(&self, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed);
        while !self.closing.load(Ordering::Relaxed) {
            self.buy(&mut chance, buyer()).await;
        }
    }

    async fn buy(&self, chance: &mut StdRng, who: BuyerId) {
        let voucher = self.vouchers[chance.random_range(0..2)];
        let quantity = chance.random_range(1..=2);
        let key = Some("mine");
        let buy = async |shop: Shop| shop.try_buy(voucher, who, quantity, key).await;
        let again = |answer: &Purchase| matches!(answer.code(), "unavailable" | "overloaded");
        match self.insist(buy, again).await {
            Purchase::Granted { order, .. } => self.decide(chance, who, order).await,
            Purchase::Waitlisted { order, .. } => self.wait(chance, who, voucher, order).await,
            Purchase::Refused { code, .. } => assert_eq!(code, "sold_out"),
            other @ Purchase::AlreadyHeld { .. } => panic!("{other:?} to a new buyer"),
        }
    }

    /// Pays, gives up, or forgets.
    async fn decide(&self, chance: &mut StdRng, who: BuyerId, order: OrderId) {
        let thought = Duration::from_millis(chance.random_range(0..800));
        tokio::time::sleep(thought).await;
        let again = |reply: &Reply| reply.body["retryable"] == true;
        let reply = match chance.random_range(0..20) {
            0..3 => {
                let pay = async |shop: Shop| shop.try_pay(order, who, "p-1").await;
                self.insist(pay, again).await
            }
            3..14 => {
                let cancel = async |shop: Shop| shop.try_cancel(order, who).await;
                self.insist(cancel, again).await
            }
            _ => return,
        };
        let too_late = matches!(reply.code(), "order_expired" | "order_rejected");
        assert!(reply.status == 200 || too_late, "{}", reply.text);
    }

    /// Waits for his turn, or leaves after a while.
    async fn wait(&self, chance: &mut StdRng, who: BuyerId, voucher: VoucherId, order: OrderId) {
        let patience = chance.random_range(2..12);
        let look = async |shop: Shop| shop.try_order(order, who).await;
        for _ in 0..patience {
            let reply = self.insist(look, |reply| reply.status == 503).await;
            match reply.order_status() {
                OrderStatus::Waiting => tokio::time::sleep(Duration::from_millis(100)).await,
                _ => return self.decide(chance, who, order).await,
            }
        }
        let leave = async |shop: Shop| shop.try_leave(voucher, who).await;
        let reply = self.insist(leave, |reply| reply.status == 503).await;
        if reply.code() == "already_promoted" {
            self.decide(chance, who, order).await;
        } else {
            assert_eq!(reply.status, 204, "{}", reply.text);
        }
    }
}

async fn every_promise_holds_through_a_storm(site: Site) {
    let seed: u64 = rand::rng().random();
    eprintln!("seed {seed}");
    let history = Arc::new(History::default());
    let mut processes = vec![site.start().await, site.start().await];
    let open = |processes: &[seckill_tests::harness::Process]| -> Vec<Shop> {
        let shops = processes.iter().map(seckill_tests::harness::Process::shop);
        shops.map(|shop| shop.writing(&history)).collect()
    };
    let shop = processes[0].shop();
    let offer = Offer::of(12).limit(2).waitlist(40).payment_window_s(2);
    let street = Street {
        shops: Mutex::new(open(&processes)),
        vouchers: [shop.sell(&offer).await, shop.sell(&offer).await],
        closing: AtomicBool::new(false),
    };
    let people = join_all((0..PEOPLE).map(|number| street.walk(seed.wrapping_add(number))));
    let weather = async {
        let servers = site.servers();
        busy(&history).await;
        processes.remove(0).kill();
        street.open(open(&processes));
        busy(&history).await;
        servers.redis.restart().await;
        processes.push(site.start().await);
        street.open(open(&processes));
        busy(&history).await;
        servers.mysql.kill().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        processes.remove(0).kill();
        street.open(open(&processes));
        servers.mysql.start().await;
        busy(&history).await;
        servers.redis.freeze();
        tokio::time::sleep(Duration::from_secs(3)).await;
        servers.redis.thaw();
        busy(&history).await;
        street.closing.store(true, Ordering::Relaxed);
    };
    futures::join!(people, weather);

    let ledger = site.ledger().await;
    let shop = processes[0].shop();
    forgotten_orders_expire(&shop, &street.vouchers).await;
    let verdict = audit(&shop, &history, &street.vouchers, Some(&ledger)).await;
    verdict.assert_holds().assert_none_rejected();
    eventually("the gate follows", Duration::from_secs(20), async || {
        let waiting = ledger.waiting_updates().await;
        (waiting == 0).then_some(()).ok_or(waiting.to_string())
    })
    .await;
    everything_happened(&verdict);
}

/// Waits until nothing can happen by itself any more: whoever was served and forgot has lost his
/// units to the next, down to the last one who waits.
async fn forgotten_orders_expire(shop: &Shop, vouchers: &[VoucherId]) {
    for voucher in vouchers {
        eventually("all is quiet", Duration::from_mins(1), async || {
            let tally = shop.balance(*voucher).await.tally;
            let waiting = shop.voucher(*voucher).await.number("waitlist_length");
            let quiet = tally.awaiting_payment == 0 && waiting == 0;
            quiet
                .then_some(())
                .ok_or(format!("{tally:?}, {waiting} wait"))
        })
        .await;
    }
}

/// A pass must mean something.
fn everything_happened(verdict: &Verdict) {
    let orders = verdict.facts.orders.values();
    let mut count: BTreeMap<OrderStatus, usize> = BTreeMap::new();
    for order in orders.clone() {
        *count.entry(order.status).or_default() += 1;
    }
    let promoted = orders.filter(|order| order.ticket.is_some() && order.was_served());
    let promoted = promoted.count();
    for status in [
        OrderStatus::Paid,
        OrderStatus::Cancelled,
        OrderStatus::Expired,
        OrderStatus::Withdrawn,
    ] {
        assert!(count.contains_key(&status), "nothing was {status:?}");
    }
    assert!(promoted > 0, "nobody was promoted");
}

/// Waits until people were given something again, and some more time has gone by.
async fn busy(history: &History) {
    let since = history.now();
    eventually("people are served", Duration::from_secs(30), async || {
        let events = history.events();
        let served = |told: &Told| match told {
            Told::Purchase(answer) => answer.order().is_some(),
            Told::Order(_) => true,
            _ => false,
        };
        let count = events
            .iter()
            .filter(|event| event.begun > since && served(&event.told))
            .count();
        (count >= 40).then_some(()).ok_or(count.to_string())
    })
    .await;
}

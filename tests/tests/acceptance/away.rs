//! The database is away: everybody is told what is known to be true, and nothing else.

use std::time::{Duration, Instant};

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{Offer, Purchase, Reply, Shop, Site, audit, buyer, eventually};

use crate::{on_own_servers, on_own_stores};

on_own_servers!(
    a_dead_database_is_not_guessed_at,
    a_silent_database_is_not_guessed_at,
);

on_own_stores!(whoever_left_does_not_wait_whatever_the_ledger_knows);

/// Nobody waits longer for an answer, whatever is away.
const ANSWERED_WITHIN: Duration = Duration::from_secs(7);

/// A sale with an order in every stage that the ledger knows.
struct Known {
    voucher: VoucherId,
    pending: (BuyerId, OrderId),
    cancelled: (BuyerId, OrderId),
    paid: (BuyerId, OrderId),
    promoted: (BuyerId, OrderId),
    waiting: (BuyerId, OrderId),
}

impl Known {
    /// Everything is bought under the key `mine`.
    async fn of(shop: &Shop) -> Self {
        let scarce = shop.sell(&Offer::of(4).waitlist(5)).await;
        let mut bought = Vec::new();
        for _ in 0..4 {
            let who = buyer();
            let order = shop.buy_some(scarce, who, 1, Some("mine")).await;
            let order = order.expect_granted();
            shop.settled(order, who).await;
            bought.push((who, order));
        }
        let mut seats = Vec::new();
        for _ in 0..2 {
            let who = buyer();
            let place = shop.buy_some(scarce, who, 1, Some("mine")).await;
            seats.push((who, place.expect_waitlisted().0));
        }
        let known = Self {
            voucher: scarce,
            pending: bought[0],
            cancelled: bought[1],
            paid: bought[2],
            promoted: seats[0],
            waiting: seats[1],
        };
        let (who, order) = known.paid;
        shop.pay(order, who, "p-1").await.assert_status(200);
        let (who, order) = known.cancelled;
        shop.cancel(order, who).await.assert_status(200);
        let (who, order) = known.promoted;
        let before = [OrderStatus::Waiting, OrderStatus::Queued];
        let seen = shop.order_past(order, who, &before).await;
        assert_eq!(seen.word("status"), "pending_payment");
        shop.balanced(scarce).await;
        known
    }

    fn in_ledger(&self) -> [(BuyerId, OrderId); 4] {
        [self.pending, self.cancelled, self.paid, self.promoted]
    }
}

async fn in_time<T>(answer: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let answer = answer.await;
    let took = begun.elapsed();
    assert!(took < ANSWERED_WITHIN, "answered after {took:?}");
    answer
}

/// Panics unless somebody is told to come again.
#[track_caller]
fn assert_put_off(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.text);
    reply.assert_is_problem();
    assert_eq!(reply.body["retryable"], true, "{}", reply.text);
    assert!(
        !reply.header("retry-after").is_empty(),
        "{:?}",
        reply.headers
    );
}

async fn a_dead_database_is_not_guessed_at(site: Site) {
    let mysql = &site.servers().mysql;
    guess_nothing(
        &site,
        async || mysql.kill().await,
        async || mysql.start().await,
    )
    .await;
}

async fn a_silent_database_is_not_guessed_at(site: Site) {
    let mysql = &site.servers().mysql;
    guess_nothing(&site, async || mysql.freeze(), async || mysql.thaw()).await;
}

async fn guess_nothing(site: &Site, away: impl AsyncFn(), back: impl AsyncFn()) {
    let (one, other) = (site.start().await, site.start().await);
    let (here, there) = (one.shop(), other.shop().writing(&std::sync::Arc::default()));
    let known = Known::of(&here).await;
    let fresh = here.sell(&Offer::of(5)).await;
    // Processes look once a second what is on sale.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    away().await;
    let late = buyer();
    let bought = in_time(here.buy_some(fresh, late, 1, Some("mine"))).await;
    let queued = (late, bought.expect_granted());
    // Both processes, again and again: by now nobody can have seen any of it a moment ago.
    for round in 0..2 {
        for shop in [&here, &there] {
            futures::join!(
                what_the_ledger_has(shop, &known),
                what_the_gate_has(shop, &known),
                what_is_queued(shop, fresh, queued, round),
            );
        }
    }
    back().await;
    let (who, order) = queued;
    eventually("it heals", Duration::from_secs(30), async || {
        let reply = here.try_pay(order, who, "p-2").await;
        let reply = reply.map_err(|lost| lost.to_string())?;
        (reply.status == 200).then_some(()).ok_or(reply.text)
    })
    .await;
    let (who, order) = known.cancelled;
    let status = OrderStatus::Cancelled;
    let replay = here.buy_some(known.voucher, who, 1, Some("mine")).await;
    assert_eq!(replay, Purchase::Granted { order, status });
    let ledger = site.ledger().await;
    let vouchers = [known.voucher, fresh];
    let verdict = audit(&here, here.history(), &vouchers, Some(&ledger)).await;
    verdict.assert_holds().assert_none_rejected();
}

/// Only the ledger knows what became of an order that it has.
async fn what_the_ledger_has(shop: &Shop, known: &Known) {
    for (who, order) in known.in_ledger() {
        let (seen, replay) = futures::join!(
            in_time(shop.order(order, who)),
            in_time(shop.buy_some(known.voucher, who, 1, Some("mine"))),
        );
        assert_put_off(&seen);
        assert_eq!(replay.code(), "unavailable", "{replay:?}");
    }
    let (who, order) = known.pending;
    let (paid, cancelled) = futures::join!(
        in_time(shop.pay(order, who, "p-1")),
        in_time(shop.cancel(order, who)),
    );
    assert_put_off(&paid);
    assert_put_off(&cancelled);
}

/// Who holds and who waits is the gate's to know.
async fn what_the_gate_has(shop: &Shop, known: &Known) {
    let (who, order) = known.pending;
    let again = in_time(shop.buy(known.voucher, who)).await;
    assert_eq!(again.expect_already_held(), order);
    let (who, order) = known.waiting;
    let again = in_time(shop.buy(known.voucher, who)).await;
    assert_eq!(again.expect_waitlisted(), (order, 1));
    let place = in_time(shop.place(known.voucher, who)).await;
    assert_eq!(place.assert_status(200).number("position"), 1);
    // Where the order is, though, the ledger may know better.
    let seen = in_time(shop.order(order, who)).await;
    assert!(
        seen.status == 503 || seen.word("status") == "waiting",
        "{}",
        seen.text
    );
}

/// What only the gate has is readable at once, also through a process that has shown none of its orders.
async fn what_is_queued(shop: &Shop, voucher: VoucherId, queued: (BuyerId, OrderId), round: i32) {
    let (who, order) = queued;
    let seen = in_time(shop.order(order, who)).await;
    assert_eq!(seen.assert_status(200).word("status"), "queued", "{round}");
    assert_eq!(seen.number("amount_minor"), 8_000);
    let replay = in_time(shop.buy_some(voucher, who, 1, Some("mine"))).await;
    let status = OrderStatus::Queued;
    assert_eq!(replay, Purchase::Granted { order, status });
    let early = in_time(shop.pay(order, who, "p-1")).await;
    assert!(
        early.status == 503 || early.code() == "order_queued",
        "{}",
        early.text
    );
}

/// Two give up their places while no order writer gets anything done: one whose place the ledger
/// has, and one of whom it has not heard. Nobody is told again that he waits.
async fn whoever_left_does_not_wait_whatever_the_ledger_knows(site: Site) {
    let process = site.start().await;
    let (shop, ledger) = (process.shop(), site.ledger().await);
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let join = async || {
        let who = buyer();
        let place = shop.buy_some(voucher, who, 1, Some("mine")).await;
        (who, place.expect_waitlisted().0)
    };
    let known = join().await;
    eventually("the ledger has it", Duration::from_secs(10), async || {
        let orders = ledger.orders(voucher).await;
        let there = orders.contains_key(&known.1);
        there.then_some(()).ok_or(format!("{orders:?}"))
    })
    .await;
    let held = ledger.hold_writers().await;
    let new = join().await;
    let closed_out = join().await;
    shop.leave(voucher, known.0).await.assert_status(204);
    let left = shop.cancel(new.1, new.0).await;
    assert_eq!(left.assert_status(200).word("status"), "withdrawn");
    for (who, order) in [known, new] {
        is_over(&shop, voucher, who, order, OrderStatus::Withdrawn).await;
        let again = shop.cancel(order, who).await;
        assert_eq!(again.assert_status(200).word("status"), "withdrawn");
        shop.place(voucher, who)
            .await
            .assert_problem(404, "not_waiting");
    }
    shop.steer(voucher, "close").await.assert_status(200);
    let (who, order) = closed_out;
    is_over(&shop, voucher, who, order, OrderStatus::ClosedOut).await;
    held.release().await;
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    verdict.assert_holds();
}

async fn is_over(
    shop: &Shop,
    voucher: VoucherId,
    who: BuyerId,
    order: OrderId,
    status: OrderStatus,
) {
    let seen = shop.order(order, who).await;
    assert_eq!(seen.order_status(), status, "{}", seen.text);
    assert!(seen.body["position"].is_null(), "{}", seen.text);
    let call = seckill_tests::harness::Call::post(format!("/v1/vouchers/{voucher}/purchases"));
    let replay = shop
        .ask(call.by(who).header("idempotency-key", "mine"))
        .await;
    assert_eq!(replay.word("outcome"), "waitlisted", "{}", replay.text);
    assert_eq!(replay.order_id("order_id"), order);
    assert_eq!(replay.order_status(), status, "{}", replay.text);
}

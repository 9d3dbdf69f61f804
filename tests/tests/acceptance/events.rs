//! Following an order: server-sent events.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId};
use seckill_tests::harness::{
    Call, Follower, News, Notice, Offer, Shop, Site, audit, buyer, buyers,
};

use crate::{on_every_stack, on_own_stores};

on_every_stack!(
    an_order_is_followed_until_it_is_paid,
    what_was_missed_arrives_once,
    coming_again_after_every_event_misses_nothing,
    those_who_wait_are_told,
    only_the_buyer_may_follow,
);
on_own_stores!(
    an_order_is_followed_from_the_queue_on,
    another_process_raises_the_event,
);

/// News come at once, and not with the next look for missed ones.
const SOON: Duration = Duration::from_secs(4);

fn told(news: &[News]) -> Vec<(&str, &str)> {
    news.iter().map(News::told).collect()
}

/// Panics unless the numbers rise: nothing comes twice, and nothing late.
#[track_caller]
fn assert_rising(news: &[News]) {
    let rise = news.windows(2).all(|pair| pair[0].id < pair[1].id);
    assert!(rise, "{news:?}");
}

async fn soon<T>(news: impl Future<Output = T>) -> T {
    let news = tokio::time::timeout(SOON, news).await;
    news.unwrap_or_else(|_| panic!("nothing came within {SOON:?}"))
}

async fn snapshot(follower: &mut Follower, order: OrderId) -> News {
    let first = soon(follower.next()).await;
    assert_eq!(first.name, "snapshot", "{first:?}");
    assert_eq!(first.data["id"], order.to_string(), "{first:?}");
    first
}

async fn an_order_is_followed_until_it_is_paid(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let mut follower = shop.follow(order, me).await;
    let first = snapshot(&mut follower, order).await;
    let mut news = Vec::new();
    if first.status() == "queued" {
        news.extend(soon(follower.until("pending_payment")).await);
    } else {
        assert_eq!(first.status(), "pending_payment");
    }
    shop.pay(order, me, "p-1").await.assert_status(200);
    news.extend(soon(follower.until("paid")).await);
    let all = [("status", "pending_payment"), ("status", "paid")];
    assert_eq!(told(&news), all[2 - news.len()..], "{first:?} {news:?}");
    assert_rising(&news);
    assert!(news[0].id > first.id);
    for one in &news {
        assert_eq!(one.data["order_id"], order.to_string());
        assert_eq!(one.data["voucher_id"], voucher.to_string());
        assert_eq!(one.data["event_id"], one.id.to_string());
        assert!(one.data["at"].is_string());
    }
}

/// Buys, pays, and has it refunded: three events, of which the last two come together.
async fn a_whole_life(shop: &Shop) -> (OrderId, BuyerId) {
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    shop.pay(order, me, "p-1").await.assert_status(200);
    let refund = Call::post(format!("/v1/admin/orders/{order}/refunds")).by_admin();
    shop.ask(refund).await.assert_status(200);
    (order, me)
}

async fn what_was_missed_arrives_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let mut follower = shop.follow(order, me).await;
    let seen = snapshot(&mut follower, order).await;
    assert_eq!(seen.status(), "pending_payment");
    drop(follower);
    shop.pay(order, me, "p-1").await.assert_status(200);
    let second = shop.hear(&Notice::of(order, "p-2")).await;
    assert_eq!(second.assert_status(200).word("outcome"), "refunded");

    let mut again = shop.follow_after(order, me, seen.id).await;
    let missed = [soon(again.next()).await, soon(again.next()).await];
    assert_eq!(told(&missed), [("status", "paid"), ("refund_recorded", "")]);
    assert_rising(&missed);
    // Then the stream goes on, with nothing of that again.
    let refund = Call::post(format!("/v1/admin/orders/{order}/refunds")).by_admin();
    shop.ask(refund).await.assert_status(200);
    let more = soon(again.until("refunded")).await;
    assert!(more[0].id > missed[1].id, "{missed:?} {more:?}");
    assert_rising(&more);
    drop(again);
    // Whoever has seen all is told nothing; whoever has seen nothing, everything.
    let mut all = shop.follow_after(order, me, 0).await;
    let all = soon(all.until("refunded")).await;
    let expected = [
        ("status", "pending_payment"),
        ("status", "paid"),
        ("refund_recorded", ""),
        ("status", "refunded"),
    ];
    assert_eq!(told(&all)[..4], expected);
    let last = shop.follow_after(order, me, all[1].id).await;
    assert_eq!(first_of(last).await, all[2]);
}

async fn first_of(mut follower: Follower) -> News {
    soon(follower.next()).await
}

/// The connection breaks after every single event.
async fn coming_again_after_every_event_misses_nothing(site: &Site) {
    let shop = site.shop();
    let (order, me) = a_whole_life(&shop).await;
    let mut whole = shop.follow_after(order, me, 0).await;
    let mut seen = 0;
    let mut pieces = Vec::new();
    while pieces.last().map(News::status) != Some("refunded") {
        let one = first_of(shop.follow_after(order, me, seen).await).await;
        seen = one.id;
        pieces.push(one);
    }
    let whole = soon(whole.until("refunded")).await;
    assert_eq!(pieces, whole);
    assert_rising(&pieces);
}

async fn those_who_wait_are_told(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let mut seats = Vec::new();
    for who in buyers(3) {
        let (order, _) = shop.buy(voucher, who).await.expect_waitlisted();
        let mut follower = shop.follow(order, who).await;
        let first = snapshot(&mut follower, order).await;
        assert_eq!(first.status(), "waiting");
        seats.push((who, order, follower));
    }
    let (leaver, _, mut left) = seats.pop().expect("three");
    shop.leave(voucher, leaver).await.assert_status(204);
    soon(left.until("withdrawn")).await;
    let (_, _, mut last) = seats.pop().expect("two");
    let (_, _, mut first) = seats.pop().expect("one");
    shop.cancel(held, holder).await.assert_status(200);
    let news = soon(first.until("pending_payment")).await;
    assert_eq!(news.last().unwrap().name, "promoted", "{news:?}");
    shop.steer(voucher, "close").await.assert_status(200);
    soon(last.until("closed_out")).await;
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn only_the_buyer_may_follow(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let refused = async |order, who, seen| {
        let begun = shop.try_follow(order, who, seen).await;
        begun.expect_err("no stream")
    };
    let others = refused(order, buyer(), None).await;
    others.assert_problem(404, "order_not_found");
    let nobodys = refused(OrderId::new(buyer().get()), me, Some("0")).await;
    nobodys.assert_problem(404, "order_not_found");
    for bad in ["x", "-1", "01", "100000000000000000000"] {
        let reply = refused(order, me, Some(bad)).await;
        reply.assert_problem(422, "validation_failed");
    }
    // One buyer holds a few connections, and not all of them.
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(shop.follow(order, me).await);
    }
    let more = refused(order, me, None).await;
    more.assert_problem(429, "rate_limited");
}

async fn an_order_is_followed_from_the_queue_on(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let held = site.ledger().await.hold_writers().await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let mut follower = shop.follow(order, me).await;
    assert_eq!(snapshot(&mut follower, order).await.status(), "queued");
    held.release().await;
    let news = soon(follower.until("pending_payment")).await;
    assert_eq!(told(&news), [("status", "pending_payment")]);
    shop.hear(&Notice::of(order, "p-1"))
        .await
        .assert_status(200);
    let news = soon(follower.until("paid")).await;
    assert_eq!(told(&news), [("status", "paid")]);
}

/// One process answers calls, another does the work, and a third hears of the payment.
async fn another_process_raises_the_event(site: Site) {
    let site = site.with("SECKILL_ROLE", "api");
    let (one, other) = (site.start().await, site.start().await);
    let worker = site.with("SECKILL_ROLE", "worker").start().await;
    let (here, there) = (one.shop(), other.shop());
    let voucher = here.sell(&Offer::of(1).waitlist(5)).await;
    let (me, next) = (buyer(), buyer());
    let order = here.buy(voucher, me).await.expect_granted();
    let mut follower = here.follow(order, me).await;
    snapshot(&mut follower, order).await;
    here.settled(order, me).await;
    let (theirs, _) = there.buy(voucher, next).await.expect_waitlisted();
    let mut waiting = here.follow(theirs, next).await;
    assert_eq!(snapshot(&mut waiting, theirs).await.status(), "waiting");
    there.cancel(order, me).await.assert_status(200);
    soon(follower.until("cancelled")).await;
    soon(waiting.until("pending_payment")).await;
    there.pay(theirs, next, "p-1").await.assert_status(200);
    soon(waiting.until("paid")).await;
    drop(worker);
}

//! The waitlist: strictly in order of arrival.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Offer, Purchase, Shop, Site, audit, buyer, buyers, crowd, eventually,
};

use crate::on_every_stack;

on_every_stack!(
    whoever_came_first_is_served_first,
    leaving_gives_the_place_up,
    a_waiting_order_can_be_cancelled,
    expiry_serves_the_next,
    new_units_serve_the_next,
    a_pause_stops_promotions,
    closing_drains_the_list,
    closing_time_drains_the_list,
    a_crowd_waits_and_is_served_in_order,
);

async fn judged(site: &Site, shop: &Shop, voucher: VoucherId) {
    let ledger = site.ledger_if_real().await;
    let verdict = audit(shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

/// Waits until a waiting order has its units.
async fn promoted(shop: &Shop, order: OrderId, who: BuyerId) {
    let before = [OrderStatus::Waiting, OrderStatus::Queued];
    let reply = shop.order_past(order, who, &before).await;
    assert_eq!(reply.word("status"), "pending_payment");
}

async fn is_waiting(shop: &Shop, order: OrderId, who: BuyerId) -> bool {
    shop.order(order, who).await.order_status() == OrderStatus::Waiting
}

/// Five buyers within a second whose numbers sort differently as text and as numbers; the classic
/// mistakes: a place per click, ties sorted by text, freed units for whoever clicks first.
async fn whoever_came_first_is_served_first(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let mut holder = (buyer(), OrderId::new(0));
    holder.1 = shop.buy_settled(voucher, holder.0).await;
    let first = holder;
    let base = buyer().get() / 1_000 * 1_000 + 500_000;
    let people = [900, 10, 200, 7, 55].map(|n| BuyerId::new(base + n));
    let mut seats = Vec::new();
    for (place, who) in people.into_iter().enumerate() {
        let answer = shop.buy(voucher, who).await;
        let Purchase::Waitlisted {
            order,
            position,
            joined,
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!((position, joined), (place as u64 + 1, true));
        seats.push((who, order));
    }
    for (place, (who, order)) in seats.iter().enumerate() {
        let position = place as u64 + 1;
        let again = Purchase::Waitlisted {
            order: *order,
            position,
            joined: false,
        };
        assert_eq!(
            shop.buy(voucher, *who).await,
            again,
            "another click is no new place"
        );
        let place = shop.place(voucher, *who).await;
        assert_eq!(
            place.assert_status(200).number("position"),
            i64::try_from(position).unwrap()
        );
        assert_eq!(
            (place.number("length"), place.word("status")),
            (5, "waiting")
        );
        assert_eq!(
            shop.order(*order, *who).await.number("position"),
            place.number("position")
        );
    }
    let again = shop.buy(voucher, first.0).await;
    assert_eq!(again.expect_already_held(), first.1, "a holder never joins");
    assert_eq!(
        shop.buy(voucher, buyer()).await.code(),
        "sold_out",
        "the list is full"
    );

    for (who, order) in seats {
        shop.cancel(holder.1, holder.0).await.assert_status(200);
        promoted(&shop, order, who).await;
        assert_eq!(
            shop.buy(voucher, who).await.expect_already_held(),
            order,
            "the same id"
        );
        holder = (who, order);
    }
    judged(site, &shop, voucher).await;
}

async fn leaving_gives_the_place_up(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let people = buyers(3);
    let mut orders = Vec::new();
    for who in &people {
        orders.push(shop.buy(voucher, *who).await.expect_waitlisted().0);
    }
    shop.leave(voucher, people[0]).await.assert_status(204);
    shop.leave(voucher, people[0]).await.assert_status(204);
    shop.leave(voucher, buyer()).await.assert_status(204);
    shop.place(voucher, people[0])
        .await
        .assert_problem(404, "not_waiting");
    assert_eq!(shop.place(voucher, people[1]).await.number("position"), 1);
    let left = shop
        .order_past(orders[0], people[0], &[OrderStatus::Waiting])
        .await;
    assert_eq!(left.word("status"), "withdrawn");

    shop.cancel(held, holder).await.assert_status(200);
    promoted(&shop, orders[1], people[1]).await;
    let late = shop.leave(voucher, people[1]).await;
    late.assert_problem(409, "already_promoted");
    // Whoever left may join again, at the end.
    let (again, position) = shop.buy(voucher, people[0]).await.expect_waitlisted();
    assert_eq!(position, 2);
    assert_ne!(again, orders[0]);
    judged(site, &shop, voucher).await;
}

async fn a_waiting_order_can_be_cancelled(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let (me, next) = (buyer(), buyer());
    let (mine, _) = shop.buy(voucher, me).await.expect_waitlisted();
    let (theirs, _) = shop.buy(voucher, next).await.expect_waitlisted();
    let early = shop.pay(mine, me, "p-1").await;
    early.assert_is_problem().assert_status(409);
    for _ in 0..2 {
        let reply = shop.cancel(mine, me).await;
        assert_eq!(reply.assert_status(200).word("status"), "withdrawn");
    }
    shop.place(voucher, me)
        .await
        .assert_problem(404, "not_waiting");
    shop.cancel(held, holder).await.assert_status(200);
    promoted(&shop, theirs, next).await;
    judged(site, &shop, voucher).await;
}

/// The head gets his own payment window; unpaid, the unit moves on.
async fn expiry_serves_the_next(site: &Site) {
    let shop = site.shop();
    let voucher = shop
        .sell(&Offer::of(1).waitlist(5).payment_window_s(3))
        .await;
    let holder = buyer();
    shop.buy(voucher, holder).await.expect_granted();
    let (me, next) = (buyer(), buyer());
    let (mine, _) = shop.buy(voucher, me).await.expect_waitlisted();
    let (theirs, _) = shop.buy(voucher, next).await.expect_waitlisted();
    let open = [
        OrderStatus::Waiting,
        OrderStatus::Queued,
        OrderStatus::PendingPayment,
    ];
    let reply = shop.order_past(mine, me, &open).await;
    assert_eq!(reply.word("status"), "expired", "his turn came and went");
    let limit = Duration::from_secs(10);
    eventually("the next one pays in time", limit, async || {
        let reply = shop.pay(theirs, next, "p-1").await;
        if reply.status == 200 {
            Ok(())
        } else {
            Err(reply.text)
        }
    })
    .await;
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (1, 0));
    judged(site, &shop, voucher).await;
}

async fn new_units_serve_the_next(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let people = buyers(3);
    let mut orders = Vec::new();
    for who in &people {
        orders.push(shop.buy(voucher, *who).await.expect_waitlisted().0);
    }
    shop.adjust(voucher, 2).await.assert_status(200);
    promoted(&shop, orders[0], people[0]).await;
    promoted(&shop, orders[1], people[1]).await;
    assert!(is_waiting(&shop, orders[2], people[2]).await);
    let (_, position) = shop.buy(voucher, buyer()).await.expect_waitlisted();
    assert_eq!(position, 2, "while anyone waits, new buyers wait too");
    judged(site, &shop, voucher).await;
}

async fn a_pause_stops_promotions(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let me = buyer();
    let (mine, _) = shop.buy(voucher, me).await.expect_waitlisted();
    shop.steer(voucher, "pause").await.assert_status(200);
    shop.cancel(held, holder).await.assert_status(200);
    assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    // Longer than any loop that nudges.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(is_waiting(&shop, mine, me).await);
    assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "paused");
    shop.steer(voucher, "resume").await.assert_status(200);
    promoted(&shop, mine, me).await;
    judged(site, &shop, voucher).await;
}

async fn closing_drains_the_list(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(300)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    // More than one call of the script takes off the list.
    let people = buyers(150);
    let seats = crowd(people, 32, async |who| {
        (who, shop.buy(voucher, who).await.expect_waitlisted().0)
    })
    .await;
    shop.steer(voucher, "close").await.assert_status(200);
    for (who, order) in &seats {
        let reply = shop.order_past(*order, *who, &[OrderStatus::Waiting]).await;
        assert_eq!(reply.word("status"), "closed_out");
    }
    shop.place(voucher, seats[0].0)
        .await
        .assert_problem(404, "not_waiting");
    // Payment windows run on, and freed units stay free.
    shop.cancel(held, holder).await.assert_status(200);
    assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    assert_eq!(shop.buy(voucher, seats[0].0).await.code(), "closed");
    judged(site, &shop, voucher).await;
}

async fn closing_time_drains_the_list(site: &Site) {
    let shop = site.shop();
    let voucher = shop
        .sell(&Offer::of(1).waitlist(5).closes_in_ms(3_000))
        .await;
    let (holder, me) = (buyer(), buyer());
    let held = shop.buy(voucher, holder).await.expect_granted();
    let (mine, _) = shop.buy(voucher, me).await.expect_waitlisted();
    let reply = shop.order_past(mine, me, &[OrderStatus::Waiting]).await;
    assert_eq!(reply.word("status"), "closed_out");
    shop.pay(held, holder, "p-1").await.assert_status(200);
    judged(site, &shop, voucher).await;
}

/// 80 people want 20 units; those who got one give it up again, in no order, until all were
/// served.
async fn a_crowd_waits_and_is_served_in_order(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(20).waitlist(200)).await;
    let answers = crowd(buyers(80), 32, async |who| {
        (who, shop.buy(voucher, who).await)
    })
    .await;
    let orders: Vec<_> = answers
        .iter()
        .map(|(who, answer)| (*who, answer.order().expect("a unit or a place")))
        .collect();
    assert_eq!(
        answers
            .iter()
            .filter(|(_, a)| a.granted().is_some())
            .count(),
        20
    );
    crowd(orders, 80, async |(who, order)| {
        let before = [OrderStatus::Waiting, OrderStatus::Queued];
        shop.order_past(order, who, &before).await;
        // On a slow machine some of so many are told to come back.
        eventually(
            "it is given up",
            Duration::from_secs(30),
            async || match shop.cancel(order, who).await {
                reply if reply.status == 200 => Ok(()),
                reply if reply.status == 503 || reply.code() == "order_queued" => Err(reply.text),
                reply => panic!("{}", reply.text),
            },
        )
        .await;
    })
    .await;
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.free, tally.live()), (20, 0));
    judged(site, &shop, voucher).await;
}

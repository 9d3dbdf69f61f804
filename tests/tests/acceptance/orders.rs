//! The life of an order: paid, cancelled, or expired, and only one of them.

use std::time::{Duration, Instant};

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Offer, Site, audit, buyer, buyers, crowd};

use crate::on_every_stack;

on_every_stack!(
    paying_ten_times_at_once_is_paying_once,
    cancelling_sixteen_times_gives_one_unit_back,
    an_order_can_be_cancelled_at_once,
    expiry_releases_and_the_buyer_may_return,
    paying_and_cancelling_at_once_ends_in_one_of_them,
    paying_at_the_last_moment_ends_in_one_of_them,
);

async fn paying_ten_times_at_once_is_paying_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(2)).await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let replies = crowd(vec!["p-1"; 10], 10, |payment| shop.pay(order, me, payment)).await;
    for reply in &replies {
        assert_eq!(reply.assert_status(200).word("status"), "paid");
        assert_eq!(reply.order_id("id"), order);
    }
    shop.pay(order, me, "p-2")
        .await
        .assert_problem(409, "order_paid");
    shop.cancel(order, me)
        .await
        .assert_problem(409, "order_paid");
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.awaiting_payment, tally.free), (1, 0, 1));
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn cancelling_sixteen_times_gives_one_unit_back(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let (me, other) = (buyer(), buyer());
    let order = shop.buy_settled(voucher, me).await;
    shop.buy_settled(voucher, other).await;
    assert_eq!(shop.balanced(voucher).await.tally.free, 3);
    let replies = crowd(vec![(); 16], 16, |()| shop.cancel(order, me)).await;
    for reply in &replies {
        assert_eq!(reply.assert_status(200).word("status"), "cancelled");
    }
    assert_eq!(shop.balanced(voucher).await.tally.free, 4);
    shop.pay(order, me, "p-1")
        .await
        .assert_problem(409, "order_cancelled");
    shop.cancel(order, me).await.assert_status(200);
    assert_eq!(shop.balanced(voucher).await.tally.free, 4);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

/// A cancellation may come before the order writer does: it waits for the row, and never adds a
/// unit that was not taken.
///
/// Stands for: cancelled before it was written: a unit comes back that was never taken (B50).
async fn an_order_can_be_cancelled_at_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1)).await;
    for me in buyers(8) {
        let order = shop.buy(voucher, me).await.expect_granted();
        let reply = shop.cancel(order, me).await;
        assert_eq!(reply.assert_status(200).word("status"), "cancelled");
        assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    }
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

/// Stands for: an order expires, and its units do not come back (B21).
async fn expiry_releases_and_the_buyer_may_return(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).payment_window_s(2)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let begun = Instant::now();
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");
    let early = [OrderStatus::Queued, OrderStatus::PendingPayment];
    let reply = shop.order_past(order, me, &early).await;
    assert_eq!(reply.word("status"), "expired");
    let late = begun.elapsed().saturating_sub(Duration::from_secs(2));
    assert!(late < Duration::from_secs(4), "{late:?} late");
    shop.pay(order, me, "p-1")
        .await
        .assert_problem(409, "order_expired");
    shop.cancel(order, me)
        .await
        .assert_problem(409, "order_expired");
    assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    let again = shop.buy(voucher, me).await.expect_granted();
    assert_ne!(again, order);
    shop.pay(again, me, "p-2").await.assert_status(200);
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn paying_and_cancelling_at_once_ends_in_one_of_them(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(20)).await;
    let people = buyers(20);
    let race = async |me| {
        let order = shop.buy_settled(voucher, me).await;
        let (paid, cancelled) = futures::join!(shop.pay(order, me, "p-1"), shop.cancel(order, me));
        match (paid.status, cancelled.status) {
            (200, 409) => cancelled.assert_problem(409, "order_paid"),
            (409, 200) => paid.assert_problem(409, "order_cancelled"),
            _ => panic!("{} and {}", paid.text, cancelled.text),
        };
        paid.status == 200
    };
    let paid = crowd(people, 8, race).await;
    let paid = i64::try_from(paid.into_iter().filter(|paid| *paid).count()).unwrap();
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (paid, 20 - paid));
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

/// Buyers pay around the end of their payment windows: what was told "paid" stays paid, what was
/// told "expired" is free again.
async fn paying_at_the_last_moment_ends_in_one_of_them(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(24).payment_window_s(1)).await;
    let people: Vec<_> = buyers(24).into_iter().zip(0_u64..).collect();
    let paid = crowd(people, 24, async |(me, turn)| {
        let order = shop.buy(voucher, me).await.expect_granted();
        tokio::time::sleep(Duration::from_millis(800 + turn * 20)).await;
        let reply = shop.pay(order, me, "p-1").await;
        if reply.status != 200 {
            reply.assert_problem(409, "order_expired");
        }
        reply.status == 200
    })
    .await;
    let paid = i64::try_from(paid.into_iter().filter(|paid| *paid).count()).unwrap();
    seckill_tests::harness::eventually("all is settled", Duration::from_secs(10), async || {
        let tally = shop.balance(voucher).await.tally;
        if (tally.paid, tally.free) == (paid, 24 - paid) {
            return Ok(());
        }
        Err(format!("{paid} were told that they paid: {tally:?}"))
    })
    .await;
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

//! Payment windows end, whoever finds it out, and never for somebody who has paid. That they end on
//! time is in `punctual`.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId};
use seckill_tests::harness::{Offer, Shop, Site, audit, buyers, crowd, eventually, sleep_until};
use seckill_tests::matrix::Row;
use time::OffsetDateTime;

use crate::{PROGRAM, on_own_servers, on_own_stores};

on_own_stores!(paying_and_expiring_at_once);
on_own_servers!(orders_expire_by_the_delay_queue_alone_after_a_loss_of_everything);

/// How many pay at the very end of their windows: 300, or for a long run, for example, 10000.
const PAIRS: &str = "SECKILL_TEST_PAIRS";
/// So many of them at a time, and in a long run five times as many.
const AT_ONCE: usize = 100;

/// The queue is lost with everything else, and somebody has put something else in its place: whoever
/// loads the sale again fills it.
async fn orders_expire_by_the_delay_queue_alone_after_a_loss_of_everything(site: Site) {
    let site = site.with("SECKILL_EXPIRY", "queue");
    let process = site.start().await;
    let (shop, gate) = (process.shop(), site.gate().await);
    let voucher = shop.sell(&Offer::of(20).payment_window_s(6)).await;
    let orders = crowd(buyers(10), 10, async |who| {
        (shop.buy_settled(voucher, who).await, who)
    })
    .await;
    let sets = gate.keys_of_type("zset").await.into_iter();
    let queues: Vec<String> = sets.filter(|it| it.ends_with(":delays")).collect();
    // In one step, so that nobody fills it in between.
    let mut lose = redis::cmd("EVAL");
    lose.arg("redis.call('FLUSHALL') return redis.call('SET', KEYS[1], 'spoilt')");
    gate.run::<String>(lose.arg(queues.len()).arg(&queues))
        .await;
    let last = buyers(1)[0];
    shop.buy_settled(voucher, last).await;
    for (order, who) in orders {
        let wait = eventually("it expires", Duration::from_secs(20), async || {
            let seen = shop.order(order, who).await.word("status").to_owned();
            (seen == "expired").then_some(()).ok_or(seen)
        });
        wait.await;
    }
    let verdict = audit(&shop, shop.history(), &[voucher], None).await;
    verdict.assert_holds();
}

async fn paying_and_expiring_at_once(site: Site) {
    let mut row = Row::begin();
    let raced = race_with_the_end(&site).await;
    let under_way = raced.iter().filter(|race| race.under_way).count();
    row.struck("windows end while their orders are being paid", under_way);
    let paid = raced.iter().filter(|race| race.paid).count();
    row.ended(&format!("{paid} paid, {} expired", raced.len() - paid));
}

/// A payment at the end of a window.
struct Race {
    /// Whether the buyer was told that he has paid; else, that it was too late.
    paid: bool,
    /// Whether he had asked and had no answer when the window ended.
    under_way: bool,
}

#[tokio::test]
async fn paying_and_expiring_at_once_in_memory() {
    race_with_the_end(&Site::memory(PROGRAM)).await;
}

/// Buyers pay in the moment in which their windows end, a little before or after. Each order is
/// paid or expired and not both, each buyer was told the truth, and what expired is free again.
async fn race_with_the_end(site: &Site) -> Vec<Race> {
    let pairs: usize = match std::env::var(PAIRS) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{PAIRS}={text}")),
        Err(_) => 300,
    };
    let at_once = (pairs / 10).clamp(AT_ONCE, 5 * AT_ONCE);
    let process = site.start().await;
    let shop = process.shop();
    let units = u32::try_from(pairs).expect("not that many");
    let voucher = shop.sell(&Offer::of(units).payment_window_s(2)).await;
    let mut told = Vec::new();
    for wave in buyers(pairs).chunks(at_once) {
        let turns = wave.iter().copied().zip(0_i64..).collect();
        told.extend(
            crowd(turns, at_once, async |(who, turn)| {
                let order = shop.buy(voucher, who).await.expect_granted();
                (order, who, pay_at_the_end(&shop, order, who, turn).await)
            })
            .await,
        );
    }
    let paid = told.iter().filter(|(.., race)| race.paid).count();
    assert!(
        paid >= 10 && paid + 10 <= told.len(),
        "{paid} paid: no race"
    );
    let (paid, all) = (i64::try_from(paid).unwrap(), i64::from(units));
    eventually(
        "what expired is free",
        Duration::from_secs(20),
        async || {
            let tally = shop.balance(voucher).await.tally;
            if (tally.paid, tally.free) == (paid, all - paid) {
                return Ok(());
            }
            Err(format!("{paid} were told that they paid: {tally:?}"))
        },
    )
    .await;
    let raced = crowd(told, 32, async |(order, who, race)| {
        let status = if race.paid { "paid" } else { "expired" };
        let seen = shop.order_past(order, who, &[]).await;
        assert_eq!(seen.word("status"), status);
        race
    })
    .await;
    eprintln!("{paid} of {all} paid");
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
    raced
}

async fn pay_at_the_end(shop: &Shop, order: OrderId, who: BuyerId, turn: i64) -> Race {
    let due = shop.settled(order, who).await.expires_at();
    // From 500 ms before to 50 ms after, in steps that mix who comes when; every other one within the
    // last moments. On a busy machine most of them arrive later than that.
    let shift = time::Duration::milliseconds(match turn % 2 {
        0 => turn * 37 % 550 - 500,
        _ => turn * 7 % 41 - 40,
    });
    sleep_until(due + shift).await;
    // Paying takes what is left of the window, swept or not.
    let over = shift.is_positive();
    let asked = OffsetDateTime::now_utc();
    let paid = eventually("there is an answer", Duration::from_secs(20), async || {
        let reply = shop.pay(order, who, "p-1").await;
        match reply.status {
            200 => {
                assert!(!over, "paid {shift} after its end: {}", reply.text);
                assert_eq!(reply.word("status"), "paid");
                Ok(true)
            }
            409 => {
                reply.assert_problem(409, "order_expired");
                Ok(false)
            }
            _ => {
                reply.assert_problem(503, reply.code());
                Err(reply.text)
            }
        }
    })
    .await;
    let under_way = asked < due && due <= OffsetDateTime::now_utc();
    Race { paid, under_way }
}

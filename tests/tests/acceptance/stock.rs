//! Stock that changes while people buy, and sales that are steered while people buy.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{OrderStatus, VoucherId};
use seckill_tests::harness::{
    History, Load, Offer, Process, Shop, Site, audit, buyer, crowd, eventually,
};

use crate::{PROGRAM, on_own_stores};

on_own_stores!(
    adjustments_count_once_while_people_buy,
    steering_keeps_every_count
);

#[tokio::test]
async fn adjustments_count_once_while_people_buy_in_memory() {
    adjustments_count_once_while_people_buy(Site::memory(PROGRAM)).await;
}

#[tokio::test]
async fn steering_keeps_every_count_in_memory() {
    steering_keeps_every_count(Site::memory(PROGRAM)).await;
}

/// Three calls with one key at once; whoever is not told what became of it asks again. All are told
/// the same. Returns whether it was done.
async fn adjust(shop: &Shop, voucher: VoucherId, delta: i64, key: &str) -> bool {
    let told = crowd(vec![(); 3], 3, async |()| {
        eventually("it is told", Duration::from_secs(20), async || {
            let reply = shop.adjust_once(voucher, delta, key).await;
            match reply.status {
                200 => Ok(true),
                409 => {
                    reply.assert_problem(409, "not_enough_free");
                    Ok(false)
                }
                _ => {
                    reply.assert_problem(503, reply.code());
                    Err(reply.text)
                }
            }
        })
        .await
    })
    .await;
    assert!(
        told.iter().all(|done| *done == told[0]),
        "{delta}: {told:?}"
    );
    told[0]
}

/// Whether each of these was done.
async fn told_of(shop: &Shop, voucher: VoucherId, wishes: &[(i64, &str)]) -> Vec<bool> {
    let mut told = Vec::new();
    for (delta, key) in wishes {
        told.push(adjust(shop, voucher, *delta, key).await);
    }
    told
}

async fn adjustments_count_once_while_people_buy(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let history = Arc::new(History::default());
    let voucher = shop.sell(&Offer::of(60)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 8);
    let mut total = 60;
    let mut told = Vec::new();
    for (turn, delta) in [30, -10, 40, -15, -200, 20, -5].into_iter().enumerate() {
        let key = format!("k-{turn}");
        let done = adjust(&shop, voucher, delta, &key).await;
        assert!(done || delta < 0, "units can always be added");
        assert!(!done || delta != -200, "more than there were");
        total += if done { delta } else { 0 };
        told.push((delta, key, done));
    }
    eventually("it sells out", Duration::from_secs(30), async || {
        let free = shop.balance(voucher).await.tally.free;
        (free == 0).then_some(()).ok_or(format!("{free} free"))
    })
    .await;
    load.stop().await;
    // Later repeats change nothing either, and are told the same.
    for (delta, key, done) in &told {
        assert_eq!(adjust(&shop, voucher, *delta, key).await, *done, "{delta}");
        shop.adjust_once(voucher, delta + 1, key)
            .await
            .assert_problem(422, "idempotency_key_reused");
    }
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.total, tally.free), (total, 0), "{told:?}");
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, &history, &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.granted.len(), usize::try_from(total).unwrap());
}

async fn sells(load: &Load) {
    let before = load.granted();
    eventually("it sells", Duration::from_secs(20), async || {
        (load.granted() > before + 10)
            .then_some(())
            .ok_or(String::new())
    })
    .await;
}

/// Whoever asked before the answer may still be served; after that nobody is.
async fn stops(process: &Process, load: &Load, voucher: VoucherId, code: &str) -> usize {
    let shop = process.shop();
    // Calls that were under way when it was steered.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let sold = load.granted();
    assert_eq!(shop.buy(voucher, buyer()).await.code(), code);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(load.granted(), sold);
    sold
}

async fn steering_keeps_every_count(site: Site) {
    let process = site.start().await;
    let history = Arc::new(History::default());
    let shop = process.shop().writing(&history);
    let voucher = shop.sell(&Offer::of(5_000)).await;
    let load = Load::start(&[process.shop()], &history, voucher, 8);
    for _ in 0..2 {
        sells(&load).await;
        shop.steer(voucher, "pause").await.assert_status(200);
        let sold = stops(&process, &load, voucher, "paused").await;
        let tally = shop.balanced(voucher).await.tally;
        let live = i64::try_from(sold).unwrap();
        assert_eq!((tally.live(), tally.free), (live, 5_000 - live));
        // Stock changes during a pause, too.
        shop.adjust(voucher, 7).await.assert_status(200);
        shop.adjust(voucher, -7).await.assert_status(200);
        // Whoever has a unit goes on.
        let (order, who) = history.granted()[0];
        let settled = shop.settled(order, who).await.order_status();
        let reply = shop.pay(order, who, "p-1").await;
        assert_eq!(reply.assert_status(200).word("status"), "paid");
        assert!(matches!(
            settled,
            OrderStatus::PendingPayment | OrderStatus::Paid
        ));
        shop.steer(voucher, "resume").await.assert_status(200);
    }
    sells(&load).await;
    let wishes = [(2, "added"), (-2, "taken"), (-6_000, "too-many")];
    let first = told_of(&shop, voucher, &wishes).await;
    assert_eq!(first, [true, true, false]);
    shop.steer(voucher, "close").await.assert_status(200);
    let again = told_of(&shop, voucher, &wishes).await;
    assert_eq!(again, first, "a repeat is answered as the first call was");
    let sold = stops(&process, &load, voucher, "closed").await;
    load.stop().await;
    let tally = shop.balanced(voucher).await.tally;
    let live = i64::try_from(sold).unwrap();
    assert_eq!((tally.total, tally.paid, tally.live()), (5_000, 1, live));
    // Payment windows run on, and what is given up stays free.
    let (order, who) = history.granted()[1];
    shop.cancel(order, who).await.assert_status(200);
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.live(), tally.free), (live - 1, 5_001 - live));
    shop.adjust(voucher, 1)
        .await
        .assert_problem(409, "wrong_status");
    for delta in [1, -1] {
        let late = shop.adjust_once(voucher, delta, "late").await;
        late.assert_problem(409, "wrong_status");
    }
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, &history, &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
}

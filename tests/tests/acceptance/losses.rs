//! Redis loses what it acknowledged: everything, or one key.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, VoucherId};
use seckill_tests::harness::{
    Gate, HeldWriters, History, Ledger, Offer, Purchase, Shop, Site, audit, buyers, crowd,
    eventually,
};

use crate::{on_own_servers, on_own_stores};

on_own_servers!(everything_is_flushed);
on_own_stores!(any_single_key_is_deleted);

/// What the buyer of a damaged gate is told in the end.
async fn insist(shop: &Shop, voucher: VoucherId, who: BuyerId) -> Purchase {
    eventually(
        "the gate answers",
        Duration::from_secs(30),
        async || match shop.try_buy(voucher, who, 1, None).await {
            Ok(answer) if !matches!(answer.code(), "unavailable" | "overloaded") => Ok(answer),
            other => Err(format!("{other:?}")),
        },
    )
    .await
}

/// Confirmed orders, and then as many that only Redis and the processes know.
async fn sold_in_flight(
    shops: &[Shop],
    voucher: VoucherId,
    ledger: &Ledger,
    confirmed: usize,
    in_flight: usize,
) -> (Vec<(BuyerId, OrderId)>, HeldWriters) {
    let buy = async |(who, turn): (BuyerId, usize)| {
        let shop = &shops[turn % shops.len()];
        (who, shop.buy(voucher, who).await.expect_granted())
    };
    let some = |count| buyers(count).into_iter().zip(0..).collect();
    let mut sold = crowd(some(confirmed), 16, buy).await;
    for (who, order) in &sold {
        shops[0].settled(*order, *who).await;
    }
    let held = ledger.hold_writers().await;
    sold.extend(crowd(some(in_flight), 16, buy).await);
    let tally = shops[0].balance(voucher).await.tally;
    let expected = i64::try_from(in_flight).expect("a small number");
    assert!(tally.in_flight >= expected, "{tally:?}");
    (sold, held)
}

/// FLUSHALL with 60 orders in flight, two processes: nobody is forgotten, nobody gets a second
/// unit, and what is left is sold, exactly.
async fn everything_is_flushed(site: Site) {
    let (one, other) = (site.start().await, site.start().await);
    let history = Arc::new(History::default());
    let shops = [one.shop().writing(&history), other.shop().writing(&history)];
    let voucher = shops[0].sell(&Offer::of(120)).await;
    let ledger = site.ledger().await;
    let (sold, held) = sold_in_flight(&shops, voucher, &ledger, 20, 60).await;
    site.gate().await.flush_all().await;
    held.release().await;
    holders_keep_their_units(&shops[0], voucher, &sold).await;
    let answers = crowd(buyers(80), 16, |who| insist(&shops[1], voucher, who)).await;
    assert_eq!(answers.iter().filter_map(Purchase::granted).count(), 40);
    let verdict = audit(&shops[0], &history, &[voucher], Some(&ledger)).await;
    let verdict = verdict.assert_holds().assert_none_rejected();
    assert_eq!(verdict.live_orders(voucher), 120);
}

async fn holders_keep_their_units(shop: &Shop, voucher: VoucherId, sold: &[(BuyerId, OrderId)]) {
    let again = async |(who, order)| (insist(shop, voucher, who).await, order);
    for (answer, order) in crowd(sold.to_vec(), 16, again).await {
        assert_eq!(answer.expect_already_held(), order);
    }
}

/// Every key of the deployment, one after the other, each with orders in flight: a voucher's and
/// its partition's keys, leases, and the registry of order ids.
async fn any_single_key_is_deleted(site: Site) {
    let site = site.with("SECKILL_PARTITIONS", "1");
    let process = site.start().await;
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let roles = roles(&process.shop(), &gate).await;
    assert!(roles.len() >= 8, "{roles:?}");
    for role in roles {
        let history = Arc::new(History::default());
        let shop = process.shop().writing(&history);
        let voucher = sell(&shop).await;
        let (sold, held) =
            sold_in_flight(std::slice::from_ref(&shop), voucher, &ledger, 10, 50).await;
        let key = role.replace('#', &format!("v{voucher}"));
        let deleted: i64 = gate.run(redis::cmd("DEL").arg(&key)).await;
        held.release().await;
        holders_keep_their_units(&shop, voucher, &sold).await;
        let answers = crowd(buyers(60), 16, |who| insist(&shop, voucher, who)).await;
        let granted = answers.iter().filter_map(Purchase::granted).count();
        assert_eq!(granted, 40, "after {key} was lost ({deleted})");
        let verdict = audit(&shop, &history, &[voucher], Some(&ledger)).await;
        let verdict = verdict.assert_holds().assert_none_rejected();
        assert_eq!(verdict.live_orders(voucher), 100, "after {key} was lost");
    }
}

/// The loss before may still be healing: an administrator tries again, too.
async fn sell(shop: &Shop) -> VoucherId {
    let voucher = shop.draft(&Offer::of(100)).await;
    let limit = Duration::from_secs(30);
    eventually("it can be published", limit, async || {
        match shop.steer(voucher, "publish").await {
            reply if reply.status == 200 => Ok(()),
            reply => Err(reply.text),
        }
    })
    .await;
    voucher
}

/// The names of all keys that exist when a voucher is in full use, with `#` where its number is.
async fn roles(shop: &Shop, gate: &Gate) -> Vec<String> {
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let people = buyers(2);
    let key = Some("key");
    shop.buy_some(voucher, people[0], 1, key)
        .await
        .expect_granted();
    shop.buy_some(voucher, people[1], 1, key)
        .await
        .expect_waitlisted();
    let mark = format!("v{voucher}");
    let names = gate.keys().await.into_keys();
    // Other vouchers, such as a demonstration, are left alone.
    let foreign = |name: &String| {
        name.split(':').any(|part| {
            part.strip_prefix('v')
                .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && part != mark)
        })
    };
    names
        .filter(|name| !foreign(name))
        .map(|name| {
            name.split(':')
                .map(|part| if part == mark { "#" } else { part })
                .collect::<Vec<_>>()
                .join(":")
        })
        .collect()
}

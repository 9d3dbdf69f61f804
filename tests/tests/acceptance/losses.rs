//! Redis loses what it acknowledged: everything, or one key.

use std::sync::Arc;
use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{
    Gate, HeldWriters, History, Ledger, Notice, Offer, Purchase, Shop, Site, audit, buyers, crowd,
    eventually,
};
use seckill_tests::matrix::Row;

use crate::{on_own_servers, on_own_stores};

on_own_servers!(
    everything_is_flushed,
    nobody_is_unknown_while_the_gate_is_filled_again,
);
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
    let mut row = Row::begin();
    let (one, other) = (site.start().await, site.start().await);
    let history = Arc::new(History::default());
    let shops = [one.shop().writing(&history), other.shop().writing(&history)];
    let voucher = shops[0].sell(&Offer::of(120)).await;
    let ledger = site.ledger().await;
    let (sold, held) = sold_in_flight(&shops, voucher, &ledger, 20, 60).await;
    row.struck("FLUSHALL", site.gate().await.in_flight().await);
    site.gate().await.flush_all().await;
    held.release().await;
    holders_keep_their_units(&shops[0], voucher, &sold).await;
    let answers = crowd(buyers(80), 16, |who| insist(&shops[1], voucher, who)).await;
    assert_eq!(answers.iter().filter_map(Purchase::granted).count(), 40);
    let verdict = audit(&shops[0], &history, &[voucher], Some(&ledger)).await;
    assert_eq!(verdict.live_orders(voucher), 120);
    row.held(&verdict);
}

/// FLUSHALL, and at once everybody asks after his order and the provider says that it is paid: it may
/// take a moment, and no order is unknown meanwhile.
async fn nobody_is_unknown_while_the_gate_is_filled_again(site: Site) {
    let (one, other) = (site.start().await, site.start().await);
    let history = Arc::new(History::default());
    let shops = [one.shop().writing(&history), other.shop().writing(&history)];
    let voucher = shops[0].sell(&Offer::of(200)).await;
    let ledger = site.ledger().await;
    for _ in 0..3 {
        let (sold, held) = sold_in_flight(&shops, voucher, &ledger, 0, 20).await;
        site.gate().await.flush_all().await;
        held.release().await;
        let ask = async |((who, order), turn): ((BuyerId, OrderId), usize)| {
            let shop = &shops[turn % shops.len()];
            let seen = shop.order(order, who).await;
            assert!(matches!(seen.status, 200 | 503), "{}", seen.text);
            let heard = eventually("it is heard", Duration::from_secs(30), async || {
                let heard = shop.hear(&Notice::of(order, "p-1")).await;
                if heard.status == 200 {
                    Ok(heard)
                } else {
                    Err(heard.text)
                }
            })
            .await;
            assert_eq!(heard.word("outcome"), "paid");
        };
        let turns = sold.into_iter().zip(0..).collect();
        crowd(turns, 20, ask).await;
    }
    let verdict = audit(&shops[0], &history, &[voucher], Some(&ledger)).await;
    assert_eq!(verdict.live_orders(voucher), 60);
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
    let mut row = Row::begin();
    let site = site.with("SECKILL_PARTITIONS", "1");
    let process = site.start().await;
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let roles = Role::all(&process.shop(), &gate).await;
    let of_partition = roles.iter().filter(|role| role.is_of_partition()).count();
    // Meta, index and stream; sale, holders, waiters, seats and used keys of a voucher.
    assert!(of_partition >= 8 && of_partition < roles.len(), "{roles:?}");
    let mut lives = 0;
    for role in roles {
        let history = Arc::new(History::default());
        let shop = process.shop().writing(&history);
        let voucher = sell(&shop).await;
        one_key_is_deleted(&role, &shop, voucher, &gate, &ledger, &mut row).await;
        let verdict = audit(&shop, &history, &[voucher], Some(&ledger)).await;
        verdict.assert_holds().assert_none_rejected();
        assert_eq!(
            verdict.live_orders(voucher),
            60,
            "after the loss of {role:?}"
        );
        lives += 1;
    }
    row.ended(&format!("60 live orders after each of {lives} losses"));
}

async fn one_key_is_deleted(
    role: &Role,
    shop: &Shop,
    voucher: VoucherId,
    gate: &Gate,
    ledger: &Ledger,
    row: &mut Row,
) {
    let (sold, held) = sold_in_flight(std::slice::from_ref(shop), voucher, ledger, 8, 51).await;
    let (keyed, waiting) = (buyers(1)[0], buyers(3));
    let by_key = shop.buy_some(voucher, keyed, 1, Some("key")).await;
    let mut seats = Vec::new();
    for who in &waiting {
        seats.push(shop.buy(voucher, *who).await.expect_waitlisted().0);
    }
    row.struck("DEL of each key in turn", gate.in_flight().await);
    let deleted = role.delete(gate, voucher).await;
    assert!(deleted || !role.is_of_partition(), "{role:?} was not there");
    held.release().await;

    // Nobody is forgotten, and nobody gets a second unit or place.
    holders_keep_their_units(shop, voucher, &sold).await;
    let again = insist(shop, voucher, keyed).await;
    assert_eq!(again.expect_already_held(), by_key.expect_granted());
    let again = shop.buy_some(voucher, keyed, 1, Some("key")).await;
    assert_eq!(again.expect_granted(), by_key.expect_granted());
    for (place, (who, order)) in (1..).zip(waiting.iter().zip(&seats)) {
        let again = insist(shop, voucher, *who).await;
        assert_eq!(again.expect_waitlisted(), (*order, place), "{role:?}");
    }
    // The sale goes on, with exactly what there is.
    let answers = crowd(buyers(12), 12, |who| insist(shop, voucher, who)).await;
    assert_eq!(
        answers.iter().filter_map(Purchase::granted).count(),
        0,
        "{role:?}"
    );
    let (holder, order) = sold[0];
    shop.cancel(order, holder).await.assert_status(200);
    let before = [OrderStatus::Waiting, OrderStatus::Queued];
    let served = shop.order_past(seats[0], waiting[0], &before).await;
    assert_eq!(served.word("status"), "pending_payment", "{role:?}");
}

/// The loss before may still be healing: an administrator tries again, too.
async fn sell(shop: &Shop) -> VoucherId {
    let voucher = shop.draft(&Offer::of(60).waitlist(8)).await;
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

/// What a key is for: its name, with `#` for the voucher and `@` for the epoch of a stream.
#[derive(Debug)]
struct Role(String);

impl Role {
    /// The roles of all keys that exist while a voucher is in full use.
    async fn all(shop: &Shop, gate: &Gate) -> Vec<Self> {
        let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
        for who in buyers(2) {
            let answer = shop.buy_some(voucher, who, 1, Some("key")).await;
            assert!(answer.order().is_some(), "{answer:?}");
        }
        let keys = gate.keys().await;
        let roles = keys.into_iter().filter_map(|(name, kind)| {
            let mut parts: Vec<&str> = name.split(':').collect();
            let mark = format!("v{voucher}");
            for part in &mut parts {
                if **part == *mark {
                    *part = "#";
                } else if is_voucher(part) {
                    // Another one, such as a demonstration.
                    return None;
                }
            }
            if let (true, Some(epoch)) = (kind == "stream", parts.last_mut()) {
                *epoch = "@";
            }
            Some(Self(parts.join(":")))
        });
        roles.collect()
    }

    /// Whether it is a key of the partition or of a voucher in it; else it is one that may come and
    /// go by itself, such as a lease.
    fn is_of_partition(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Deletes the key that has the role for this voucher now. Returns whether there was one.
    async fn delete(&self, gate: &Gate, voucher: VoucherId) -> bool {
        let name = self.0.replace('#', &format!("v{voucher}"));
        let name = match name.strip_suffix('@') {
            None => name,
            Some(start) => {
                let streams = gate.keys_of_type("stream").await.into_iter();
                let epoch_of = |name: &String| name.strip_prefix(start)?.parse::<u64>().ok();
                let newest = streams.max_by_key(epoch_of);
                newest.expect("a partition has a stream")
            }
        };
        gate.run::<i64>(redis::cmd("DEL").arg(&name)).await == 1
    }
}

/// Whether a part of a key's name is `v` and a number.
fn is_voucher(part: &str) -> bool {
    let digits = part.strip_prefix('v').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

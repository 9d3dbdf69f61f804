//! The gate lies, and strangers write into its stream.

use std::time::Duration;

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Gate, Offer, Site, audit, buyer, buyers, crowd, eventually};
use seckill_tests::matrix::Row;

use crate::on_own_stores;

on_own_stores!(
    the_ledger_rejects_what_the_gate_had_not,
    a_foreign_entry_blocks_nobody,
    an_entry_that_was_removed_is_decided_again,
);

/// Five units that do not exist are planted at the gate, and all fifteen are sold: the ledger takes
/// ten, and tells the other five why not. Then the gate is right again, by itself.
///
/// Stands for: a lock not got, a refusal or a duplicate returns as if all were well: acknowledged,
/// and the order is lost (hole 5, B19, B20, 2.13, 2.14, 2.15).
async fn the_ledger_rejects_what_the_gate_had_not(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(10)).await;
    let gate = site.gate().await;
    plant(&gate, &voucher.to_string(), 5).await;

    let people = buyers(15);
    let answers = crowd(people, 15, async |who| (who, shop.buy(voucher, who).await)).await;
    let granted = answers
        .iter()
        .filter(|(_, answer)| answer.granted().is_some());
    assert_eq!(granted.count(), 15, "the gate believed in 15");
    let mut rejected = Vec::new();
    for (who, answer) in &answers {
        let order = answer.expect_granted();
        let seen = shop.settled(order, *who).await;
        match seen.order_status() {
            OrderStatus::PendingPayment => {}
            OrderStatus::Rejected => {
                assert_eq!(seen.word("reason"), "no_stock");
                rejected.push(*who);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rejected.len(), 5);

    let ledger = site.ledger().await;
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    let verdict = verdict.assert_holds();
    assert_eq!(verdict.live_orders(voucher), 10);
    assert_eq!(verdict.rejected.len(), 5);
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");
    let after = shop.metric("seckill_ledger_refusals_total").await;
    assert_eq!(after, Some(5.0), "counted");
    // A rejected order does not count against the limit.
    let (holder, order) = answers
        .iter()
        .find(|(who, _)| !rejected.contains(who))
        .map(|(who, answer)| (*who, answer.expect_granted()))
        .expect("ten were served");
    shop.cancel(order, holder).await.assert_status(200);
    shop.balanced(voucher).await;
    shop.buy(voucher, rejected[0]).await.expect_granted();
    assert_eq!(shop.buy(voucher, rejected[1]).await.code(), "sold_out");
}

async fn plant(gate: &Gate, voucher: &str, units: i64) {
    let mark = format!(":v{voucher}:");
    for key in gate.keys_of_type("hash").await {
        let free: Option<String> = gate.run(redis::cmd("HGET").arg(&key).arg("free")).await;
        if key.contains(&mark) && free.is_some() {
            let mut plant = redis::cmd("HINCRBY");
            gate.run::<i64>(plant.arg(&key).arg("free").arg(units))
                .await;
            return;
        }
    }
    panic!("no key of voucher {voucher} says what is free");
}

/// Entries that are not ours, not whole, or not of this version, before and between purchases.
///
/// Stands for: a message that cannot be read or applied blocks the others, loops, or is gone with
/// its units (hole 8, B30, 1.5, 1.6, 2.12).
async fn a_foreign_entry_blocks_nobody(site: Site) {
    let mut row = Row::begin();
    let site = site.with("SECKILL_PARTITIONS", "1");
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(50)).await;
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let me = buyer();
    shop.buy_settled(voucher, me).await;
    let streams = gate.keys_of_type("stream").await;
    assert!(!streams.is_empty());
    let strange: [&[&str]; 9] = [
        &["junk", "1"],
        &["", ""],
        &["v", "x", "user", "", "order", "abc"],
        &["v", "1"],
        &["v", "1", "e", "1", "s", "2", "d", ""],
        &["v", "1", "e", "1", "s", "2", "d", "granted 1 2"],
        &["v", "1", "e", "999", "s", "2", "d", "granted 1 2 3 1 -"],
        &["v", "99", "e", "1", "s", "2", "d", "granted 1 2 3 1 -"],
        &["v", "1", "e", "1", "s", "999999", "d", "granted 1 2 3 1 -"],
    ];
    let before = ledger.parked().await;
    for (turn, fields) in strange.iter().enumerate() {
        // Behind an order that is in flight.
        let held = ledger.hold_writers().await;
        let who = buyer();
        let before_it = shop.buy(voucher, who).await.expect_granted();
        row.struck("entries that are not orders", gate.in_flight().await);
        for stream in &streams {
            let mut add = redis::cmd("XADD");
            add.arg(stream).arg("*").arg(fields);
            gate.run::<String>(&add).await;
        }
        held.release().await;
        shop.settled(before_it, who).await;
        let answers = crowd(buyers(3), 3, async |who| {
            (who, shop.buy(voucher, who).await)
        })
        .await;
        for (who, answer) in answers {
            let seen = shop.settled(answer.expect_granted(), who).await;
            assert_eq!(
                seen.word("status"),
                "pending_payment",
                "after {fields:?}, {turn}"
            );
        }
    }
    let expected = before + i64::try_from(strange.len() * streams.len()).unwrap();
    eventually("they are parked", Duration::from_secs(20), async || {
        let parked = ledger.parked().await;
        (parked == expected)
            .then_some(())
            .ok_or(format!("{parked} of {expected}"))
    })
    .await;
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    assert_eq!(verdict.live_orders(voucher), 1 + 4 * strange.len());
    for stream in streams {
        let drained = async || {
            let groups = gate.groups(&stream).await;
            let none = groups.iter().all(|group| group.pending == 0);
            none.then_some(()).ok_or(format!("{groups:?}"))
        };
        eventually("nothing is pending", Duration::from_secs(10), drained).await;
    }
    row.held(&verdict);
}

/// Somebody removes an entry that the ledger does not have yet, and leaves junk in its place: the
/// numbers of the decisions tell, and the order is not forgotten.
async fn an_entry_that_was_removed_is_decided_again(site: Site) {
    let mut row = Row::begin();
    let site = site.with("SECKILL_PARTITIONS", "1");
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(20)).await;
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    shop.buy_settled(voucher, buyer()).await;
    let stream = gate.keys_of_type("stream").await.remove(0);
    let held = ledger.hold_writers().await;
    let mut sold = Vec::new();
    for who in buyers(5) {
        sold.push((who, shop.buy(voucher, who).await.expect_granted()));
    }
    let removed = entry_with(&gate, &stream, &sold[2].1.to_string()).await;
    let gone: i64 = gate
        .run(redis::cmd("XDEL").arg(&stream).arg(&removed))
        .await;
    assert_eq!(gone, 1);
    row.struck("an entry is removed", gate.in_flight().await);
    let mut junk = redis::cmd("XADD");
    gate.run::<String>(junk.arg(&stream).arg("*").arg(&["d", "granted"]))
        .await;
    held.release().await;
    for (who, order) in sold {
        let seen = shop.settled(order, who).await;
        assert_eq!(seen.word("status"), "pending_payment");
    }
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    assert_eq!(verdict.live_orders(voucher), 6);
    assert_eq!(verdict.facts.vouchers[&voucher].tally.free, 14);
    row.held(&verdict);
}

/// The id of the stream's entry that names this order.
async fn entry_with(gate: &Gate, stream: &str, order: &str) -> String {
    type Entry = (String, Vec<String>);
    let mut range = redis::cmd("XRANGE");
    let entries: Vec<Entry> = gate.run(range.arg(stream).arg("-").arg("+")).await;
    let named = |(_, fields): &Entry| fields.iter().any(|field| field.contains(order));
    let found = entries.into_iter().find(named);
    found.expect("a decision is on the stream").0
}

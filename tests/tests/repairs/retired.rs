//! A sale that is over leaves Redis, and whoever comes again is answered all the same.

use std::time::Duration;

use seckill_domain::VoucherId;
use seckill_tests::harness::{Call, Gate, Offer, Purchase, Site, buyer, eventually};

use crate::on_own_stores;

on_own_stores!(nothing_but_a_marker_of_a_retired_sale_stays_in_redis);

/// What Redis still has of a voucher: names without their beginning, and the status of its sale.
async fn left_of(gate: &Gate, voucher: VoucherId) -> (Vec<String>, String) {
    let mark = format!(":v{voucher}:");
    let mut pieces = Vec::new();
    let mut status = String::new();
    for name in gate.keys().await.into_keys() {
        if let Some((_, piece)) = name.split_once(&mark) {
            pieces.push(piece.to_owned());
            if piece == "sale" {
                let fields: Vec<String> = gate.run(redis::cmd("HKEYS").arg(&name)).await;
                assert!(!fields.is_empty());
                status = gate.run(redis::cmd("HGET").arg(&name).arg("status")).await;
            }
        }
    }
    (pieces, status)
}

async fn nothing_but_a_marker_of_a_retired_sale_stays_in_redis(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let offer = Offer::of(4).limit(2).waitlist(5).payment_window_s(1);
    let voucher = shop.sell(&offer).await;
    let [keyed, paid, given_up, waits] = [buyer(), buyer(), buyer(), buyer()];
    let by_key = shop.buy_some(voucher, keyed, 2, Some("key")).await;
    let by_key = by_key.expect_granted();
    shop.settled(by_key, keyed).await;
    shop.pay(by_key, keyed, "p-1").await.assert_status(200);
    let order = shop.buy_settled(voucher, paid).await;
    shop.pay(order, paid, "p-2").await.assert_status(200);
    let cancelled = shop.buy_settled(voucher, given_up).await;
    let place = shop.buy(voucher, waits).await.expect_waitlisted().0;
    shop.steer(voucher, "close").await.assert_status(200);
    shop.cancel(cancelled, given_up).await.assert_status(200);
    let marker = (vec!["sale".to_owned()], "retired".to_owned());
    let limit = Duration::from_secs(40);
    eventually("it has left Redis", limit, async || {
        let left = left_of(&gate, voucher).await;
        (left == marker).then_some(()).ok_or(format!("{left:?}"))
    })
    .await;

    // Repeats are answered, with the first order ids.
    let again = shop.buy_some(voucher, keyed, 2, Some("key")).await;
    assert_eq!(again.expect_granted(), by_key);
    let again = shop.buy_some(voucher, keyed, 2, None).await;
    assert_eq!(again.expect_already_held(), by_key);
    for (who, code) in [(given_up, "closed"), (waits, "closed"), (buyer(), "closed")] {
        assert_eq!(shop.buy(voucher, who).await.code(), code);
    }
    let seen = shop.order(place, waits).await;
    assert_eq!(seen.word("status"), "closed_out");
    shop.place(voucher, waits)
        .await
        .assert_problem(404, "not_waiting");
    assert_eq!(left_of(&gate, voucher).await, marker);

    // A refund changes the ledger, and leaves nothing behind.
    let refund = Call::post(format!("/v1/admin/orders/{order}/refunds")).by_admin();
    shop.ask(refund.clone()).await.assert_status(200);
    shop.ask(refund).await.assert_status(200);
    eventually("the outbox is empty", limit, async || {
        let waiting = ledger.waiting_updates().await;
        (waiting == 0).then_some(()).ok_or(waiting.to_string())
    })
    .await;
    assert_eq!(left_of(&gate, voucher).await, marker);
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.paid, balance.tally.free), (2, 2));
    let again = shop.buy(voucher, paid).await;
    assert!(matches!(again, Purchase::Refused { .. }), "{again:?}");
    assert_eq!(again.code(), "closed");

    // Nor does a lost marker bring it back.
    gate.flush_voucher(voucher).await;
    let again = shop.buy_some(voucher, keyed, 2, None).await;
    assert_eq!(again.expect_already_held(), by_key);
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "closed");
}

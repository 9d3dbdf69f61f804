//! Money: what buyers pay, what the provider says, and what goes back.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus};
use seckill_tests::harness::{
    Call, Notice, Offer, PAYMENTS_SECRET, Reply, Shop, Site, audit, buyer, buyers, crowd,
    eventually, payment_id,
};

use crate::{on_every_stack, on_own_stores};

on_every_stack!(
    ten_different_payments_at_once_pay_once,
    cancelled_sixteen_times_the_buyer_may_return,
    a_payment_pays_one_order,
    money_that_moved_pays_its_order,
    the_provider_and_the_buyer_at_once_are_one_payment,
    money_that_comes_too_late_goes_back,
    a_second_payment_goes_back,
    a_wrong_amount_goes_back,
    money_for_nobody_goes_back,
    what_is_not_signed_as_it_should_be_is_not_heard,
);
on_own_stores!(
    without_a_secret_nobody_is_heard,
    money_waits_for_an_order_that_is_queued,
);

/// Panics unless the provider is told that the payment stays, or why it goes back.
#[track_caller]
fn assert_told(reply: &Reply, outcome: &str, reason: Option<&str>) {
    reply.assert_status(200);
    let told = (reply.word("outcome"), reply.body["reason"].as_str());
    assert_eq!(told, (outcome, reason), "{}", reply.text);
}

/// Panics unless exactly this went back for an order: the payment's name, how much, and why.
async fn assert_refunded(shop: &Shop, order: OrderId, expected: &[(&str, i64, &str)]) {
    let refunds = shop.refunds(order).await;
    let found: Vec<_> = refunds
        .iter()
        .map(|refund| {
            let text = |field: &str| refund[field].as_str().unwrap_or_default().to_owned();
            let amount = refund["amount_minor"].as_i64().unwrap_or_default();
            (text("payment_id"), amount, text("reason"))
        })
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, amount, why)| (payment_id(order, name), *amount, (*why).to_owned()))
        .collect();
    assert_eq!(found, expected, "{refunds:?}");
}

async fn status(shop: &Shop, order: OrderId, who: BuyerId) -> OrderStatus {
    shop.order(order, who).await.order_status()
}

async fn ten_different_payments_at_once_pay_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(2)).await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let names: Vec<String> = (0..10).map(|number| format!("p-{number}")).collect();
    let pay = async |name: String| (shop.pay(order, me, &name).await, name);
    let replies = crowd(names, 10, pay).await;
    let (paid, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|(it, _)| it.status == 200);
    assert_eq!(paid.len(), 1, "{paid:?}");
    assert_eq!(paid[0].0.word("status"), "paid");
    for (reply, _) in refused {
        reply.assert_problem(409, "order_paid");
    }
    // The one that paid stays the one.
    let again = shop.pay(order, me, &paid[0].1).await;
    assert_eq!(again.assert_status(200).word("status"), "paid");
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.awaiting_payment, tally.free), (1, 0, 1));
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn cancelled_sixteen_times_the_buyer_may_return(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1)).await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let replies = crowd(vec![(); 16], 16, |()| shop.cancel(order, me)).await;
    for reply in &replies {
        assert_eq!(reply.assert_status(200).word("status"), "cancelled");
    }
    assert_eq!(shop.balanced(voucher).await.tally.free, 1);
    let again = shop.buy_settled(voucher, me).await;
    assert_ne!(again, order);
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "sold_out");
    // A late cancellation of the first order leaves the second alone.
    shop.cancel(order, me).await.assert_status(200);
    assert_eq!(status(&shop, again, me).await, OrderStatus::PendingPayment);
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.free, tally.awaiting_payment), (0, 1));
    let ledger = site.ledger_if_real().await;
    let verdict = audit(&shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds();
}

async fn a_payment_pays_one_order(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let (me, you) = (buyer(), buyer());
    let mine = shop.buy_settled(voucher, me).await;
    let yours = shop.buy_settled(voucher, you).await;
    shop.pay(mine, me, "p-1").await.assert_status(200);
    let used = serde_json::json!({"payment_id": payment_id(mine, "p-1")});
    let call = Call::post(format!("/v1/orders/{yours}/payments"));
    let reply = shop.ask(call.by(you).json(&used)).await;
    reply.assert_problem(409, "payment_used");
    assert_eq!(status(&shop, yours, you).await, OrderStatus::PendingPayment);
    // Whoever says so is the provider: a person has to look.
    let contradiction = Notice::of(yours, "p-1").with("payment_id", payment_id(mine, "p-1"));
    let reply = shop.hear(&contradiction).await;
    reply.assert_is_problem().assert_status(409);
    assert_eq!(status(&shop, yours, you).await, OrderStatus::PendingPayment);
    assert_eq!(shop.balanced(voucher).await.tally.paid, 1);
}

/// Stands for: no payment, cancellation, expiry, refund, waitlist, reconciliation, rate limit,
/// metrics (1.17).
async fn money_that_moved_pays_its_order(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let notice = Notice::of(order, "p-1");
    let heard = crowd(vec![&notice; 10], 10, |notice| shop.hear(notice)).await;
    for reply in heard.iter().chain([&shop.hear(&notice).await]) {
        assert_told(reply, "paid", None);
        assert_eq!(reply.word("payment_id"), payment_id(order, "p-1"));
    }
    let paid = shop.pay(order, me, "p-1").await;
    assert_eq!(paid.assert_status(200).word("status"), "paid");
    shop.pay(order, me, "p-2")
        .await
        .assert_problem(409, "order_paid");
    shop.cancel(order, me)
        .await
        .assert_problem(409, "order_paid");
    assert_refunded(&shop, order, &[]).await;
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (1, 4));
}

async fn the_provider_and_the_buyer_at_once_are_one_payment(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(20)).await;
    let race = async |me| {
        let order = shop.buy_settled(voucher, me).await;
        let notice = Notice::of(order, "p-1");
        let (told, heard) = futures::join!(shop.pay(order, me, "p-1"), shop.hear(&notice));
        assert_eq!(told.assert_status(200).word("status"), "paid");
        assert_told(&heard, "paid", None);
    };
    crowd(buyers(20), 10, race).await;
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (20, 0));
}

/// Stands for: money that comes late revives an order that is over, or is kept (B52).
async fn money_that_comes_too_late_goes_back(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5).payment_window_s(1)).await;
    let (me, you) = (buyer(), buyer());
    let cancelled = shop.buy_settled(voucher, me).await;
    shop.cancel(cancelled, me).await.assert_status(200);
    let expired = shop.buy(voucher, you).await.expect_granted();
    let live = [OrderStatus::Queued, OrderStatus::PendingPayment];
    let over = shop.order_past(expired, you, &live).await;
    assert_eq!(over.word("status"), "expired");
    for (order, who, stays) in [(cancelled, me, "cancelled"), (expired, you, "expired")] {
        let notice = Notice::of(order, "p-1");
        let heard = crowd(vec![&notice; 5], 5, |notice| shop.hear(notice)).await;
        for reply in &heard {
            assert_told(reply, "refunded", Some("too_late"));
        }
        // Another payment is other money.
        let more = shop.hear(&Notice::of(order, "p-2")).await;
        assert_told(&more, "refunded", Some("too_late"));
        assert_eq!(shop.order(order, who).await.word("status"), stays);
        let expected = [("p-2", 8_000, "too_late"), ("p-1", 8_000, "too_late")];
        assert_refunded(&shop, order, &expected).await;
        eventually("they are sent", Duration::from_secs(10), async || {
            let refunds = shop.refunds(order).await;
            let sent = refunds.iter().all(|refund| refund["sent"] == true);
            sent.then_some(()).ok_or(format!("{refunds:?}"))
        })
        .await;
    }
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (0, 5));
}

async fn a_second_payment_goes_back(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    shop.pay(order, me, "p-1").await.assert_status(200);
    for _ in 0..2 {
        let second = shop.hear(&Notice::of(order, "p-2")).await;
        assert_told(&second, "refunded", Some("second_payment"));
    }
    assert_told(&shop.hear(&Notice::of(order, "p-1")).await, "paid", None);
    assert_refunded(&shop, order, &[("p-2", 8_000, "second_payment")]).await;
    assert_eq!(status(&shop, order, me).await, OrderStatus::Paid);
    // An administrator refunds the first one, too, and then the units are free.
    let refund = Call::post(format!("/v1/admin/orders/{order}/refunds")).by_admin();
    for _ in 0..2 {
        let reply = shop.ask(refund.clone()).await;
        assert_eq!(reply.assert_status(200).word("status"), "refunded");
    }
    let expected = [
        ("p-1", 8_000, "requested"),
        ("p-2", 8_000, "second_payment"),
    ];
    assert_refunded(&shop, order, &expected).await;
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.paid, tally.free), (0, 5));
    shop.buy(voucher, me).await.expect_granted();
}

async fn a_wrong_amount_goes_back(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let less = Notice::of(order, "p-1").with("amount_minor", 7_999);
    for _ in 0..2 {
        assert_told(&shop.hear(&less).await, "refunded", Some("wrong_amount"));
    }
    let other = Notice::of(order, "p-2").with("currency", "EUR");
    assert_told(&shop.hear(&other).await, "refunded", Some("wrong_amount"));
    assert_eq!(status(&shop, order, me).await, OrderStatus::PendingPayment);
    let expected = [
        ("p-2", 8_000, "wrong_amount"),
        ("p-1", 7_999, "wrong_amount"),
    ];
    assert_refunded(&shop, order, &expected).await;
    assert_told(&shop.hear(&Notice::of(order, "p-3")).await, "paid", None);
    assert_eq!(status(&shop, order, me).await, OrderStatus::Paid);
}

async fn money_for_nobody_goes_back(site: &Site) {
    let shop = site.shop();
    let nobodys = OrderId::new(buyer().get());
    for _ in 0..2 {
        let heard = shop.hear(&Notice::of(nobodys, "p-1")).await;
        assert_told(&heard, "refunded", Some("unknown_order"));
    }
    assert_refunded(&shop, nobodys, &[("p-1", 8_000, "unknown_order")]).await;
    // Whoever waits has nothing to pay for yet.
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let me = buyer();
    let (waiting, _) = shop.buy(voucher, me).await.expect_waitlisted();
    let heard = shop.hear(&Notice::of(waiting, "p-1")).await;
    assert_eq!(heard.assert_status(200).word("outcome"), "refunded");
    assert_eq!(shop.refunds(waiting).await.len(), 1);
    assert_eq!(status(&shop, waiting, me).await, OrderStatus::Waiting);
}

async fn what_is_not_signed_as_it_should_be_is_not_heard(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let notice = Notice::of(order, "p-1");
    let other = notice.clone().with("amount_minor", 1);
    let body = |notice: &Notice| notice.call_saying("{}");
    let unsigned = Call::post("/v1/payments/notifications").text("{}");
    let calls = [
        notice.clone().signed_with(&"x".repeat(32)).call(),
        notice.clone().sent_before_s(360).call(),
        notice.clone().sent_before_s(-360).call(),
        body(&notice),
        other.call_saying(&serde_json::json!({"order_id": order.to_string()}).to_string()),
        unsigned.clone(),
        unsigned.clone().header("payment-timestamp", "1"),
        unsigned.header("payment-signature", &"0".repeat(64)),
        notice.call().header("payment-timestamp", "1"),
        // A token is no signature.
        Call::post("/v1/payments/notifications")
            .by_admin()
            .text("{}"),
    ];
    for call in calls {
        let asked = format!("{call:?}");
        let reply = shop.ask(call).await;
        assert_eq!(reply.code(), "invalid_signature", "{asked}: {}", reply.text);
        reply.assert_problem(401, "invalid_signature");
    }
    for (field, value) in [
        ("payment_id", serde_json::json!("a b")),
        ("order_id", serde_json::json!("x")),
        ("currency", serde_json::json!("yuan")),
        ("amount_minor", serde_json::json!(-1)),
    ] {
        let reply = shop.hear(&notice.clone().with(field, value)).await;
        reply.assert_problem(422, "validation_failed");
    }
    assert_eq!(status(&shop, order, me).await, OrderStatus::PendingPayment);
    assert_refunded(&shop, order, &[]).await;
    // Clocks differ a little.
    assert_told(&shop.hear(&notice.sent_before_s(240)).await, "paid", None);
}

async fn without_a_secret_nobody_is_heard(site: Site) {
    let process = site.without(PAYMENTS_SECRET).start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = buyer();
    let order = shop.buy_settled(voucher, me).await;
    let reply = shop.hear(&Notice::of(order, "p-1")).await;
    reply.assert_problem(503, "unavailable");
    assert_eq!(reply.body["effect"], "none", "{}", reply.text);
    assert_eq!(status(&shop, order, me).await, OrderStatus::PendingPayment);
    shop.pay(order, me, "p-1").await.assert_status(200);
}

/// The row comes in time, or the provider is asked to come again; no money goes back because the
/// ledger is slow.
async fn money_waits_for_an_order_that_is_queued(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    shop.buy_settled(voucher, buyer()).await;
    let held = site.ledger().await.hold_writers().await;
    let me = buyer();
    let order = shop.buy(voucher, me).await.expect_granted();
    let notice = Notice::of(order, "p-1");
    let early = shop.hear(&notice).await;
    early.assert_problem(409, "order_queued");
    assert_eq!(early.body["retryable"], true, "{}", early.text);
    assert_eq!(early.header("retry-after"), "1");
    let (heard, ()) = futures::join!(shop.hear(&notice), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        held.release().await;
    });
    assert_told(&heard, "paid", None);
    assert_refunded(&shop, order, &[]).await;
    assert_eq!(status(&shop, order, me).await, OrderStatus::Paid);
}

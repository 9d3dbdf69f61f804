//! Who one is, and whose order it is.

use seckill_tests::harness::{Call, Offer, Reply, Site, Token, buyer};
use serde_json::json;

use crate::on_every_stack;

on_every_stack!(
    a_token_that_does_not_hold_buys_nothing,
    a_buyer_is_no_administrator,
    somebody_elses_order_does_not_exist,
);

fn assert_unauthenticated(reply: &Reply) {
    reply.assert_problem(401, "unauthenticated");
    let asked_for = reply.header("www-authenticate");
    assert!(asked_for.starts_with("Bearer"), "{:?}", reply.headers);
}

async fn a_token_that_does_not_hold_buys_nothing(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let me = Token::of(buyer());
    let good = me.signed();
    let (head, signature) = good.rsplit_once('.').expect("three parts");
    let other = Token::of(buyer()).signed();
    let (other_head, _) = other.rsplit_once('.').expect("three parts");
    let bad = [
        ("forged", me.clone().signed_with(&"x".repeat(40)).signed()),
        ("expired", me.clone().for_seconds(-120).signed()),
        ("alg:none", me.unsigned()),
        ("no signature", format!("{head}.")),
        ("another's claims", format!("{other_head}.{signature}")),
        ("no number", me.clone().naming("me").signed()),
        ("no canonical number", me.clone().naming("007").signed()),
        ("nobody", me.clone().naming("").signed()),
        ("garbage", "garbage".to_owned()),
        ("nothing", String::new()),
    ];
    let path = format!("/v1/vouchers/{voucher}/purchases");
    for (what, token) in bad {
        let reply = shop.ask(Call::post(&path).bearing(&token)).await;
        assert_eq!(reply.status, 401, "{what}: {}", reply.text);
        assert_unauthenticated(&reply);
        let reply = shop.ask(Call::get("/v1/orders").bearing(&token)).await;
        assert_unauthenticated(&reply);
    }
    assert_unauthenticated(&shop.ask(Call::post(&path)).await);
    let basic = Call::post(&path).header("authorization", "Basic bWU6bWU=");
    assert_unauthenticated(&shop.ask(basic).await);
    assert_eq!(shop.balanced(voucher).await.tally.free, 5);

    // A token that was good a moment ago is not good for ever.
    let short = me.for_seconds(2).signed();
    let order = shop.ask(Call::post(&path).bearing(&short)).await;
    order.assert_status(202);
    let expired = async || {
        let reply = shop.ask(Call::post(&path).bearing(&short)).await;
        reply.status == 401
    };
    let limit = std::time::Duration::from_secs(12);
    seckill_tests::stack::until("a verified token expires", limit, expired).await;
    assert_eq!(shop.balanced(voucher).await.tally.free, 4);
}

async fn a_buyer_is_no_administrator(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let base = format!("/v1/admin/vouchers/{voucher}");
    let calls = [
        Call::post("/v1/admin/vouchers").json(Offer::of(1).body()),
        Call::new("PATCH", &base).json(&json!({"title": "mine"})),
        Call::post(format!("{base}/close")),
        Call::post(format!("{base}/stock-adjustments")).json(&json!({"delta": 1, "reason": "me"})),
        Call::get(format!("{base}/balance")),
    ];
    for call in calls {
        assert_unauthenticated(&shop.ask(call.clone()).await);
        shop.ask(call.by(buyer()))
            .await
            .assert_problem(403, "forbidden");
    }
    assert_eq!(shop.voucher(voucher).await.word("status"), "published");
    assert_eq!(shop.balanced(voucher).await.tally.total, 5);
}

async fn somebody_elses_order_does_not_exist(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(5)).await;
    let (owner, stranger) = (buyer(), buyer());
    let order = shop.buy(voucher, owner).await.expect_granted();
    // At once, while it is queued, and when it is in the ledger.
    for _ in 0..2 {
        shop.order(order, stranger)
            .await
            .assert_problem(404, "order_not_found");
        shop.pay(order, stranger, "p-1")
            .await
            .assert_problem(404, "order_not_found");
        shop.cancel(order, stranger)
            .await
            .assert_problem(404, "order_not_found");
        shop.settled(order, owner).await;
    }
    let none = Call::get("/v1/orders/123").by(owner);
    shop.ask(none).await.assert_problem(404, "order_not_found");
    let list = shop.ask(Call::get("/v1/orders").by(stranger)).await;
    assert_eq!(list.body["items"], json!([]));
    let anybody = Call::get(format!("/v1/orders/{order}"));
    assert_unauthenticated(&shop.ask(anybody).await);
    let reply = shop.settled(order, owner).await;
    assert_eq!(reply.word("status"), "pending_payment");
}

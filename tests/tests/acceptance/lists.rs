//! Reading: vouchers, orders, and lists of them.

use std::collections::BTreeSet;

use seckill_domain::OrderStatus;
use seckill_tests::harness::{Call, Offer, Reply, Site, buyer};
use serde_json::Value;

use crate::on_every_stack;

on_every_stack!(
    a_granted_order_is_readable_at_once,
    orders_are_listed_in_parts,
    vouchers_are_listed_in_parts,
    a_part_that_does_not_exist_is_refused,
    ids_survive_browsers,
);

/// Stands for: "success", and no way to ask what became of it; or the state is written after the
/// message and hides its result (hole 16, 1.14, B18).
async fn a_granted_order_is_readable_at_once(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(20)).await;
    for _ in 0..20 {
        let me = buyer();
        let order = shop.buy(voucher, me).await.expect_granted();
        let seen = shop.order(order, me).await;
        seen.assert_status(200);
        let status = seen.order_status();
        assert_eq!(seen.order_id("id"), order);
        assert_eq!(seen.voucher_id("voucher_id"), voucher);
        assert_eq!(seen.word("user_id"), me.to_string());
        assert_eq!(
            (seen.number("quantity"), seen.number("amount_minor")),
            (1, 8_000)
        );
        assert_eq!(seen.word("currency"), "CNY");
        assert_instant(&seen.body["created_at"]);
        if status == OrderStatus::Queued {
            assert_eq!(
                seen.body.get("expires_at"),
                Some(&Value::Null),
                "{}",
                seen.text
            );
        } else {
            assert_eq!(status, OrderStatus::PendingPayment);
            assert_instant(&seen.body["expires_at"]);
        }
        let settled = shop.settled(order, me).await;
        assert_instant(&settled.body["expires_at"]);
    }
}

/// RFC 3339 in UTC with milliseconds.
fn assert_instant(value: &Value) {
    let text = value.as_str().unwrap_or_default();
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect();
    assert_eq!(shape, "9999-99-99T99:99:99.999Z", "{value}");
}

async fn orders_are_listed_in_parts(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(10).limit(5)).await;
    let me = buyer();
    let mut bought = Vec::new();
    for _ in 0..5 {
        bought.push(shop.buy_settled(voucher, me).await.to_string());
    }
    bought.reverse();
    let mut listed: Vec<String> = Vec::new();
    let mut path = "/v1/orders?limit=2".to_owned();
    let mut sizes = Vec::new();
    loop {
        let part = shop.ask(Call::get(&path).by(me)).await;
        let ids = item_ids(&part);
        sizes.push(ids.len());
        listed.extend(ids);
        match part.body["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/orders?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(listed, bought, "newest first");
    assert_eq!(sizes, [2, 2, 1]);
    let all = shop.ask(Call::get("/v1/orders").by(me)).await;
    assert_eq!(item_ids(&all), bought);
    assert_eq!(all.body["next_cursor"], Value::Null);
}

fn item_ids(part: &Reply) -> Vec<String> {
    part.assert_status(200);
    let items = part.body["items"].as_array().expect("items");
    items
        .iter()
        .map(|item| item["id"].as_str().expect("ids are strings").to_owned())
        .collect()
}

async fn vouchers_are_listed_in_parts(site: &Site) {
    let shop = site.shop();
    let draft = shop.draft(&Offer::of(1)).await.to_string();
    let mut mine = BTreeSet::new();
    for _ in 0..3 {
        mine.insert(shop.sell(&Offer::of(1)).await.to_string());
    }
    let mut seen = BTreeSet::new();
    let mut path = "/v1/vouchers?limit=2".to_owned();
    // Other tests add vouchers at the other end of the list.
    while !mine.is_subset(&seen) {
        let part = shop.ask(Call::get(&path)).await;
        let ids = item_ids(&part);
        assert!(ids.len() <= 2, "{}", part.text);
        for id in ids {
            assert!(seen.insert(id), "twice: {}", part.text);
        }
        match part.body["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/vouchers?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert!(mine.is_subset(&seen), "{mine:?} in {seen:?}");
    assert!(!seen.contains(&draft), "a draft is nobody's business");

    let one = shop.sell(&Offer::of(7).waitlist(3)).await;
    let seen = shop.voucher(one).await;
    assert_eq!(
        (
            seen.number("available_units"),
            seen.number("waitlist_length")
        ),
        (7, 0)
    );
    assert_instant(&seen.body["server_time"]);
    assert_instant(&seen.body["opens_at"]);
    shop.buy(one, buyer()).await.expect_granted();
    assert_eq!(shop.voucher(one).await.number("available_units"), 6);
}

async fn a_part_that_does_not_exist_is_refused(site: &Site) {
    let shop = site.shop();
    for list in ["/v1/orders", "/v1/vouchers"] {
        for query in [
            "limit=0",
            "limit=101",
            "limit=-1",
            "limit=x",
            "cursor=nonsense",
        ] {
            let call = Call::get(format!("{list}?{query}")).by(buyer());
            shop.ask(call)
                .await
                .assert_problem(422, "validation_failed");
        }
    }
}

/// 64-bit ids lose digits as JSON numbers (and in Lua): they are strings everywhere.
async fn ids_survive_browsers(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(3)).await;
    for sub in [9_007_199_254_740_993, 609_848_294_759_202_817, u64::MAX] {
        let me = seckill_domain::BuyerId::new(sub);
        let order = shop.buy(voucher, me).await.expect_granted();
        let seen = shop.settled(order, me).await;
        assert_eq!(seen.order_id("id"), order);
        assert_eq!(seen.word("user_id"), sub.to_string());
        assert_eq!(seen.voucher_id("voucher_id"), voucher);
        assert_eq!(shop.buy(voucher, me).await.expect_already_held(), order);
    }
}

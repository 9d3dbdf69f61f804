//! Entries that cannot be applied: an administrator finds them, replays and discards them, and at
//! every moment their units are accounted for.

use std::cell::Cell;
use std::time::Duration;

use futures::join;
use seckill_domain::invariants;
use seckill_domain::{BuyerId, OrderId, PartitionId, VoucherId};
use seckill_tests::harness::{
    Call, Gate, Ledger, Offer, Reply, Shop, Site, audit, buyer, eventually,
};
use seckill_tests::matrix::Row;
use serde_json::{Value, json};

use crate::reports::{parsed, round_about};
use crate::{on_own_servers, on_own_stores};

on_own_stores!(
    what_cannot_be_applied_is_discarded,
    what_came_too_early_is_replayed,
    what_cannot_be_read_is_parked_with_what_it_names,
);
on_own_servers!(
    what_came_while_the_rows_were_gone_is_counted_when_they_are_back,
    places_that_came_while_the_rows_were_gone_keep_their_turns,
);

const PATH: &str = "/v1/admin/parked-messages";
const PARTITION: PartitionId = PartitionId::new(0);

async fn listed(shop: &Shop, state: &str) -> Vec<Value> {
    let call = Call::get(format!("{PATH}?state={state}")).by_admin();
    let reply = shop.ask(call).await;
    reply.assert_status(200);
    reply.body["items"].as_array().expect("a list").clone()
}

async fn waiting(shop: &Shop, count: usize) -> Vec<Value> {
    eventually("they are parked", Duration::from_secs(20), async || {
        let found = listed(shop, "parked").await;
        (found.len() == count)
            .then_some(found.clone())
            .ok_or(format!("{found:?}"))
    })
    .await
}

fn id(message: &Value) -> &str {
    message["id"].as_str().expect("an id")
}

async fn replay(shop: &Shop, id: &str) -> Reply {
    shop.ask(Call::post(format!("{PATH}/{id}/replay")).by_admin())
        .await
}

async fn discard(shop: &Shop, id: &str, reason: &str) -> Reply {
    let call = Call::post(format!("{PATH}/{id}/discard")).by_admin();
    shop.ask(call.json(&json!({"reason": reason}))).await
}

/// Looks at the balance all the time while something is done. Each time it holds, unless something
/// moved while it was read, which is not so twice in a row here.
async fn balanced_throughout<T>(
    shop: &Shop,
    voucher: VoucherId,
    act: impl Future<Output = T>,
) -> T {
    let is_done = Cell::new(false);
    let acting = async {
        let outcome = act.await;
        is_done.set(true);
        outcome
    };
    let looking = async {
        let mut looks = 0;
        while !is_done.get() || looks < 3 {
            let mut seen = shop.balance(voucher).await;
            for _ in 0..3 {
                if !seen.holds {
                    seen = shop.balance(voucher).await;
                }
            }
            assert!(seen.holds && invariants::conserved(&seen.tally), "{seen:?}");
            looks += 1;
        }
    };
    join!(acting, looking).0
}

/// Two entries: one that is not ours, and a grant whose order id is another buyer's.
async fn plant(shop: &Shop, gate: &Gate, voucher: VoucherId, taken: OrderId) -> Vec<Value> {
    let stream = gate.keys_of_type("stream").await.remove(0);
    let mut junk = redis::cmd("XADD");
    junk.arg(&stream).arg("*").arg(&["what", "is this"]);
    gate.run::<String>(&junk).await;
    gate.grant(PARTITION, voucher, buyer(), taken).await;
    waiting(shop, 2).await
}

async fn what_cannot_be_applied_is_discarded(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let voucher = shop.sell(&Offer::of(10)).await;
    let owner = buyer();
    let order = shop.buy_settled(voucher, owner).await;
    let mut row = Row::begin();
    let planting = plant(&shop, &gate, voucher, order);
    let messages = balanced_throughout(&shop, voucher, planting).await;
    let [grant, junk] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(
        (&junk["reason"], &junk["units"]),
        (&json!("unreadable"), &json!(0))
    );
    assert!(
        junk["raw"]
            .as_str()
            .is_some_and(|raw| raw.contains("is this"))
    );
    assert_eq!(
        (&grant["reason"], &grant["units"]),
        (&json!("bad_values"), &json!(1))
    );
    assert_eq!(grant["order_id"], json!(order.to_string()));
    row.struck("entries that cannot be applied", messages.len());
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.parked, balance.tally.free), (1, 8));
    // It blocks nobody, and cannot be applied.
    shop.buy_settled(voucher, buyer()).await;
    for message in [grant, junk] {
        let reply = replay(&shop, id(message)).await;
        reply.assert_problem(409, "parked_message_unfit");
    }
    discard(&shop, id(grant), "")
        .await
        .assert_problem(422, "validation_failed");
    let discarding = async {
        for message in [grant, junk, grant] {
            let reply = discard(&shop, id(message), "planted").await;
            reply.assert_status(200);
            assert_eq!(reply.word("state"), "discarded");
        }
    };
    balanced_throughout(&shop, voucher, discarding).await;
    assert_eq!(listed(&shop, "parked").await, Vec::<Value>::new());
    let all = listed(&shop, "all").await;
    assert_eq!(all.len(), 2);
    assert!(
        all.iter().all(|it| it["discard_reason"] == "planted"),
        "{all:?}"
    );
    replay(&shop, id(grant))
        .await
        .assert_problem(409, "parked_message_settled");
    replay(&shop, "999")
        .await
        .assert_problem(404, "parked_message_not_found");
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.parked, balance.tally.free), (0, 8));
    let seen = shop.order(order, owner).await;
    assert_eq!(seen.word("status"), "pending_payment", "his stays his");
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    row.held_with_rejections(&verdict);
}

/// A decision of the gate with a word too many: its number is taken, its unit is counted, and the
/// partition goes on in the same life.
async fn what_cannot_be_read_is_parked_with_what_it_names(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let gate = site.gate().await;
    let voucher = shop.sell(&Offer::of(10)).await;
    let (who, order) = (buyer(), OrderId::new(4_711));
    assert!(gate.plant_holder(voucher, who, order, 1).await);
    let words = format!("granted {voucher} {order} {who} 1 - spoilt");
    gate.decide(PARTITION, &words).await;
    let messages = waiting(&shop, 1).await;
    let message = &messages[0];
    assert_eq!(message["reason"], "unreadable");
    assert_eq!(message["voucher_id"], json!(voucher.to_string()));
    assert_eq!(message["order_id"], json!(order.to_string()));
    assert_eq!(message["units"], 1);
    shop.buy_settled(voucher, buyer()).await;
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.parked, balance.tally.free), (1, 8));
    let seen = shop.order(order, who).await;
    assert_eq!(seen.word("status"), "queued");
    discard(&shop, id(message), "spoilt")
        .await
        .assert_status(200);
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.parked, balance.tally.free), (0, 9));
    let log = process.log();
    assert!(!log.contains("redis went back"), "it did not");
}

/// A grant of a voucher that is a draft when the ledger hears of it, and on sale by now.
async fn what_came_too_early_is_replayed(site: Site) {
    let mut row = Row::begin();
    let process = site.start().await;
    let shop = process.shop();
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    // So that the partition is there.
    shop.sell(&Offer::of(1)).await;
    let voucher = shop.draft(&Offer::of(10)).await;
    let (who, order) = (buyer(), OrderId::new(4_711));
    let words = format!("granted {voucher} {order} {who} 1 -");
    gate.decide(PARTITION, &words).await;
    let messages = waiting(&shop, 1).await;
    let message = &messages[0];
    assert_eq!(message["reason"], "unknown_voucher");
    row.struck("a grant of an unknown voucher", messages.len());
    shop.steer(voucher, "publish").await.assert_status(200);
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.parked, balance.tally.free), (1, 9));
    let seen = shop.order(order, who).await;
    assert_eq!(seen.word("status"), "queued", "he was told that it is his");
    let replaying = async {
        for _ in 0..2 {
            let reply = replay(&shop, id(message)).await;
            reply.assert_status(200);
            assert_eq!(reply.word("state"), "replayed");
        }
    };
    balanced_throughout(&shop, voucher, replaying).await;
    let seen = shop.settled(order, who).await;
    assert_eq!(seen.word("status"), "pending_payment");
    discard(&shop, id(message), "no")
        .await
        .assert_problem(409, "parked_message_settled");
    shop.pay(order, who, "p-1").await.assert_status(200);
    let again = shop.buy(voucher, who).await;
    assert_eq!(again.expect_already_held(), order);
    let balance = shop.balanced(voucher).await;
    assert_eq!((balance.tally.paid, balance.tally.free), (1, 9));
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    row.held_with_rejections(&verdict);
}

/// Somebody deletes a voucher's rows while it sells, and puts them back from a copy. What was sold
/// meanwhile is in no order, and its units are not for sale again.
async fn what_came_while_the_rows_were_gone_is_counted_when_they_are_back(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let voucher = shop.sell(&Offer::of(10)).await;
    let rows = VoucherRows::of(&ledger, voucher);
    rows.take_away().await;
    let mut bought = Vec::new();
    for who in std::iter::repeat_with(buyer).take(4) {
        bought.push((who, shop.buy(voucher, who).await.expect_granted()));
    }
    let mut messages = waiting(&shop, 4).await;
    assert!(messages.iter().all(|it| it["units"] == 0), "{messages:?}");
    rows.put_back().await;
    messages = waiting(&shop, 4).await;
    assert!(messages.iter().all(|it| it["units"] == 1), "{messages:?}");
    let parked = async |shop: &Shop| {
        let tally = shop.balanced(voucher).await.tally;
        (tally.free, tally.parked, tally.awaiting_payment)
    };
    assert_eq!(parked(&shop).await, (6, 4, 0));
    let round = round_about(&shop, voucher).await;
    round.of(voucher).assert_sound();
    assert_eq!(round.repair_count, 0, "nothing was wrong with the gate");
    gate.flush_all().await;
    shop.buy_settled(voucher, buyer()).await;
    assert_eq!(parked(&shop).await, (5, 4, 1), "a sale loaded anew");
    for message in &messages[1..] {
        replay(&shop, id(message)).await.assert_status(200);
    }
    discard(&shop, id(&messages[0]), "one of them")
        .await
        .assert_status(200);
    assert_eq!(parked(&shop).await, (6, 0, 4));
    let discarded = messages[0]["order_id"].as_str().expect("an order id");
    for (who, order) in bought {
        let seen = shop.order(order, who).await;
        let is_discarded = order.to_string() == discarded;
        let expected = if is_discarded {
            "rejected"
        } else {
            "pending_payment"
        };
        assert_eq!(seen.word("status"), expected);
    }
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    assert_eq!(verdict.assert_holds().rejected.len(), 1);
}

/// The same of a waitlist: whoever joined it meanwhile keeps his turn, whatever the gate forgets.
async fn places_that_came_while_the_rows_were_gone_keep_their_turns(site: Site) {
    let process = site.start().await;
    let shop = process.shop();
    let (gate, ledger) = (site.gate().await, site.ledger().await);
    let voucher = shop.sell(&Offer::of(1).waitlist(10)).await;
    let rows = VoucherRows::of(&ledger, voucher);
    rows.take_away().await;
    let holder = buyer();
    let held = shop.buy(voucher, holder).await.expect_granted();
    let mut waiters = Vec::new();
    for who in std::iter::repeat_with(buyer).take(3) {
        waiters.push((who, shop.buy(voucher, who).await.expect_waitlisted().0));
    }
    let messages = waiting(&shop, 4).await;
    rows.put_back().await;
    let last = buyer();
    let (order, place) = shop.buy(voucher, last).await.expect_waitlisted();
    assert_eq!(place, 4);
    shop.settled(order, last).await;
    waiters.push((last, order));
    let round = round_about(&shop, voucher).await;
    round.of(voucher).assert_sound();
    gate.flush_all().await;
    // Until then the process answers with what it remembers.
    eventually("it is loaded", Duration::from_secs(20), async || {
        let sets = gate.keys_of_type("zset").await;
        let is_there = sets.iter().any(|it| it.ends_with(":waiters"));
        is_there.then_some(()).ok_or(format!("{sets:?}"))
    })
    .await;
    for (place, (who, order)) in (1_u64..).zip(&waiters) {
        assert_eq!(place_of(&shop, voucher, *who).await, (*order, place));
        let again = shop.buy(voucher, *who).await;
        assert_eq!(again.expect_waitlisted(), (*order, place));
    }
    let round = round_about(&shop, voucher).await;
    round.of(voucher).assert_sound();
    // One is taken after all, one is given up, and the turn of one comes while it is parked.
    for order in [held, waiters[1].1] {
        replay(&shop, message_of(&messages, order))
            .await
            .assert_status(200);
    }
    let status = async |(who, order): (BuyerId, OrderId)| {
        shop.order(order, who).await.word("status").to_owned()
    };
    assert_eq!(status(waiters[1]).await, "waiting");
    discard(&shop, message_of(&messages, waiters[2].1), "one of them")
        .await
        .assert_status(200);
    round_about(&shop, voucher).await;
    shop.cancel(held, holder).await.assert_status(200);
    eventually("the first is served", Duration::from_secs(20), async || {
        let seen = status(waiters[0]).await;
        (seen == "pending_payment").then_some(()).ok_or(seen)
    })
    .await;
    assert_eq!(
        place_of(&shop, voucher, waiters[1].0).await,
        (waiters[1].1, 1)
    );
    assert_eq!(place_of(&shop, voucher, last).await, (waiters[3].1, 2));
    assert_eq!(status(waiters[2]).await, "rejected");
    let first = message_of(&messages, waiters[0].1);
    replay(&shop, first).await.assert_status(200);
    assert_eq!(listed(&shop, "parked").await, Vec::<Value>::new());
    let verdict = audit(&shop, shop.history(), &[voucher], Some(&ledger)).await;
    verdict.assert_holds();
}

fn message_of(messages: &[Value], order: OrderId) -> &str {
    let order = order.to_string();
    let about = messages
        .iter()
        .find(|it| it["raw"].as_str().is_some_and(|raw| raw.contains(&order)));
    id(about.unwrap_or_else(|| panic!("none about {order}: {messages:?}")))
}

/// The order under which somebody waits, and his place, once he is found.
async fn place_of(shop: &Shop, voucher: VoucherId, who: BuyerId) -> (OrderId, u64) {
    eventually("he is found", Duration::from_secs(20), async || {
        let reply = shop.place(voucher, who).await;
        if reply.status != 200 {
            return Err(reply.text);
        }
        let position = reply.body["position"].as_u64().expect("a place");
        Ok((parsed(&reply.body, "order_id"), position))
    })
    .await
}

/// The rows that make a voucher of the ledger, and a copy.
struct VoucherRows<'l> {
    ledger: &'l Ledger,
    voucher: u64,
}

impl<'l> VoucherRows<'l> {
    fn of(ledger: &'l Ledger, voucher: VoucherId) -> Self {
        let voucher = voucher.get();
        Self { ledger, voucher }
    }

    async fn take_away(&self) {
        for statement in [
            "CREATE TABLE kept_vouchers AS SELECT * FROM vouchers WHERE id = ?",
            "CREATE TABLE kept_stock AS SELECT * FROM voucher_stock WHERE voucher_id = ?",
            "DELETE FROM gate_updates WHERE voucher_id = ?",
            "DELETE FROM voucher_stock WHERE voucher_id = ?",
            "DELETE FROM vouchers WHERE id = ?",
        ] {
            self.ledger.change(statement, self.voucher).await;
        }
    }

    async fn put_back(&self) {
        for statement in [
            "INSERT INTO vouchers SELECT * FROM kept_vouchers WHERE id = ?",
            "INSERT INTO voucher_stock SELECT * FROM kept_stock WHERE voucher_id = ?",
        ] {
            self.ledger.change(statement, self.voucher).await;
        }
    }
}

//! How places on the waitlist are stored: `lua/lib/seats.lua`.

use std::collections::BTreeMap;

use seckill_application::ports::LeaveReply;
use seckill_domain::{BuyerId, OrderId, Seat};

use crate::stage::{Stage, VOUCHER, attempt, key, keyed};

/// Orders as they are drawn one after the other.
const FIRST: u64 = 385_896_408_255_299_584;
const BEGINNING: &str = "385896408255";

/// The only unit is sold, and these wait: one of two units, one with a key, and a third.
async fn waiting(orders: [u64; 3]) -> Stage {
    let stage = Stage::selling(1, |terms| {
        terms.waitlist_capacity = 10;
        terms.per_buyer_limit = 2;
    })
    .await;
    let [one, two, three] = orders;
    stage.batch(&[attempt(9, 9, 1)]).await;
    stage
        .batch(&[attempt(one, 1, 2), keyed(two, 2, 1, "a.k:1")])
        .await;
    stage.batch(&[attempt(three, 3, 1)]).await;
    stage
}

async fn seats(stage: &Stage) -> Vec<(u64, u64, u32, Option<String>)> {
    let page = stage.hot.gate.waiters(VOUCHER, 0).await;
    let page = page.expect("an answer").expect("it is loaded");
    let told = |seat: Seat| {
        let key = seat.key.map(|key| key.as_str().to_owned());
        (seat.order.get(), seat.buyer.get(), seat.quantity, key)
    };
    page.seats.into_iter().map(told).collect()
}

fn expected([one, two, three]: [u64; 3]) -> Vec<(u64, u64, u32, Option<String>)> {
    vec![
        (one, 1, 2, None),
        (two, 2, 1, Some("a.k:1".to_owned())),
        (three, 3, 1, None),
    ]
}

async fn blocks(stage: &Stage) -> BTreeMap<String, String> {
    stage.command(&["HGETALL", &key("seats")]).await
}

/// A buyer gives up his place, which is that of this order.
async fn leaves(stage: &Stage, buyer: u64, order: u64) {
    let left = stage.hot.gate.leave(VOUCHER, BuyerId::new(buyer)).await;
    assert_eq!(left.unwrap(), LeaveReply::Left(OrderId::new(order)));
}

#[tokio::test]
async fn what_the_orders_of_a_block_begin_with_is_stored_once() {
    let orders = [FIRST, FIRST + 7, FIRST + 4_096];
    let stage = waiting(orders).await;
    assert_eq!(seats(&stage).await, expected(orders));
    let blocks = blocks(&stage).await;
    let block = blocks.values().next().expect("a block");
    assert_eq!(
        (blocks.len(), block.matches(BEGINNING).count()),
        (1, 1),
        "{block}"
    );
    for (position, order) in (1..).zip(orders) {
        let found = stage.hot.gate.find_order(OrderId::new(order)).await;
        assert_eq!(found.unwrap().expect("known").position, Some(position));
    }
    leaves(&stage, 1, orders[0]).await;
    assert_eq!(seats(&stage).await, expected(orders)[1..]);
    leaves(&stage, 2, orders[1]).await;
    assert_eq!(seats(&stage).await, expected(orders)[2..]);
}

/// The version before reads what follows a slot and a space, in the middle of a line as well.
#[tokio::test]
async fn whoever_knows_whole_orders_alone_finds_no_seat_and_not_half_of_one() {
    for orders in [
        [FIRST, FIRST + 1, FIRST + 2],
        [FIRST, FIRST + 7, FIRST + 4_096],
        [770, 771, 779],
    ] {
        let stage = waiting(orders).await;
        let block = blocks(&stage).await.into_values().next().expect("a block");
        assert_eq!(block.lines().count(), 4, "{block}");
        for line in block.lines() {
            let seen = line.split_once(' ').map_or("", |(before, _)| before);
            let slot = seen.rsplit(|c: char| !c.is_ascii_hexdigit()).next();
            assert!(
                slot.is_none_or(|it| it.is_empty() || it.len() > 1),
                "{block}"
            );
        }
    }
}

#[tokio::test]
async fn orders_that_begin_differently_are_stored_whole() {
    for orders in [
        [1, 2, 3],
        [FIRST, 7, 38],
        [99_999, 100_000, 100_001],
        [5, 55, 555],
        [u64::MAX, FIRST, FIRST + 1],
    ] {
        let stage = waiting(orders).await;
        assert_eq!(seats(&stage).await, expected(orders));
        let block = blocks(&stage).await.into_values().next().expect("a block");
        for order in orders {
            assert!(block.contains(&format!(" {order}")), "{block}");
        }
        for (buyer, order) in (1..).zip(orders) {
            leaves(&stage, buyer, order).await;
        }
        assert_eq!(seats(&stage).await, []);
        assert!(blocks(&stage).await.is_empty());
    }
}

/// A gate that an earlier version has filled: every order stands there whole.
#[tokio::test]
async fn a_block_of_whole_orders_is_read_and_written_anew() {
    let orders = [FIRST, FIRST + 7, FIRST + 4_096];
    let stage = waiting(orders).await;
    let name = blocks(&stage).await.into_keys().next().expect("a block");
    let [one, two, three] = orders;
    // The first decision was the grant.
    let before = format!("2 {one} 2 -\n4 {three}\n3 {two} 1 a.k:1");
    stage
        .command::<u64>(&["HSET", &key("seats"), &name, &before])
        .await;
    assert_eq!(seats(&stage).await, expected(orders));
    stage.batch(&[attempt(FIRST + 9, 4, 1)]).await;
    let mut more = expected(orders);
    more.push((FIRST + 9, 4, 1, None));
    assert_eq!(seats(&stage).await, more);
    let block = blocks(&stage).await.remove(&name).expect("a block");
    assert_eq!(block.matches(BEGINNING).count(), 1, "{block}");
}

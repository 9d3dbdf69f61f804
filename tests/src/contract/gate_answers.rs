//! `PurchaseGate::admit`: every question in its order, with its exact answer.

use seckill_application::ports::{HotPath, LeaveReply, NotLoaded};
use seckill_domain::{Admission, Attempt, Decision, OrderId, PlaceAtFirst, VoucherId};

use super::opening::{Opening, VOUCHER, begin_partition};
use super::stall::waitlisted;
use super::{HotHarness, promises};

promises! { gate_answers over dyn HotHarness:
    a_grant_takes_a_unit_and_is_on_the_stream_in_the_same_step,
    nobody_has_anything_before_he_asks,
    the_last_unit_is_sold_and_the_next_buyer_is_told_so,
    a_missing_voucher_is_not_sold_out,
    a_missing_partition_is_not_sold_out,
    a_repeated_grant_is_answered_again_and_takes_nothing,
    a_repeated_place_is_answered_again_with_where_it_is_now,
    a_repeat_of_what_was_given_up_says_what_it_was_told_at_first,
    a_refused_attempt_may_be_made_again_and_win,
    a_buyer_at_his_limit_is_told_his_orders_the_first_one_first,
    a_buyer_at_his_limit_is_told_so_though_nothing_is_left,
    below_his_limit_each_click_is_a_new_purchase,
    more_than_is_left_of_the_limit_is_refused_whole,
    the_limit_is_asked_before_the_stock,
    units_are_never_given_in_part,
    ids_keep_all_their_digits,
}

/// Stands for: 0 is true in Lua: the first buyer has "already bought" (B4).
async fn a_grant_takes_a_unit_and_is_on_the_stream_in_the_same_step(harness: &dyn HotHarness) {
    let stall = Opening::of(3).open(harness).await;
    let attempt = stall.keyed(42, 1, "first-click");
    let order = attempt.order;
    assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
    assert_eq!(stall.free().await, 2);
    let granted = Decision::Granted(stall.claim(&attempt));
    assert_eq!(stall.decisions().await, [granted]);
}

/// Whatever is counted or looked up for the first who comes is 0 or not there.
///
/// Stands for: 0 is true in Lua: the first buyer has "already bought" (B4).
async fn nobody_has_anything_before_he_asks(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(3).open(harness).await;
    assert_eq!(stall.place(7).await, None);
    assert_eq!(stall.leave(7).await, LeaveReply::NotWaiting);
    let first = stall.keyed(7, 1, "first");
    let order = first.order;
    assert_eq!(stall.admit(&first).await, Admission::Granted { order });

    // He is the first in line, too, under a key that only he has used, or nobody.
    let next = stall.keyed(7, 1, "next");
    assert_eq!(stall.admit(&next).await, waitlisted(next.order, 1));
    let other = stall.keyed(8, 1, "first");
    assert_eq!(stall.admit(&other).await, waitlisted(other.order, 2));

    // When nobody holds or waits for anything any more, it is as it was.
    stall.release(&first).await;
    stall.release(&next).await;
    stall.release(&other).await;
    assert_eq!(stall.pulse().await.waiting, 0);
    assert_eq!(stall.place(8).await, None);
    assert_eq!(stall.leave(8).await, LeaveReply::NotWaiting);
    stall.granted(8, 1).await;
}

/// Stands for: one more is sold than there is (`>=` for `>`) (B3).
async fn the_last_unit_is_sold_and_the_next_buyer_is_told_so(harness: &dyn HotHarness) {
    let stall = Opening::of(2).open(harness).await;
    stall.granted(1, 1).await;
    stall.granted(2, 1).await;
    let before = stall.pulse().await;
    assert_eq!(stall.buy(3, 1).await.1, Admission::SoldOut);
    assert_eq!(stall.pulse().await, before);
    assert_eq!(before.free, 0);
    assert_eq!(
        stall.decisions().await.len(),
        2,
        "a refusal is not written down"
    );
}

/// Stands for: a missing key is an error, "sold out", or a place in an endless queue (hole 4, B5,
/// 2.4).
async fn a_missing_voucher_is_not_sold_out(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let unknown = VoucherId::new(VOUCHER.get() + u64::from(super::PARTITIONS));
    let other = stall
        .hot
        .gate
        .admit(unknown, &[stall.attempt(1, 1)])
        .await
        .unwrap();
    assert_eq!(
        other,
        seckill_application::ports::Admitted::NotLoaded(NotLoaded::Voucher)
    );
}

async fn a_missing_partition_is_not_sold_out(harness: &dyn HotHarness) {
    let attempt = Attempt {
        order: OrderId::new(1),
        buyer: seckill_domain::BuyerId::new(1),
        quantity: 1,
        key: None,
    };
    let reply = harness.hot().gate.admit(VOUCHER, &[attempt]).await.unwrap();
    assert_eq!(
        reply,
        seckill_application::ports::Admitted::NotLoaded(NotLoaded::Partition)
    );
}

/// Bug report B1: one buyer's clicks, or one retried request, eat the stock.
async fn a_repeated_grant_is_answered_again_and_takes_nothing(harness: &dyn HotHarness) {
    let stall = Opening::of(5).limit(5).open(harness).await;
    let attempt = stall.granted(42, 2).await;
    let order = attempt.order;
    for _ in 0..3 {
        assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
    }
    assert_eq!(stall.free().await, 3);
    assert_eq!(stall.decisions().await.len(), 1);
}

async fn a_repeated_place_is_answered_again_with_where_it_is_now(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    stall.granted(1, 1).await;
    stall.waiting(2, 1).await;
    let attempt = stall.waiting(3, 1).await;
    let order = attempt.order;
    let at = |position| waitlisted(order, position);
    assert_eq!(stall.admit(&attempt).await, at(2));
    stall.leave(2).await;
    assert_eq!(stall.admit(&attempt).await, at(1));
    assert_eq!(stall.pulse().await.waiting, 1);
}

async fn a_repeat_of_what_was_given_up_says_what_it_was_told_at_first(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let granted = stall.granted(1, 1).await;
    let waited = stall.waiting(2, 1).await;
    stall.leave(2).await;
    stall.release(&granted).await;
    for (attempt, first) in [
        (granted, PlaceAtFirst::Granted),
        (waited, PlaceAtFirst::Waitlisted),
    ] {
        let order = attempt.order;
        assert_eq!(
            stall.admit(&attempt).await,
            Admission::Replayed { order, first }
        );
    }
    assert_eq!(stall.free().await, 1, "a repeat takes nothing");
}

async fn a_refused_attempt_may_be_made_again_and_win(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let winner = stall.granted(1, 1).await;
    let attempt = stall.attempt(2, 1);
    assert_eq!(stall.admit(&attempt).await, Admission::SoldOut);
    stall.release(&winner).await;
    let order = attempt.order;
    assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
}

async fn a_buyer_at_his_limit_is_told_his_orders_the_first_one_first(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(4).open(harness).await;
    let mut orders = Vec::new();
    for quantity in [1, 2, 1] {
        orders.push(stall.granted(42, quantity).await.order);
    }
    assert_eq!(stall.buy(42, 1).await.1, Admission::AlreadyHeld { orders });
    assert_eq!(stall.free().await, 5);
}

/// Hole 3: stock asked before the repeat sends a holder to the waitlist of what he has.
async fn a_buyer_at_his_limit_is_told_so_though_nothing_is_left(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(5).open(harness).await;
    let orders = vec![stall.granted(42, 1).await.order];
    assert_eq!(stall.buy(42, 1).await.1, Admission::AlreadyHeld { orders });
    assert_eq!(stall.pulse().await.waiting, 0);
}

async fn below_his_limit_each_click_is_a_new_purchase(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(3).open(harness).await;
    let orders = [
        stall.granted(42, 1).await.order,
        stall.granted(42, 1).await.order,
    ];
    assert_ne!(orders[0], orders[1]);
    assert_eq!(stall.free().await, 7);
}

async fn more_than_is_left_of_the_limit_is_refused_whole(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(3).waitlist(5).open(harness).await;
    let exceeded = |remaining| Admission::LimitExceeded { remaining };
    assert_eq!(stall.buy(42, 4).await.1, exceeded(3));
    stall.granted(42, 2).await;
    assert_eq!(stall.buy(42, 2).await.1, exceeded(1));
    assert_eq!(stall.pulse().await.waiting, 0, "never waitlisted");
    stall.granted(42, 1).await;
    assert_eq!(stall.free().await, 6);
}

async fn the_limit_is_asked_before_the_stock(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(2).waitlist(5).open(harness).await;
    stall.granted(1, 1).await;
    let exceeded = |remaining| Admission::LimitExceeded { remaining };
    assert_eq!(stall.buy(1, 2).await.1, exceeded(1));
    assert_eq!(stall.buy(2, 3).await.1, exceeded(2));
}

async fn units_are_never_given_in_part(harness: &dyn HotHarness) {
    let stall = Opening::of(2).limit(3).open(harness).await;
    assert_eq!(stall.buy(1, 3).await.1, Admission::SoldOut);
    assert_eq!(stall.free().await, 2);
    stall.granted(2, 2).await;
}

/// Hole 15: 64-bit ids through numbers of Lua or JSON.
async fn ids_keep_all_their_digits(harness: &dyn HotHarness) {
    let voucher = VoucherId::new(u64::MAX - 1);
    let opening = Opening::of(2).voucher(voucher).limit(2).waitlist(1);
    let stall = opening.open(harness).await;
    let mut expected = Vec::new();
    for order in [u64::MAX, u64::MAX - 1] {
        let order = OrderId::new(order);
        let attempt = Attempt {
            order,
            ..stall.attempt(u64::MAX, 1)
        };
        assert_eq!(stall.admit(&attempt).await, Admission::Granted { order });
        expected.push(Decision::Granted(stall.claim(&attempt)));
    }
    let orders = vec![OrderId::new(u64::MAX), OrderId::new(u64::MAX - 1)];
    assert_eq!(
        stall.buy(u64::MAX, 1).await.1,
        Admission::AlreadyHeld { orders }
    );
    let near = stall.waiting(u64::MAX - 1, 1).await;
    assert_eq!(stall.place(u64::MAX).await, None);
    assert!(stall.place(near.buyer.get()).await.is_some());
    let found = find(&stall.hot, OrderId::new(u64::MAX)).await;
    assert_eq!(found.map(|claim| claim.order), Some(OrderId::new(u64::MAX)));
    assert_eq!(stall.decisions().await[..2], expected);
    let (epoch, _) = begin_partition(&stall.hot, harness.partitions(), voucher).await;
    assert_eq!(epoch, stall.epoch);
}

async fn find(hot: &HotPath, order: OrderId) -> Option<seckill_domain::Claim> {
    let found = hot.gate.find_order(order).await.unwrap();
    found.map(|order| order.claim)
}

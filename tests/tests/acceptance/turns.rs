//! Turns on the waitlist: who is passed over, who is waited for, and how long.

use std::time::Duration;

use seckill_domain::{BuyerId, OrderId, OrderStatus, VoucherId};
use seckill_tests::harness::{Offer, Shop, Site, audit, buyer, eventually};
use seckill_tests::matrix::Row;
use time::OffsetDateTime;

use crate::on_every_stack;

on_every_stack!(
    whoever_left_is_passed_over,
    a_silent_head_delays_the_next_by_its_window,
    new_units_gather_for_a_head_that_wants_three,
    expired_units_gather_for_a_head_that_wants_three,
    a_pause_keeps_every_place,
);

const BEFORE: [OrderStatus; 2] = [OrderStatus::Waiting, OrderStatus::Queued];

async fn judged(site: &Site, shop: &Shop, voucher: VoucherId) {
    let ledger = site.ledger_if_real().await;
    let verdict = audit(shop, shop.history(), &[voucher], ledger.as_ref()).await;
    verdict.assert_holds().assert_none_rejected();
}

/// On real servers the row is driven: this happens while so many wait.
async fn struck(row: &mut Option<Row>, shop: &Shop, voucher: VoucherId, by: &str) {
    if let Some(row) = row {
        let waiting = shop.voucher(voucher).await.number("waitlist_length");
        row.struck(by, waiting);
    }
}

fn ended(row: Option<Row>, served: usize) {
    if let Some(row) = row {
        row.ended(&format!("{served} served in turn"));
    }
}

async fn waits(shop: &Shop, order: OrderId, who: BuyerId) {
    let seen = shop.order(order, who).await;
    assert_eq!(seen.word("status"), "waiting", "{}", seen.text);
}

async fn promoted(shop: &Shop, order: OrderId, who: BuyerId) -> OffsetDateTime {
    let seen = shop.order_past(order, who, &BEFORE).await;
    assert_eq!(seen.word("status"), "pending_payment", "{}", seen.text);
    seen.expires_at()
}

/// Five whose numbers sort differently from their arrival, as text and as numbers.
async fn five(shop: &Shop, voucher: VoucherId) -> Vec<(BuyerId, OrderId)> {
    let base = buyer().get() / 1_000 * 1_000 + 700_000;
    let mut seats = Vec::new();
    for number in [81, 9, 100_000, 55, 7] {
        let who = BuyerId::new(base + number);
        let (order, position) = shop.buy(voucher, who).await.expect_waitlisted();
        seats.push((who, order));
        assert_eq!(position, seats.len() as u64);
    }
    seats
}

async fn whoever_left_is_passed_over(site: &Site) {
    let mut row = site.is_real().then(Row::begin);
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let mut holder = (buyer(), OrderId::new(0));
    holder.1 = shop.buy_settled(voucher, holder.0).await;
    let mut seats = five(&shop, voucher).await;
    let (gone, left) = seats.remove(2);
    struck(&mut row, &shop, voucher, "one who waits leaves").await;
    shop.leave(voucher, gone).await.assert_status(204);
    for turn in 0..seats.len() {
        // The holder clicks, and clicks again.
        for _ in 0..2 {
            let again = shop.buy(voucher, holder.0).await;
            assert_eq!(again.expect_already_held(), holder.1);
        }
        let length = shop.voucher(voucher).await.number("waitlist_length");
        assert_eq!(length, i64::try_from(seats.len() - turn).unwrap());
        struck(&mut row, &shop, voucher, "heads give up").await;
        shop.cancel(holder.1, holder.0).await.assert_status(200);
        holder = seats[turn];
        promoted(&shop, holder.1, holder.0).await;
        for (who, order) in &seats[turn + 1..] {
            waits(&shop, *order, *who).await;
        }
    }
    assert_eq!(shop.order(left, gone).await.word("status"), "withdrawn");
    judged(site, &shop, voucher).await;
    ended(row, seats.len());
}

/// Nobody pays: each head has his window and no more, and the next has a whole one of his own.
async fn a_silent_head_delays_the_next_by_its_window(site: &Site) {
    let mut row = site.is_real().then(Row::begin);
    let shop = site.shop();
    let offer = Offer::of(1).waitlist(5).payment_window_s(2);
    let voucher = shop.sell(&offer).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let seats: Vec<(BuyerId, OrderId)> = five(&shop, voucher).await.into_iter().take(3).collect();
    let mut ends = vec![promoted(&shop, held, holder).await];
    for (who, order) in &seats {
        struck(&mut row, &shop, voucher, "heads who never pay").await;
        ends.push(promoted(&shop, *order, *who).await);
    }
    for pair in ends.windows(2) {
        let later = Duration::try_from(pair[1] - pair[0]).expect("one after the other");
        let window = Duration::from_secs(2);
        // As late as an expiry may be found, and the time that the ledger takes.
        let most = window + Duration::from_secs(3);
        assert!((window..most).contains(&later), "{later:?} later: {ends:?}");
    }
    let (who, order) = seats[2];
    shop.pay(order, who, "p-1").await.assert_status(200);
    for (who, order) in [(holder, held), seats[0], seats[1]] {
        assert_eq!(shop.order(order, who).await.word("status"), "expired");
    }
    judged(site, &shop, voucher).await;
    ended(row, seats.len());
}

/// A head that wants three, and somebody behind it who wants one.
async fn three_and_one(shop: &Shop, voucher: VoucherId) -> [(BuyerId, OrderId); 2] {
    let (big, small) = (buyer(), buyer());
    let (three, _) = shop
        .buy_some(voucher, big, 3, None)
        .await
        .expect_waitlisted();
    let (one, position) = shop.buy(voucher, small).await.expect_waitlisted();
    assert_eq!(position, 2);
    [(big, three), (small, one)]
}

async fn new_units_gather_for_a_head_that_wants_three(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(3).limit(3).waitlist(5)).await;
    let first = buyer();
    let answer = shop.buy_some(voucher, first, 3, None).await;
    shop.settled(answer.expect_granted(), first).await;
    let [(big, three), (small, one)] = three_and_one(&shop, voucher).await;
    for free in [1, 2] {
        shop.adjust(voucher, 1).await.assert_status(200);
        assert_eq!(shop.balanced(voucher).await.tally.free, free);
        waits(&shop, three, big).await;
        waits(&shop, one, small).await;
    }
    shop.adjust(voucher, 1).await.assert_status(200);
    promoted(&shop, three, big).await;
    waits(&shop, one, small).await;
    shop.adjust(voucher, 1).await.assert_status(200);
    promoted(&shop, one, small).await;
    judged(site, &shop, voucher).await;
}

async fn expired_units_gather_for_a_head_that_wants_three(site: &Site) {
    let shop = site.shop();
    let offer = Offer::of(3).limit(3).waitlist(5).payment_window_s(2);
    let voucher = shop.sell(&offer).await;
    // One pays, so that three are never free together until he is refunded.
    let payer = buyer();
    let paid = shop.buy_settled(voucher, payer).await;
    shop.pay(paid, payer, "p-1").await.assert_status(200);
    for _ in 0..2 {
        shop.buy(voucher, buyer()).await.expect_granted();
    }
    let [(big, three), (small, one)] = three_and_one(&shop, voucher).await;
    eventually("two expire", Duration::from_secs(10), async || {
        let tally = shop.balance(voucher).await.tally;
        (tally.free == 2).then_some(()).ok_or(format!("{tally:?}"))
    })
    .await;
    waits(&shop, three, big).await;
    waits(&shop, one, small).await;
    let refund = seckill_tests::harness::Call::post(format!("/v1/admin/orders/{paid}/refunds"));
    shop.ask(refund.by_admin()).await.assert_status(200);
    promoted(&shop, three, big).await;
    waits(&shop, one, small).await;
    shop.pay(three, big, "p-1").await.assert_status(200);
    shop.leave(voucher, small).await.assert_status(204);
    judged(site, &shop, voucher).await;
}

async fn a_pause_keeps_every_place(site: &Site) {
    let shop = site.shop();
    let voucher = shop.sell(&Offer::of(1).waitlist(5)).await;
    let holder = buyer();
    let held = shop.buy_settled(voucher, holder).await;
    let seats = five(&shop, voucher).await;
    shop.steer(voucher, "pause").await.assert_status(200);
    shop.cancel(held, holder).await.assert_status(200);
    assert_eq!(shop.buy(voucher, buyer()).await.code(), "paused");
    for (place, (who, order)) in (1..).zip(&seats) {
        let again = shop.buy(voucher, *who).await;
        assert_eq!(again.expect_waitlisted(), (*order, place));
    }
    // Leaving goes on.
    shop.leave(voucher, seats[0].0).await.assert_status(204);
    let tally = shop.balanced(voucher).await.tally;
    assert_eq!((tally.free, tally.total), (1, 1));
    shop.steer(voucher, "resume").await.assert_status(200);
    promoted(&shop, seats[1].1, seats[1].0).await;
    for (who, order) in &seats[2..] {
        waits(&shop, *order, *who).await;
    }
    judged(site, &shop, voucher).await;
}

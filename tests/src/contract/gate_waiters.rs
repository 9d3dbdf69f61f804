//! `PurchaseGate::claimants` and `waiters`: who waits, and in which place.

use seckill_application::ports::Claimant;
use seckill_domain::{Attempt, BuyerId, OrderId, Seat, Ticket, VoucherId};

use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, new_order};
use super::{HotHarness, promises};

promises! { gate_waiters over dyn HotHarness:
    places_are_told_buyer_by_buyer_as_asked,
    a_place_is_told_with_its_turn_quantity_and_key,
    those_who_wait_come_by_rising_turn,
    every_one_who_waits_is_on_some_page,
    those_who_share_a_turn_are_on_one_page,
    whoever_was_promoted_or_left_waits_no_more,
    nobody_waits_for_a_voucher_that_is_not_loaded,
}

/// Everybody who waits, page by page.
async fn waiters(stall: &Stall) -> Vec<Seat> {
    let mut all = Vec::new();
    let mut cursor = 0;
    loop {
        let page = stall.hot.gate.waiters(stall.voucher, cursor).await;
        let page = page.unwrap().expect("loaded");
        all.extend(page.seats);
        match page.next {
            Some(next) => cursor = next,
            None => return all,
        }
    }
}

async fn claimants(stall: &Stall, buyers: &[u64]) -> Vec<Claimant> {
    let buyers: Vec<BuyerId> = buyers.iter().copied().map(BuyerId::new).collect();
    let found = stall.hot.gate.claimants(stall.voucher, &buyers).await;
    found.unwrap().expect("loaded")
}

fn orders(seats: &[Seat]) -> Vec<OrderId> {
    seats.iter().map(|seat| seat.order).collect()
}

fn is_place_of(seat: &Seat, attempt: &Attempt) -> bool {
    (seat.order, seat.buyer, seat.quantity) == (attempt.order, attempt.buyer, attempt.quantity)
        && seat.key == attempt.key
}

async fn places_are_told_buyer_by_buyer_as_asked(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(5).waitlist(9).open(harness).await;
    let holder = stall.granted(9, 1).await;
    let [ten, again] = [stall.waiting(10, 1).await, stall.waiting(9, 2).await];
    let found = claimants(&stall, &[10, 77, 9, 10]).await;
    let held: Vec<usize> = found.iter().map(|it| it.held.len()).collect();
    assert_eq!(held, [0, 0, 1, 0]);
    assert_eq!(found[2].held[0].order, holder.order);
    let seat = |at: usize| found[at].seat.as_ref().expect("he waits");
    assert!(
        is_place_of(seat(0), &ten) && is_place_of(seat(2), &again),
        "{found:?}"
    );
    assert_eq!(found[1], Claimant::default());
    assert_eq!(found[3], found[0]);
}

async fn a_place_is_told_with_its_turn_quantity_and_key(harness: &dyn HotHarness) {
    let stall = Opening::of(1).limit(5).waitlist(9).open(harness).await;
    stall.granted(1, 1).await;
    let keyed = stall.keyed(2, 3, "a:b");
    stall.admit(&keyed).await;
    let plain = stall.waiting(3, 1).await;
    let found = waiters(&stall).await;
    let [one, other] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(
        is_place_of(one, &keyed) && is_place_of(other, &plain),
        "{found:?}"
    );
    assert!(one.ticket < other.ticket);
    let claimants = claimants(&stall, &[2, 3]).await;
    let seats: Vec<Seat> = claimants.into_iter().filter_map(|it| it.seat).collect();
    assert_eq!(seats, found, "the same, whichever way it is asked");
}

async fn those_who_wait_come_by_rising_turn(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(9).open(harness).await;
    stall.granted(1, 1).await;
    let mut expected = Vec::new();
    // Buyers whose order by number or by text is not that of their arrival.
    for buyer in [50, 9, 100, 7, 30] {
        expected.push(stall.waiting(buyer, 1).await.order);
    }
    let found = waiters(&stall).await;
    assert_eq!(orders(&found), expected);
    assert!(found.is_sorted_by_key(|seat| seat.ticket));
}

async fn every_one_who_waits_is_on_some_page(harness: &dyn HotHarness) {
    let mut opening = Opening::of(1).waitlist(2_000);
    let mut expected = Vec::new();
    for number in 1..=1_000 {
        let order = new_order();
        opening = opening.seat(number * 5, BuyerId::new(3_000 - number), order, 1);
        expected.push(order);
    }
    let stall = opening.open(harness).await;
    assert_eq!(orders(&waiters(&stall).await), expected, "just a page");
    let attempts: Vec<_> = (6_000..6_060).map(|it| stall.attempt(it, 1)).collect();
    stall.admit_all(&attempts).await;
    expected.extend(attempts.iter().map(|it| it.order));
    assert_eq!(orders(&waiters(&stall).await), expected);
}

/// A Redis that went back draws turns again that it had drawn.
async fn those_who_share_a_turn_are_on_one_page(harness: &dyn HotHarness) {
    let mut opening = Opening::of(1).waitlist(2_000);
    for number in 1..=998 {
        opening = opening.seat(number, BuyerId::new(number), new_order(), 1);
    }
    for buyer in [2_001, 2_002] {
        opening = opening.seat(999, BuyerId::new(buyer), new_order(), 1);
    }
    let stall = opening.open(harness).await;
    let page = stall.hot.gate.waiters(stall.voucher, 998).await;
    let page = page.unwrap().expect("loaded");
    let tickets: Vec<Ticket> = page.seats.iter().map(|seat| seat.ticket).collect();
    assert_eq!(tickets, [Ticket::new(999); 2]);
    assert_eq!(waiters(&stall).await.len(), 1_000);
}

async fn whoever_was_promoted_or_left_waits_no_more(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(9).open(harness).await;
    let holder = stall.granted(1, 1).await;
    let promoted = stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    let stays = stall.waiting(4, 1).await;
    stall.leave(3).await;
    stall.release(&holder).await;
    let found = claimants(&stall, &[2, 3, 4]).await;
    assert_eq!((found[0].held.len(), &found[0].seat), (1, &None));
    assert_eq!(found[0].held[0].order, promoted.order);
    assert_eq!(found[1], Claimant::default());
    assert_eq!(orders(&waiters(&stall).await), [stays.order]);
}

async fn nobody_waits_for_a_voucher_that_is_not_loaded(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(9).open(harness).await;
    assert_eq!(waiters(&stall).await, []);
    stall.granted(1, 1).await;
    stall.waiting(2, 1).await;
    for voucher in [VoucherId::new(VOUCHER.get() + 2), VOUCHER] {
        if voucher == VOUCHER {
            stall.hot.loader.unload(VOUCHER).await.unwrap();
        }
        assert_eq!(stall.hot.gate.waiters(voucher, 0).await.unwrap(), None);
    }
}

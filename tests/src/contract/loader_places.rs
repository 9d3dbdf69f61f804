//! `GateLoader::offer`: places that a process answered and that may be lost, and the turns of
//! different lives of a partition.

use seckill_application::ports::{LoadChunk, Offered, Opened, Place};
use seckill_domain::{
    Admission, BuyerId, Claim, Decision, OrderId, PlaceAtFirst, Seat, Sequence, Ticket,
};

use super::loading::{Load, decisions};
use super::opening::{FIRST_EPOCH, Opening, VOUCHER, begin_partition};
use super::stall::{Stall, waitlisted};
use super::{HotHarness, promises};

promises! { loader_places over dyn HotHarness:
    a_joining_buyer_is_told_the_turn_that_the_stream_has,
    places_the_gate_knows_are_left_as_they_are,
    while_loading_every_place_is_taken_with_its_turn,
    survivors_that_are_offered_while_loading_are_left_to_the_loader,
    an_open_sale_seats_him_before_those_who_came_later,
    a_place_whose_buyer_waits_again_is_recorded_as_lost,
    a_place_whose_buyer_has_all_he_may_is_recorded_as_lost,
    a_full_list_takes_no_place_back,
    the_same_places_offered_again_are_taken_once,
    a_key_of_an_offered_place_is_remembered,
    turns_of_a_new_life_stand_behind_those_that_survived,
}

fn seat(ticket: u64, order: u64, buyer: u64, quantity: u32) -> Seat {
    Seat {
        ticket: Ticket::new(ticket),
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity,
        key: None,
    }
}

fn claim(seat: &Seat) -> Claim {
    Claim {
        order: seat.order,
        voucher: VOUCHER,
        buyer: seat.buyer,
        quantity: seat.quantity,
        key: seat.key.clone(),
    }
}

fn joined(seat: &Seat) -> Decision {
    let ticket = seat.ticket;
    let claim = claim(seat);
    Decision::Joined { claim, ticket }
}

async fn offer(stall: &Stall, seats: &[Seat]) {
    let offered = stall.hot.loader.offer(VOUCHER, &[], seats).await.unwrap();
    assert_eq!(offered, Offered::Taken);
}

/// A sale of one unit, which somebody has.
async fn sold_out(harness: &dyn HotHarness, waitlist: u32) -> Stall {
    let opening = Opening::of(1).limit(2).waitlist(waitlist);
    let stall = opening.open(harness).await;
    stall.granted(1_000, 1).await;
    stall
}

async fn a_joining_buyer_is_told_the_turn_that_the_stream_has(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    for buyer in 1..=3 {
        let attempt = stall.attempt(buyer, 1);
        let told = stall
            .admit_with_tickets(std::slice::from_ref(&attempt))
            .await;
        let Some(Decision::Joined { claim, ticket }) = stall.decisions().await.pop() else {
            panic!("nobody joined");
        };
        let order = attempt.order;
        assert_eq!(claim.order, order);
        let number = Sequence::new(buyer + 1);
        assert_eq!(ticket, Ticket::drawn_at(FIRST_EPOCH, number));
        let expected = Admission::Waitlisted {
            order,
            position: u32::try_from(buyer).unwrap(),
            ticket,
        };
        assert_eq!(told, std::slice::from_ref(&expected));
        let again = stall.admit_with_tickets(&[attempt]).await;
        assert_eq!(again, [expected], "the same attempt again");
    }
}

async fn places_the_gate_knows_are_left_as_they_are(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    let waits = stall.waiting(1, 1).await;
    let written = stall.decisions().await;
    let Some(Decision::Joined { ticket, .. }) = written.last() else {
        panic!("nobody joined");
    };
    let known = Seat {
        ticket: *ticket,
        order: waits.order,
        buyer: waits.buyer,
        quantity: 1,
        key: None,
    };
    let before = stall.pulse().await;
    offer(&stall, &[known]).await;
    assert_eq!(stall.pulse().await, before);
    assert_eq!(stall.decisions().await, written);
}

async fn while_loading_every_place_is_taken_with_its_turn(harness: &dyn HotHarness) {
    let (epoch, _) = begin_partition(harness.hot(), harness.partitions(), VOUCHER).await;
    let hot = harness.hot();
    let (load, before) = Load::begun(hot, VOUCHER, "token").await;
    load.loaded(&LoadChunk::default(), 0).await;
    let seats = [seat(30, 3, 1, 5), seat(10, 2, 1, 5), seat(20, 1, 2, 1)];
    let offered = hot.loader.offer(VOUCHER, &[], &seats).await.unwrap();
    assert_eq!(offered, Offered::Taken);
    let written = decisions(hot, harness.partitions(), epoch, VOUCHER).await;
    assert_eq!(written, seats.each_ref().map(joined));
    let now = harness.gate_time().await;
    let opened = load.open(&Opening::of(5).open_sale(now, before)).await;
    let needed = Sequence::new(before.get() + 3);
    assert_eq!(opened, Opened::Behind(needed), "the snapshot lacks them");
}

/// Whoever remembers a place may not know that its buyer was served since.
async fn survivors_that_are_offered_while_loading_are_left_to_the_loader(harness: &dyn HotHarness) {
    let stall = Opening::of(2).waitlist(5).open(harness).await;
    let [gone, held] = [stall.granted(1, 1).await, stall.granted(2, 1).await];
    let [promoted, waits] = [stall.waiting(3, 1).await, stall.waiting(4, 1).await];
    stall.release(&gone).await;
    let epoch = FIRST_EPOCH.next();
    let loader = &stall.hot.loader;
    let begun = loader.begin_epoch(stall.partition, epoch, Sequence::new(0));
    begun.await.unwrap();
    Load::begun(&stall.hot, VOUCHER, "token").await;
    let seats = [&promoted, &waits].map(|attempt| {
        let order = attempt.order.get();
        seat(7, order, attempt.buyer.get(), attempt.quantity)
    });
    let claims = [stall.claim(&held)];
    let offered = loader.offer(VOUCHER, &claims, &seats).await.unwrap();
    assert_eq!(offered, Offered::Taken);
    let written = decisions(&stall.hot, harness.partitions(), epoch, VOUCHER).await;
    assert_eq!(written, []);
}

async fn an_open_sale_seats_him_before_those_who_came_later(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    stall.waiting(1, 1).await;
    let lost = [seat(8, 81, 8, 1), seat(9, 91, 9, 1)];
    offer(&stall, &lost).await;
    assert_eq!(position(&stall, 8).await, Some(1));
    assert_eq!(position(&stall, 9).await, Some(2));
    assert_eq!(position(&stall, 1).await, Some(3));
    let written = stall.decisions().await;
    assert_eq!(written[written.len() - 2..], lost.each_ref().map(joined));
}

async fn position(stall: &Stall, buyer: u64) -> Option<u32> {
    match stall.place(buyer).await {
        Some(Place::Waiting { position, .. }) => Some(position),
        _ => None,
    }
}

async fn a_place_whose_buyer_waits_again_is_recorded_as_lost(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    let again = stall.waiting(1, 1).await;
    let lost = seat(8, 81, 1, 1);
    offer(&stall, std::slice::from_ref(&lost)).await;
    assert_eq!(
        stall.decisions().await.pop(),
        Some(Decision::Lost(claim(&lost)))
    );
    assert_eq!(stall.admit(&again).await, waitlisted(again.order, 1));
}

async fn a_place_whose_buyer_has_all_he_may_is_recorded_as_lost(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    let lost = seat(8, 81, 1_000, 2);
    offer(&stall, std::slice::from_ref(&lost)).await;
    assert_eq!(
        stall.decisions().await.pop(),
        Some(Decision::Lost(claim(&lost)))
    );
    assert_eq!(stall.pulse().await.waiting, 0);
}

async fn a_full_list_takes_no_place_back(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 1).await;
    stall.waiting(1, 1).await;
    let lost = seat(8, 81, 8, 1);
    offer(&stall, std::slice::from_ref(&lost)).await;
    assert_eq!(
        stall.decisions().await.pop(),
        Some(Decision::Lost(claim(&lost)))
    );
    assert_eq!(stall.pulse().await.waiting, 1);
}

async fn the_same_places_offered_again_are_taken_once(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    let lost = seat(8, 81, 8, 1);
    offer(&stall, &[lost.clone(), lost.clone()]).await;
    offer(&stall, &[lost]).await;
    assert_eq!(stall.pulse().await.waiting, 1);
    assert_eq!(stall.decisions().await.len(), 2, "a grant and a place");
}

async fn a_key_of_an_offered_place_is_remembered(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 5).await;
    let lost = Seat {
        key: Some("k".parse().expect("a key")),
        ..seat(8, 81, 8, 1)
    };
    offer(&stall, std::slice::from_ref(&lost)).await;
    let replayed = Admission::Replayed {
        order: lost.order,
        first: PlaceAtFirst::Waitlisted,
    };
    assert_eq!(stall.admit(&stall.keyed(8, 1, "k")).await, replayed);
}

/// A new life goes on counting from what the ledger has applied, so the numbers of decisions that
/// were lost come again. A turn that is only a number would come again with them.
async fn turns_of_a_new_life_stand_behind_those_that_survived(harness: &dyn HotHarness) {
    let stall = sold_out(harness, 50).await;
    let partition = stall.partition;
    let before = stall.waiting(1, 1).await;
    let Some(Decision::Joined { ticket, .. }) = stall.decisions().await.pop() else {
        panic!("nobody joined");
    };
    let loader = &stall.hot.loader;
    // The ledger has applied nothing.
    loader
        .begin_epoch(partition, FIRST_EPOCH.next(), Sequence::new(0))
        .await
        .unwrap();
    let fresh = Opening::of(0).limit(2).waitlist(50).seat(
        ticket.get(),
        before.buyer,
        before.order,
        before.quantity,
    );
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "again").await;
    load.loaded(fresh.chunk(), 0).await;
    let sale = fresh.open_sale(harness.gate_time().await, sequence);
    assert_eq!(load.open(&sale).await, Opened::Opened);
    for buyer in 2..=20 {
        let (attempt, told) = stall.buy(buyer, 1).await;
        let position = u32::try_from(buyer).unwrap();
        assert_eq!(told, waitlisted(attempt.order, position));
    }
    // The new life has not decided about this order: he is told of the place that he has.
    let (order, position) = (before.order, 1);
    let waits = Admission::AlreadyWaiting { order, position };
    assert_eq!(stall.admit(&before).await, waits);
}

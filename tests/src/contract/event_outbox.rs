//! `EventOutbox`: what happened, from the transaction that made it true to whoever is told.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use seckill_domain::{Claim, Decision, Event, EventId, EventKind, NewEvent, OrderStatus};

use super::desk::{Desk, claim};
use super::happenings::{HOLD, about, claimed, kinds, of_order, relay, unpublished};
use super::{LedgerHarness, promises};

promises! { event_outbox over dyn LedgerHarness:
    an_event_is_there_once_it_is_committed,
    what_was_written_is_what_is_read,
    an_orders_events_rise_in_the_order_in_which_they_happened,
    an_orders_events_come_after_a_number_and_not_too_many,
    events_are_claimed_oldest_first_and_not_too_many,
    what_is_claimed_is_nobody_elses_while_the_hold_lasts,
    asking_again_for_fewer_gives_nothing_away,
    what_was_claimed_and_not_published_is_claimed_again,
    an_event_that_is_committed_after_a_later_one_is_claimed_as_well,
    what_is_published_is_claimed_by_nobody_and_still_read,
    publishing_may_be_repeated,
    of_many_relays_one_gets_an_event,
    only_old_and_published_events_are_removed,
    five_hundred_events_fit_a_claim,
}

const SHORT: Duration = Duration::from_millis(300);

async fn append(desk: &Desk<'_>, events: &[NewEvent]) {
    let mut unit = desk.begin().await;
    unit.append_events(events).await.unwrap();
    unit.commit().await.unwrap();
}

/// So many events of one order.
async fn with_events(desk: &Desk<'_>, count: usize) -> Claim {
    let voucher = desk.voucher(5, 1).await;
    let claim = claim(&voucher, 1, 1);
    append(desk, &vec![about(&claim, EventKind::RefundRecorded); count]).await;
    claim
}

async fn an_event_is_there_once_it_is_committed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = claim(&voucher, 1, 1);
    let event = about(&claim, EventKind::RefundRecorded);
    let mut unit = desk.begin().await;
    unit.append_events(&[event]).await.unwrap();
    assert_eq!(of_order(&desk, &claim).await, []);
    drop(unit);
    assert_eq!(unpublished(&desk).await, 0, "rolled back");
    append(&desk, &[event]).await;
    assert_eq!(of_order(&desk, &claim).await.len(), 1);
    append(&desk, &[]).await;
    assert_eq!(unpublished(&desk).await, 1);
}

async fn what_was_written_is_what_is_read(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = claim(&voucher, u64::MAX, 1);
    let stages = [
        OrderStatus::Waiting,
        OrderStatus::PendingPayment,
        OrderStatus::Paid,
        OrderStatus::Cancelled,
        OrderStatus::Expired,
        OrderStatus::Refunded,
        OrderStatus::Rejected,
        OrderStatus::Withdrawn,
        OrderStatus::ClosedOut,
    ];
    let mut kinds: Vec<EventKind> = stages.into_iter().map(EventKind::Order).collect();
    kinds.extend([EventKind::Promoted, EventKind::RefundRecorded]);
    let mut written: Vec<NewEvent> = kinds.into_iter().map(|it| about(&claim, it)).collect();
    let of_voucher = [
        EventKind::VoucherPublished,
        EventKind::VoucherPaused,
        EventKind::VoucherResumed,
        EventKind::VoucherClosed,
        EventKind::VoucherAmended,
        EventKind::StockAdjusted,
    ];
    written.extend(of_voucher.map(|kind| NewEvent::of_voucher(voucher.id, kind)));
    let before = desk.now().await;
    append(&desk, &written).await;
    let after = desk.now().await;
    let events = claimed(&desk.ports, "a", 500).await;
    let read: Vec<NewEvent> = events.iter().map(|event| event.what).collect();
    assert_eq!(read, written);
    for event in events {
        assert!((before..=after).contains(&event.at), "{event:?}");
    }
}

/// A stream that goes on from the last number it has seen misses nothing.
async fn an_orders_events_rise_in_the_order_in_which_they_happened(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let joined = desk.joined(&voucher, 1, 1).await;
    desk.apply_one(Decision::Promoted(joined.clone())).await;
    for status in [OrderStatus::Paid, OrderStatus::Refunded] {
        append(&desk, &[about(&joined, EventKind::Order(status))]).await;
        append(
            &desk,
            &[NewEvent::of_voucher(voucher.id, EventKind::VoucherPaused)],
        )
        .await;
    }
    let events = of_order(&desk, &joined).await;
    assert!(events.is_sorted_by(|a, b| a.id < b.id && a.at <= b.at));
    let expected = [
        EventKind::Order(OrderStatus::Waiting),
        EventKind::Promoted,
        EventKind::Order(OrderStatus::Paid),
        EventKind::Order(OrderStatus::Refunded),
    ];
    assert_eq!(kinds(&desk, &joined).await, expected);
    assert!(events[0].id > EventId::default(), "0 is before the first");
}

async fn an_orders_events_come_after_a_number_and_not_too_many(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let claim = with_events(&desk, 5).await;
    with_events(&desk, 3).await;
    let all = of_order(&desk, &claim).await;
    assert_eq!(all.len(), 5);
    let after = async |id, max| {
        let events = desk.ports.events.of_order(claim.order, id, max).await;
        events.unwrap()
    };
    assert_eq!(after(all[1].id, 2).await, all[2..4]);
    assert_eq!(after(all[3].id, 100).await, all[4..]);
    assert_eq!(after(all[4].id, 100).await, []);
}

async fn events_are_claimed_oldest_first_and_not_too_many(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let claim = with_events(&desk, 7).await;
    let all = of_order(&desk, &claim).await;
    assert_eq!(claimed(&desk.ports, "a", 3).await, all[..3]);
    assert_eq!(claimed(&desk.ports, "b", 3).await, all[3..6]);
    assert_eq!(claimed(&desk.ports, "c", 3).await, all[6..]);
    assert_eq!(unpublished(&desk).await, 7);
}

async fn what_is_claimed_is_nobody_elses_while_the_hold_lasts(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 2).await;
    let other = harness.another_process().await;
    assert_eq!(claimed(&desk.ports, "a", 10).await.len(), 2);
    assert_eq!(claimed(&other, "b", 10).await, []);
    harness.elapse(SHORT).await;
    assert_eq!(claimed(&other, "b", 10).await, []);
}

/// A relay that asks again, for fewer than it has, keeps the others.
async fn asking_again_for_fewer_gives_nothing_away(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 5).await;
    let all = claimed(&desk.ports, "a", 10).await;
    assert_eq!(claimed(&desk.ports, "a", 2).await, all[..2]);
    assert_eq!(claimed(&desk.ports, "b", 10).await, []);
    assert_eq!(claimed(&desk.ports, "a", 10).await, all);
}

/// Fault: a relay dies with what it has claimed.
async fn what_was_claimed_and_not_published_is_claimed_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 3).await;
    let other = harness.another_process().await;
    let events = &desk.ports.events;
    let first = events.claim(&relay("a"), 10, SHORT).await.unwrap();
    events.published(&[first[1].id]).await.unwrap();
    harness.elapse(2 * SHORT).await;
    let again = claimed(&other, "b", 10).await;
    assert_eq!(again, [first[0], first[2]]);
}

/// Fault: a transaction that has drawn its numbers is slower than the one that drew the next. A relay
/// that goes on from the last number it has seen would pass it over.
async fn an_event_that_is_committed_after_a_later_one_is_claimed_as_well(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let [slow, fast] = [1, 2].map(|buyer| claim(&voucher, buyer, 1));
    let mut unit = desk.begin().await;
    let event = about(&slow, EventKind::RefundRecorded);
    unit.append_events(&[event]).await.unwrap();
    append(&desk, &[about(&fast, EventKind::RefundRecorded)]).await;
    let first = claimed(&desk.ports, "a", 10).await;
    assert_eq!(first, of_order(&desk, &fast).await);
    desk.ports.events.published(&[first[0].id]).await.unwrap();
    unit.commit().await.unwrap();
    let second = claimed(&desk.ports, "a", 10).await;
    assert_eq!(second, of_order(&desk, &slow).await);
    assert_eq!(second.len(), 1);
    desk.ports.events.published(&[second[0].id]).await.unwrap();
    assert_eq!(unpublished(&desk).await, 0);
}

async fn what_is_published_is_claimed_by_nobody_and_still_read(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let claim = with_events(&desk, 2).await;
    let all = claimed(&desk.ports, "a", 10).await;
    let ids: Vec<EventId> = all.iter().map(|event| event.id).collect();
    desk.ports.events.published(&ids).await.unwrap();
    assert_eq!(unpublished(&desk).await, 0);
    assert_eq!(claimed(&desk.ports, "a", 10).await, []);
    assert_eq!(of_order(&desk, &claim).await, all);
}

async fn publishing_may_be_repeated(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 2).await;
    let all = claimed(&desk.ports, "a", 10).await;
    for _ in 0..2 {
        desk.ports.events.published(&[all[0].id]).await.unwrap();
    }
    desk.ports.events.published(&[]).await.unwrap();
    assert_eq!(unpublished(&desk).await, 1);
}

async fn of_many_relays_one_gets_an_event(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 60).await;
    let names: Vec<String> = (0..8).map(|number| format!("relay-{number}")).collect();
    let relays = names.iter().map(|name| claimed(&desk.ports, name, 10));
    let got: Vec<Event> = join_all(relays).await.into_iter().flatten().collect();
    let distinct: HashSet<EventId> = got.iter().map(|event| event.id).collect();
    assert_eq!(distinct.len(), got.len(), "an event for two");
    let rest = claimed(&desk.ports, "last", 100).await;
    assert_eq!(got.len() + rest.len(), 60);
}

async fn only_old_and_published_events_are_removed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let old = with_events(&desk, 3).await;
    let events = &desk.ports.events;
    let all = claimed(&desk.ports, "a", 10).await;
    events.published(&[all[0].id, all[2].id]).await.unwrap();
    harness.elapse(2 * SHORT).await;
    let young = with_events(&desk, 1).await;
    let just_now = of_order(&desk, &young).await[0];
    events.published(&[just_now.id]).await.unwrap();
    assert_eq!(events.prune(HOLD).await.unwrap(), 0, "none is so old");
    assert_eq!(events.prune(SHORT).await.unwrap(), 2);
    assert_eq!(of_order(&desk, &old).await, [all[1]]);
    assert_eq!(of_order(&desk, &young).await, [just_now]);
    assert_eq!(events.prune(SHORT).await.unwrap(), 0);
    assert_eq!(unpublished(&desk).await, 1);
}

async fn five_hundred_events_fit_a_claim(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    with_events(&desk, 600).await;
    let claimed = claimed(&desk.ports, "a", 500).await;
    assert_eq!(claimed.len(), 500);
    let ids: Vec<EventId> = claimed.iter().map(|event| event.id).collect();
    assert!(ids.is_sorted());
    desk.ports.events.published(&ids).await.unwrap();
    assert_eq!(unpublished(&desk).await, 100);
}

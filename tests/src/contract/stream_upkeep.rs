//! `AdmissionStream`: acknowledging, taking over, trimming, and entries nobody of ours wrote.

use std::time::Duration;

use seckill_application::ports::{Backlog, Delivery, EntryId, StreamReply};
use seckill_domain::{Admission, Sequence};

use super::opening::{Opening, VOUCHER};
use super::stall::Stall;
use super::stream_reading::{read_after, read_new, with_grants};
use super::{Harm, HotHarness, promises};

promises! { stream_upkeep over dyn HotHarness:
    what_is_acknowledged_is_not_pending_any_more,
    acknowledging_may_be_repeated,
    the_entries_of_a_worker_that_is_gone_are_taken_over,
    taking_over_acknowledges_nothing,
    what_was_taken_over_is_read_until_it_is_acknowledged,
    nothing_is_pending_where_nothing_is,
    taking_over_without_predecessors_takes_nothing,
    an_entry_that_was_taken_over_is_acknowledged_by_its_new_owner,
    trimming_removes_what_is_applied_and_old,
    trimming_keeps_what_the_ledger_does_not_have,
    trimming_keeps_what_was_written_lately,
    trimming_keeps_what_is_not_acknowledged,
    trimming_goes_around_what_is_not_acknowledged,
    trimmed_orders_are_forgotten,
    an_order_that_was_decided_twice_is_remembered_until_the_last,
    a_missing_stream_has_no_backlog,
    an_unreadable_entry_blocks_nobody,
    an_unreadable_entry_is_shortened,
    an_unreadable_entry_takes_no_number,
    unreadable_entries_are_trimmed_like_others,
}

const NO_TIME: Duration = Duration::ZERO;

async fn backlog(stall: &Stall) -> (u64, u64, u64) {
    let Backlog {
        decisions,
        pending,
        length,
    } = stall.hot.stream.backlog(stall.partition).await.unwrap();
    (decisions, pending, length)
}

async fn ack(stall: &Stall, ids: &[EntryId], applied: u64) {
    let (stream, applied) = (&stall.hot.stream, Sequence::new(applied));
    stream
        .ack(stall.partition, stall.epoch, ids, applied)
        .await
        .unwrap();
}

async fn take_over(stall: &Stall, consumer: &str) -> usize {
    let stream = &stall.hot.stream;
    let taken = stream.take_over(stall.partition, stall.epoch, consumer);
    taken.await.unwrap()
}

async fn pending(stall: &Stall, consumer: &str, after: EntryId, max: usize) -> Vec<Delivery> {
    let stream = &stall.hot.stream;
    let read = stream.read_pending(stall.partition, stall.epoch, consumer, after, max);
    read.await.unwrap()
}

async fn trim(stall: &Stall, up_to: EntryId, keep: Duration) -> usize {
    let stream = &stall.hot.stream;
    let trimmed = stream.trim(stall.partition, stall.epoch, up_to, keep).await;
    trimmed.unwrap()
}

/// Reads so many entries; returns where they stand.
async fn given(stall: &Stall, consumer: &str, max: usize) -> Vec<EntryId> {
    let entries = read_new(stall, consumer, max).await;
    assert_eq!(entries.len(), max);
    entries.iter().map(|entry| entry.id).collect()
}

async fn what_is_acknowledged_is_not_pending_any_more(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 5).await;
    let ids = given(&stall, "worker", 4).await;
    assert_eq!(backlog(&stall).await, (5, 4, 5));
    ack(&stall, &ids[..3], 3).await;
    assert_eq!(backlog(&stall).await, (2, 1, 5));
    ack(&stall, &ids[3..], 4).await;
    assert_eq!(backlog(&stall).await, (1, 0, 5));
}

async fn acknowledging_may_be_repeated(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 3).await;
    let ids = given(&stall, "worker", 3).await;
    for _ in 0..2 {
        ack(&stall, &ids, 3).await;
        assert_eq!(backlog(&stall).await, (0, 0, 3));
    }
    ack(&stall, &ids[..1], 1).await;
    ack(&stall, &[], 2).await;
    assert_eq!(backlog(&stall).await, (0, 0, 3), "it never goes back");
}

/// Hole 8: pending entries of a dead consumer are never taken over.
async fn the_entries_of_a_worker_that_is_gone_are_taken_over(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 6).await;
    given(&stall, "gone", 2).await;
    given(&stall, "gone-too", 2).await;
    assert_eq!(take_over(&stall, "next").await, 4);
    assert_eq!(backlog(&stall).await, (6, 4, 6));
    // The next ones are new, and a name may come back.
    let ids = given(&stall, "gone", 1).await;
    let all = stall.log().await.ids();
    assert_eq!(ids, all[4..5]);
    assert_eq!(take_over(&stall, "next").await, 5);
}

/// Where an entry stands does not say whether the ledger has it.
async fn taking_over_acknowledges_nothing(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 6).await;
    let ids = given(&stall, "gone", 5).await;
    ack(&stall, &ids[..1], 4).await;
    for _ in 0..2 {
        assert_eq!(take_over(&stall, "next").await, 4);
        assert_eq!(backlog(&stall).await, (2, 4, 6));
    }
}

async fn what_was_taken_over_is_read_until_it_is_acknowledged(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 6).await;
    let start = EntryId::START;
    assert_eq!(pending(&stall, "next", start, 10).await, [], "none yet");
    let mut given = read_new(&stall, "gone", 3).await;
    given.extend(read_new(&stall, "next", 2).await);
    assert_eq!(pending(&stall, "next", start, 10).await, given[3..]);
    take_over(&stall, "next").await;
    assert_eq!(pending(&stall, "gone", start, 10).await, []);
    for _ in 0..2 {
        assert_eq!(pending(&stall, "next", start, 10).await, given);
    }
    assert_eq!(pending(&stall, "next", start, 2).await, given[..2]);
    assert_eq!(pending(&stall, "next", given[1].id, 2).await, given[2..4]);
    ack(&stall, &[given[0].id, given[3].id], 1).await;
    let left = [1, 2, 4].map(|at: usize| given[at].clone());
    assert_eq!(pending(&stall, "next", start, 10).await, left);
    assert_eq!(backlog(&stall).await, (5, 3, 6));
}

async fn nothing_is_pending_where_nothing_is(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 2).await;
    given(&stall, "worker", 2).await;
    let stream = &stall.hot.stream;
    let next = stall.epoch.next();
    let read = stream.read_pending(stall.partition, next, "worker", EntryId::START, 10);
    assert_eq!(read.await.unwrap(), []);
    assert_eq!(pending(&stall, "worker", EntryId::START, 10).await.len(), 2);
    harness.harm(Harm::LoseGroup(stall.partition)).await;
    assert_eq!(pending(&stall, "worker", EntryId::START, 10).await, []);
}

async fn taking_over_without_predecessors_takes_nothing(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 2).await;
    assert_eq!(take_over(&stall, "worker").await, 0);
    assert_eq!(backlog(&stall).await, (2, 0, 2));
    given(&stall, "worker", 2).await;
}

async fn an_entry_that_was_taken_over_is_acknowledged_by_its_new_owner(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 2).await;
    let ids = given(&stall, "gone", 2).await;
    take_over(&stall, "next").await;
    ack(&stall, &ids, 2).await;
    assert_eq!(backlog(&stall).await, (0, 0, 2));
    assert_eq!(take_over(&stall, "third").await, 0);
}

/// Stands for: the stream and its keys grow for ever (1.12).
async fn trimming_removes_what_is_applied_and_old(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 5).await;
    let ids = given(&stall, "worker", 5).await;
    ack(&stall, &ids, 5).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, ids[2], NO_TIME).await, 3);
    assert_eq!(stall.log().await.ids(), ids[3..]);
    assert_eq!(backlog(&stall).await, (0, 0, 2));
    assert_eq!(trim(&stall, ids[4], NO_TIME).await, 2);
    assert_eq!(trim(&stall, ids[4], NO_TIME).await, 0);
    // What comes next has a number and a place of its own.
    stall.granted(6, 1).await;
    let log = stall.log().await;
    assert_eq!(log.last(), Sequence::new(6));
    assert!(log.end() > ids[4]);
}

/// Bug report B29: entries that were trimmed before they were applied crash every recovery.
async fn trimming_keeps_what_the_ledger_does_not_have(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 4).await;
    let ids = given(&stall, "worker", 2).await;
    ack(&stall, &ids, 2).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, EntryId::START, NO_TIME).await, 0);
    assert_eq!(trim(&stall, ids[1], NO_TIME).await, 2);
    assert_eq!(stall.log().await.ids().len(), 2);
    given(&stall, "worker", 2).await;
}

async fn trimming_keeps_what_was_written_lately(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 2).await;
    harness.elapse(Duration::from_millis(1_200)).await;
    stall.granted(3, 1).await;
    let ids = given(&stall, "worker", 3).await;
    ack(&stall, &ids, 3).await;
    assert_eq!(trim(&stall, ids[2], Duration::from_mins(1)).await, 0);
    assert_eq!(trim(&stall, ids[2], Duration::from_secs(1)).await, 2);
    assert_eq!(stall.log().await.ids(), ids[2..]);
}

async fn trimming_keeps_what_is_not_acknowledged(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 3).await;
    let ids = given(&stall, "worker", 3).await;
    ack(&stall, &ids[..1], 3).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, ids[2], NO_TIME).await, 1);
    assert_eq!(stall.log().await.ids(), ids[1..]);
}

/// What one worker has not applied keeps nothing of what others have.
async fn trimming_goes_around_what_is_not_acknowledged(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 4).await;
    let ids = given(&stall, "worker", 4).await;
    ack(&stall, &[ids[0], ids[2]], 3).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, ids[3], NO_TIME).await, 2);
    let left = read_after(&stall, EntryId::START, 10).await;
    let left: Vec<EntryId> = left.iter().map(|entry| entry.id).collect();
    assert_eq!(left, [ids[1], ids[3]]);
    assert_eq!(backlog(&stall).await, (1, 2, 2));
}

async fn trimmed_orders_are_forgotten(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 0).await;
    let [first, second] = [stall.granted(1, 1).await, stall.granted(2, 1).await];
    let ids = given(&stall, "worker", 2).await;
    ack(&stall, &ids, 2).await;
    harness.elapse(Duration::from_millis(20)).await;
    trim(&stall, ids[0], NO_TIME).await;
    let gate = &stall.hot.gate;
    assert_eq!(gate.find_order(first.order).await.unwrap(), None);
    assert!(!gate.has_decided(first.order).await.unwrap());
    assert!(gate.find_order(second.order).await.unwrap().is_some());
    assert!(gate.has_decided(second.order).await.unwrap());
    // The holder is known for as long as he holds.
    let orders = vec![first.order];
    assert_eq!(stall.buy(1, 1).await.1, Admission::AlreadyHeld { orders });
}

async fn an_order_that_was_decided_twice_is_remembered_until_the_last(harness: &dyn HotHarness) {
    let stall = Opening::of(0).waitlist(5).open(harness).await;
    let attempt = stall.waiting(1, 1).await;
    let joined = given(&stall, "worker", 1).await;
    stall.add(1).await;
    ack(&stall, &joined, 1).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, joined[0], NO_TIME).await, 1);
    let gate = &stall.hot.gate;
    let found = gate.find_order(attempt.order).await.unwrap();
    assert!(
        found.is_some_and(|found| found.holds_units),
        "its promotion is not applied"
    );
    let promoted = given(&stall, "worker", 1).await;
    ack(&stall, &promoted, 2).await;
    harness.elapse(Duration::from_millis(20)).await;
    trim(&stall, promoted[0], NO_TIME).await;
    assert_eq!(gate.find_order(attempt.order).await.unwrap(), None);
}

async fn a_missing_stream_has_no_backlog(harness: &dyn HotHarness) {
    let partition = harness.partitions().of(VOUCHER);
    let backlog = harness.hot().stream.backlog(partition).await.unwrap();
    assert_eq!(backlog, Backlog::default());
}

fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

async fn plant(harness: &dyn HotHarness, stall: &Stall, fields: Vec<(String, String)>) {
    let partition = stall.partition;
    harness.harm(Harm::PlantEntry { partition, fields }).await;
}

/// Hole 8: a poison message blocks or loops for ever.
async fn an_unreadable_entry_blocks_nobody(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 1).await;
    plant(harness, &stall, fields(&[("hello", "world")])).await;
    plant(
        harness,
        &stall,
        fields(&[("v", "1"), ("d", "nonsense \u{fffd} \"\\")]),
    )
    .await;
    stall.granted(2, 1).await;
    let entries = read_new(&stall, "worker", 10).await;
    let readable: Vec<bool> = entries.iter().map(|entry| entry.body.is_ok()).collect();
    assert_eq!(readable, [true, false, false, true]);
    let unreadable = entries[1].body.as_ref().unwrap_err();
    assert!(unreadable.raw.contains("hello") && unreadable.raw.contains("world"));
    assert!(!unreadable.reason.is_empty());
    let read = stall.hot.stream;
    let again = read
        .read_after(stall.partition, stall.epoch, EntryId::START, 10)
        .await
        .unwrap();
    assert_eq!(again, StreamReply::Entries(entries));
}

async fn an_unreadable_entry_is_shortened(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 0).await;
    plant(harness, &stall, fields(&[("blob", &"é".repeat(10_000))])).await;
    let entries = read_new(&stall, "worker", 10).await;
    let unreadable = entries[0].body.as_ref().unwrap_err();
    assert!(
        unreadable.raw.len() <= 4_096,
        "{} bytes",
        unreadable.raw.len()
    );
    assert!(unreadable.raw.len() > 2_000);
}

async fn an_unreadable_entry_takes_no_number(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 1).await;
    plant(harness, &stall, fields(&[("hello", "world")])).await;
    stall.granted(2, 1).await;
    // Reading the log checks that its numbers have no gap.
    assert_eq!(stall.log().await.last(), Sequence::new(2));
    assert_eq!(backlog(&stall).await, (2, 0, 3));
    let units = stall.hot.gate.tally(VOUCHER, EntryId::START).await.unwrap();
    assert_eq!(units.map(|tally| tally.units_after), Some(2));
}

async fn unreadable_entries_are_trimmed_like_others(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 1).await;
    plant(harness, &stall, fields(&[("hello", "world")])).await;
    let ids = given(&stall, "worker", 2).await;
    ack(&stall, &ids, 1).await;
    harness.elapse(Duration::from_millis(20)).await;
    assert_eq!(trim(&stall, ids[1], NO_TIME).await, 2);
    assert_eq!(backlog(&stall).await, (0, 0, 0));
}

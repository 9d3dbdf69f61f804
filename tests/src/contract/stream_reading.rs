//! `AdmissionStream`: entries in order, at least once.

use std::time::Duration;

use futures::future::{Either, select};
use seckill_application::ports::{Delivery, EntryId, HotPath, StreamReply};
use seckill_domain::{AdjustmentId, Decision, LeftReason, SaleStatus, Sequence, Ticket, VoucherId};

use super::opening::{FIRST_EPOCH, Opening, VOUCHER};
use super::stall::Stall;
use super::{HotHarness, promises};

promises! { stream_reading over dyn HotHarness:
    a_missing_stream_is_not_an_empty_one,
    each_step_of_the_gate_is_one_entry_with_the_next_numbers,
    every_kind_of_decision_is_read_as_it_was_made,
    entries_are_read_after_an_entry_in_order,
    reading_changes_nothing,
    a_new_entry_is_given_to_one_consumer,
    at_most_as_many_as_asked_are_given,
    without_entries_reading_waits_no_longer_than_asked,
    a_waiting_reader_is_woken_by_the_next_entry,
    partitions_have_streams_of_their_own,
    entries_say_when_they_were_written,
    a_lost_group_is_made_again_at_the_start,
}

const NO_WAIT: Duration = Duration::ZERO;

/// New entries for a consumer; there must be a stream.
pub(super) async fn read_new(stall: &Stall, consumer: &str, max: usize) -> Vec<Delivery> {
    let stream = &stall.hot.stream;
    let read = stream
        .read_new(stall.partition, stall.epoch, consumer, max, NO_WAIT)
        .await;
    entries(read.unwrap())
}

fn entries(reply: StreamReply) -> Vec<Delivery> {
    match reply {
        StreamReply::Entries(entries) => entries,
        StreamReply::Missing => panic!("there is no stream"),
    }
}

/// What stands after an entry; there must be a stream.
pub(super) async fn read_after(stall: &Stall, after: EntryId, max: usize) -> Vec<Delivery> {
    let stream = &stall.hot.stream;
    let read = stream
        .read_after(stall.partition, stall.epoch, after, max)
        .await;
    entries(read.unwrap())
}

/// A sale with so many grants, each in an entry of its own.
pub(super) async fn with_grants(harness: &dyn HotHarness, grants: u64) -> Stall {
    let stall = Opening::of(1_000).open(harness).await;
    for buyer in 1..=grants {
        stall.granted(buyer, 1).await;
    }
    stall
}

async fn a_missing_stream_is_not_an_empty_one(harness: &dyn HotHarness) {
    let HotPath { stream, .. } = harness.hot();
    let partition = harness.partitions().of(VOUCHER);
    let missing = StreamReply::Missing;
    let read = stream
        .read_after(partition, FIRST_EPOCH, EntryId::START, 10)
        .await
        .unwrap();
    assert_eq!(read, missing);
    let read = stream
        .read_new(partition, FIRST_EPOCH, "worker", 10, NO_WAIT)
        .await
        .unwrap();
    assert_eq!(read, missing);
    let stall = Opening::of(1).open(harness).await;
    assert_eq!(read_after(&stall, EntryId::START, 10).await, []);
    assert_eq!(read_new(&stall, "worker", 10).await, []);
    let later = seckill_domain::Epoch::new(2);
    let read = stream
        .read_after(partition, later, EntryId::START, 10)
        .await
        .unwrap();
    assert_eq!(read, missing, "of a life that has not begun");
}

async fn each_step_of_the_gate_is_one_entry_with_the_next_numbers(harness: &dyn HotHarness) {
    let stall = Opening::of(2).waitlist(9).open(harness).await;
    let attempts: Vec<_> = (1..=5).map(|buyer| stall.attempt(buyer, 1)).collect();
    stall.admit_all(&attempts).await;
    stall.leave(3).await;
    stall
        .follow(attempts[..2].iter().map(super::stall::release_of).collect())
        .await;
    let adjustment = AdjustmentId::new(1);
    stall.add(1).await;
    stall
        .hot
        .gate
        .withdraw(VOUCHER, 1, adjustment)
        .await
        .unwrap();
    assert_eq!(stall.log().await.sizes(), [5, 1, 2, 1]);
    let firsts: Vec<u64> = read_after(&stall, EntryId::START, 10)
        .await
        .iter()
        .map(|delivery| delivery.body.as_ref().unwrap().first.get())
        .collect();
    assert_eq!(firsts, [1, 6, 7, 9]);
}

async fn every_kind_of_decision_is_read_as_it_was_made(harness: &dyn HotHarness) {
    let voucher = VoucherId::new(u64::MAX);
    let opening = Opening::of(2).voucher(voucher).limit(9).waitlist(9);
    let stall = opening.open(harness).await;
    let key = "\"k|:,{}\\~";
    let held = stall.keyed(u64::MAX, 1, key);
    let waits = stall.keyed(u64::MAX - 1, 3, key);
    let leaves = stall.keyed(7, 1, key);
    stall
        .admit_all(&[held.clone(), waits.clone(), leaves.clone()])
        .await;
    stall.leave(7).await;
    stall.add(2).await;
    let lost = stall.claim(&stall.keyed(8, 5, "lost"));
    stall
        .hot
        .loader
        .offer(voucher, std::slice::from_ref(&lost), &[])
        .await
        .unwrap();
    stall.add(9).await;
    let adjustment = AdjustmentId::new(u64::MAX);
    stall
        .hot
        .gate
        .withdraw(voucher, 4, adjustment)
        .await
        .unwrap();
    let stays = stall.attempt(9, 6);
    stall.admit(&stays).await;
    stall.turn(SaleStatus::Closed).await;
    stall.settle().await;
    let [held, waits, leaves, stays] = [held, waits, leaves, stays].map(|it| stall.claim(&it));
    let joined = |claim: &seckill_domain::Claim, number| Decision::Joined {
        claim: claim.clone(),
        ticket: Ticket::drawn_at(FIRST_EPOCH, Sequence::new(number)),
    };
    let left = |claim: &seckill_domain::Claim, reason| Decision::Left {
        claim: claim.clone(),
        reason,
    };
    assert_eq!(
        stall.decisions().await,
        [
            Decision::Granted(held),
            joined(&waits, 2),
            joined(&leaves, 3),
            left(&leaves, LeftReason::Withdrawn),
            Decision::Promoted(waits),
            Decision::Lost(lost),
            Decision::Withdrawn {
                voucher,
                units: 4,
                adjustment
            },
            joined(&stays, 8),
            left(&stays, LeftReason::ClosedOut),
        ]
    );
}

async fn entries_are_read_after_an_entry_in_order(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 7).await;
    let all = read_after(&stall, EntryId::START, 512).await;
    assert_eq!(all.len(), 7);
    assert!(all.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(read_after(&stall, EntryId::START, 3).await, all[..3]);
    assert_eq!(read_after(&stall, all[2].id, 3).await, all[3..6]);
    assert_eq!(read_after(&stall, all[6].id, 3).await, []);
    let between = EntryId {
        counter: all[3].id.counter + 1_000_000,
        ..all[3].id
    };
    let next = read_after(&stall, between, 512).await;
    assert!(
        next.iter().all(|entry| entry.id > all[3].id),
        "ids need not exist"
    );
}

async fn reading_changes_nothing(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 3).await;
    let all = read_after(&stall, EntryId::START, 512).await;
    assert_eq!(read_after(&stall, EntryId::START, 512).await, all);
    let backlog = stall.hot.stream.backlog(stall.partition).await.unwrap();
    assert_eq!(
        (backlog.decisions, backlog.pending, backlog.length),
        (3, 0, 3)
    );
    assert_eq!(read_new(&stall, "worker", 512).await, all);
    assert_eq!(
        read_after(&stall, EntryId::START, 512).await,
        all,
        "delivered or not"
    );
}

async fn a_new_entry_is_given_to_one_consumer(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 5).await;
    let all = read_after(&stall, EntryId::START, 512).await;
    assert_eq!(read_new(&stall, "a", 2).await, all[..2]);
    assert_eq!(read_new(&stall, "b", 2).await, all[2..4]);
    assert_eq!(read_new(&stall, "a", 2).await, all[4..]);
    assert_eq!(read_new(&stall, "b", 2).await, []);
    let backlog = stall.hot.stream.backlog(stall.partition).await.unwrap();
    assert_eq!(backlog.pending, 5);
}

async fn at_most_as_many_as_asked_are_given(harness: &dyn HotHarness) {
    let stall = Opening::of(2_000).open(harness).await;
    for buyer in 1..=520 {
        stall.granted(buyer, 1).await;
    }
    assert_eq!(read_new(&stall, "a", 1).await.len(), 1);
    assert_eq!(read_new(&stall, "a", 512).await.len(), 512);
    assert_eq!(read_new(&stall, "a", 512).await.len(), 7);
}

/// Runs a blocking read while time goes by.
async fn read_while_time_passes(
    harness: &dyn HotHarness,
    stall: &Stall,
    wait: Duration,
) -> Vec<Delivery> {
    let stream = &stall.hot.stream;
    let mut read = stream.read_new(stall.partition, stall.epoch, "worker", 10, wait);
    for _ in 0..1_000 {
        let step = std::pin::pin!(harness.elapse(Duration::from_millis(50)));
        match select(read, step).await {
            Either::Left((reply, _)) => return entries(reply.unwrap()),
            Either::Right(((), pending)) => read = pending,
        }
    }
    panic!("the read does not end");
}

async fn without_entries_reading_waits_no_longer_than_asked(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 0).await;
    let wait = Duration::from_millis(300);
    let before = harness.gate_time().await;
    assert_eq!(read_while_time_passes(harness, &stall, wait).await, []);
    let waited = before.until(harness.gate_time().await);
    assert!(waited >= Duration::from_millis(250), "waited {waited:?}");
    assert!(waited < Duration::from_secs(5), "waited {waited:?}");
    assert_eq!(read_new(&stall, "worker", 10).await, [], "no wait at all");
}

/// Bug report B41: the client's response timeout is shorter than the blocking read, and the entry
/// is given to a reader who has gone.
async fn a_waiting_reader_is_woken_by_the_next_entry(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 0).await;
    let wait = Duration::from_secs(20);
    let before = harness.gate_time().await;
    let stream = &stall.hot.stream;
    let read = stream.read_new(stall.partition, stall.epoch, "worker", 10, wait);
    let buy = async {
        for _ in 0..15 {
            harness.elapse(Duration::from_millis(50)).await;
            // So that the reader gets to wait, under a clock that takes no time.
            tokio::task::yield_now().await;
        }
        stall.granted(1, 1).await
    };
    let (reply, attempt) = futures::join!(read, buy);
    let delivered = entries(reply.unwrap());
    let granted = Decision::Granted(stall.claim(&attempt));
    assert_eq!(delivered[0].body.as_ref().unwrap().decisions, [granted]);
    assert!(before.until(harness.gate_time().await) < Duration::from_secs(10));
}

async fn partitions_have_streams_of_their_own(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 2).await;
    let neighbour = VoucherId::new(VOUCHER.get() + 1);
    let neighbour = Opening::of(5).voucher(neighbour).open(harness).await;
    neighbour.granted(1, 1).await;
    assert_eq!(read_new(&stall, "worker", 10).await.len(), 2);
    assert_eq!(read_new(&neighbour, "worker", 10).await.len(), 1);
    let backlog = stall.hot.stream.backlog(neighbour.partition).await.unwrap();
    assert_eq!(
        (backlog.decisions, backlog.pending, backlog.length),
        (1, 1, 1)
    );
    assert_eq!(neighbour.log().await.last(), Sequence::new(1));
}

async fn entries_say_when_they_were_written(harness: &dyn HotHarness) {
    let before = harness.gate_time().await;
    let stall = with_grants(harness, 1).await;
    let after = harness.gate_time().await;
    let [entry] = &read_after(&stall, EntryId::START, 10).await[..] else {
        panic!("one entry");
    };
    let written = entry.id.written_at();
    assert!(
        (before..=after).contains(&written),
        "{before:?} {written:?} {after:?}"
    );
}

/// Holes 8 and 9: the group is gone, and earlier orders are never delivered.
async fn a_lost_group_is_made_again_at_the_start(harness: &dyn HotHarness) {
    let stall = with_grants(harness, 3).await;
    let all = read_after(&stall, EntryId::START, 512).await;
    assert_eq!(read_new(&stall, "worker", 2).await, all[..2]);
    harness.harm(super::Harm::LoseGroup(stall.partition)).await;
    assert_eq!(read_new(&stall, "worker", 10).await, all);
    let state = stall.hot.loader.partition(stall.partition).await.unwrap();
    assert_ne!(state, seckill_application::ports::PartitionState::Missing);
}

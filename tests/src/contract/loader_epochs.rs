//! `GateLoader`: the lives of a partition.

use seckill_application::ports::{
    Admitted, EntryId, EpochBegun, HotPath, LoadBegun, NotLoaded, PartitionState, PlaceReply,
    StreamReply,
};
use seckill_domain::{Epoch, PartitionId, Sequence, VoucherId};

use super::loading::Load;
use super::opening::{FIRST_EPOCH, LONG, Opening, VOUCHER};
use super::{HotHarness, promises};

promises! { loader_epochs over dyn HotHarness:
    a_partition_is_missing_until_it_is_begun,
    a_life_begins_once_and_only_a_later_one_replaces_it,
    a_life_counts_on_from_what_the_ledger_has_applied,
    a_life_starts_with_an_empty_stream_and_knows_no_order,
    vouchers_of_an_earlier_life_are_not_loaded,
    an_earlier_life_can_neither_be_read_nor_acknowledged,
    a_token_of_an_earlier_life_is_good_for_nothing,
    partitions_live_each_for_itself,
    the_state_follows_decisions_and_acknowledgements,
    of_many_who_begin_a_life_one_does,
}

const SECOND: Epoch = Epoch::new(2);

async fn begin(hot: &HotPath, partition: PartitionId, epoch: u64, applied: u64) -> EpochBegun {
    let (epoch, applied) = (Epoch::new(epoch), Sequence::new(applied));
    hot.loader
        .begin_epoch(partition, epoch, applied)
        .await
        .unwrap()
}

async fn state(hot: &HotPath, partition: PartitionId) -> PartitionState {
    hot.loader.partition(partition).await.unwrap()
}

fn open(epoch: u64, sequence: u64, applied: u64) -> PartitionState {
    PartitionState::Open {
        epoch: Epoch::new(epoch),
        sequence: Sequence::new(sequence),
        applied: Sequence::new(applied),
    }
}

async fn a_partition_is_missing_until_it_is_begun(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let partition = harness.partitions().of(VOUCHER);
    assert_eq!(state(hot, partition).await, PartitionState::Missing);
    let load = Load::under(hot, VOUCHER, "token");
    assert_eq!(load.begin(LONG).await, LoadBegun::PartitionMissing);
    assert_eq!(begin(hot, partition, 1, 0).await, EpochBegun::Begun);
    assert_eq!(state(hot, partition).await, open(1, 0, 0));
    let epoch = FIRST_EPOCH;
    let sequence = Sequence::new(0);
    assert_eq!(load.begin(LONG).await, LoadBegun::Begun { epoch, sequence });
}

async fn a_life_begins_once_and_only_a_later_one_replaces_it(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let partition = harness.partitions().of(VOUCHER);
    assert_eq!(begin(hot, partition, 5, 7).await, EpochBegun::Begun);
    let current = EpochBegun::NotNewer(Epoch::new(5));
    for (epoch, applied) in [(5, 7), (5, 0), (4, 900), (1, 0)] {
        assert_eq!(begin(hot, partition, epoch, applied).await, current);
        assert_eq!(state(hot, partition).await, open(5, 7, 7));
    }
    assert_eq!(begin(hot, partition, 9, 8).await, EpochBegun::Begun);
    assert_eq!(state(hot, partition).await, open(9, 8, 8));
}

async fn a_life_counts_on_from_what_the_ledger_has_applied(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let partition = harness.partitions().of(VOUCHER);
    // More digits than Lua prints of a number by itself.
    let applied = 4_503_599_627_370_497;
    begin(hot, partition, 1, applied).await;
    let stall = Opening::of(5).open(harness).await;
    stall.granted(1, 1).await;
    stall.granted(2, 1).await;
    let log = stall.log().await;
    let numbers: Vec<u64> = log.numbered().map(|(number, _)| number.get()).collect();
    assert_eq!(numbers, [applied + 1, applied + 2]);
    assert_eq!(state(hot, partition).await, open(1, applied + 2, applied));
}

async fn a_life_starts_with_an_empty_stream_and_knows_no_order(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let before = stall.granted(1, 1).await;
    begin(&stall.hot, stall.partition, 2, 1).await;
    let (stream, gate) = (&stall.hot.stream, &stall.hot.gate);
    let read = stream
        .read_after(stall.partition, SECOND, EntryId::START, 10)
        .await
        .unwrap();
    assert_eq!(read, StreamReply::Entries(Vec::new()));
    assert_eq!(gate.find_order(before.order).await.unwrap(), None);
    assert_eq!(stream.backlog(stall.partition).await.unwrap().decisions, 0);
    let again = Opening::of(4).open(harness).await;
    again.granted(2, 1).await;
    assert_eq!(again.epoch, SECOND);
    assert_eq!(again.log().await.last(), Sequence::new(2));
}

async fn vouchers_of_an_earlier_life_are_not_loaded(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    begin(&stall.hot, stall.partition, 2, 1).await;
    stall.assert_not_loaded(NotLoaded::Voucher).await;
    let reply = stall.ask(&[attempt]).await;
    assert_eq!(reply, Admitted::NotLoaded(NotLoaded::Voucher));
    assert_eq!(stall.hot.gate.facts(&[VOUCHER]).await.unwrap(), [None]);
    let nothing = PlaceReply::NotLoaded(NotLoaded::Voucher);
    assert_eq!(stall.place_reply(1).await, nothing);
}

async fn an_earlier_life_can_neither_be_read_nor_acknowledged(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    stall.granted(1, 1).await;
    let entries = stall.log().await.ids();
    begin(&stall.hot, stall.partition, 2, 0).await;
    let again = Opening::of(5).open(harness).await;
    again.granted(2, 1).await;
    let (partition, stream) = (stall.partition, &stall.hot.stream);
    let after = EntryId::START;
    let read = stream
        .read_after(partition, FIRST_EPOCH, after, 10)
        .await
        .unwrap();
    assert_eq!(read, StreamReply::Missing);
    let no_wait = std::time::Duration::ZERO;
    let read = stream
        .read_new(partition, FIRST_EPOCH, "worker", 10, no_wait)
        .await
        .unwrap();
    assert_eq!(read, StreamReply::Missing);
    stream
        .ack(partition, FIRST_EPOCH, &entries, Sequence::new(1))
        .await
        .unwrap();
    assert_eq!(state(&stall.hot, partition).await, open(2, 1, 0));
    let trimmed = stream
        .trim(partition, FIRST_EPOCH, entries[0], no_wait)
        .await
        .unwrap();
    assert_eq!(trimmed, 0);
    assert_eq!(again.decisions().await.len(), 1);
}

async fn a_token_of_an_earlier_life_is_good_for_nothing(harness: &dyn HotHarness) {
    let opening = Opening::of(5);
    let stall = opening.clone().open(harness).await;
    let claim = stall.claim(&stall.attempt(1, 1));
    let (load, sequence) = Load::begun(&stall.hot, VOUCHER, "early").await;
    let sale = opening.open_sale(harness.gate_time().await, sequence);
    begin(&stall.hot, stall.partition, 2, 0).await;
    load.assert_not_mine(&sale, &claim).await;
    let (other, _) = Load::begun(&stall.hot, VOUCHER, "late").await;
    load.assert_not_mine(&sale, &claim).await;
    let opened = other.open(&sale).await;
    assert_eq!(opened, seckill_application::ports::Opened::Opened);
}

async fn partitions_live_each_for_itself(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let stall = Opening::of(5).open(harness).await;
    let neighbour = VoucherId::new(VOUCHER.get() + 1);
    let neighbour = Opening::of(5).voucher(neighbour).open(harness).await;
    assert_ne!(stall.partition, neighbour.partition);
    stall.granted(1, 1).await;
    begin(hot, stall.partition, 2, 1).await;
    neighbour.granted(1, 1).await;
    assert_eq!(state(hot, stall.partition).await, open(2, 1, 1));
    assert_eq!(state(hot, neighbour.partition).await, open(1, 1, 0));
}

async fn the_state_follows_decisions_and_acknowledgements(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    for buyer in 1..=3 {
        stall.granted(buyer, 1).await;
    }
    let (partition, stream) = (stall.partition, &stall.hot.stream);
    assert_eq!(state(&stall.hot, partition).await, open(1, 3, 0));
    let entries = stall.log().await.ids();
    let ack = async |entries: &[EntryId], applied| {
        let applied = Sequence::new(applied);
        stream
            .ack(partition, FIRST_EPOCH, entries, applied)
            .await
            .unwrap();
    };
    ack(&entries[..2], 2).await;
    assert_eq!(state(&stall.hot, partition).await, open(1, 3, 2));
    ack(&entries[..1], 1).await;
    assert_eq!(
        state(&stall.hot, partition).await,
        open(1, 3, 2),
        "it never goes back"
    );
}

async fn of_many_who_begin_a_life_one_does(harness: &dyn HotHarness) {
    let hot = harness.hot();
    let other = harness.another_process().await;
    let partition = harness.partitions().of(VOUCHER);
    let begins = (0..10).map(|n| begin(if n % 2 == 0 { hot } else { &other }, partition, 3, 9));
    let replies = futures::future::join_all(begins).await;
    let begun = replies.iter().filter(|reply| **reply == EpochBegun::Begun);
    assert_eq!(begun.count(), 1, "{replies:?}");
}

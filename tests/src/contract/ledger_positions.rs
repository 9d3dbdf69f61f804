//! `AdmissionLedger`: how far the ledger is, and who may go on.

use futures::future::join_all;
use seckill_application::ports::{
    AdmissionBatch, Applied, BatchItem, EntryId, PartitionHead, Unreadable, Verdict,
};
use seckill_domain::{Decision, Epoch, Fence, PartitionId, Sequence};

use super::desk::{Desk, batch_from, claim, joining};
use super::{LedgerHarness, promises};

promises! { ledger_positions over dyn LedgerHarness:
    a_new_partition_is_at_its_start,
    each_new_writer_draws_a_higher_fence,
    an_epoch_is_raised_once_from_what_was_seen,
    a_batch_moves_the_position,
    an_entry_cut_in_two_is_completed_by_its_last_part,
    an_empty_batch_moves_the_position,
    the_writer_of_an_old_fence_writes_nothing,
    a_batch_of_an_old_epoch_writes_nothing,
    a_batch_that_was_applied_writes_nothing_again,
    a_batch_beyond_a_gap_writes_nothing,
    of_two_writers_at_one_position_one_goes_on,
    partitions_are_at_positions_of_their_own,
    a_sequence_outlives_its_epoch,
    what_was_applied_is_recognized,
    what_was_there_already_is_recognized_by_each_of_its_numbers,
    what_was_not_applied_is_not_recognized,
    the_number_of_partitions_is_settled_once,
}

const PARTITION: PartitionId = PartitionId::new(1);

async fn a_new_partition_is_at_its_start(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let head = desk.ports.admissions.head(PARTITION).await.unwrap();
    assert_eq!(head.epoch, Epoch::new(1));
    assert_eq!(head.applied, Sequence::new(0));
    assert_eq!(head.entry, EntryId::START);
    assert_eq!(desk.ports.admissions.head(PARTITION).await.unwrap(), head);
}

async fn each_new_writer_draws_a_higher_fence(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let other = harness.another_process().await;
    let mut last = desk.ports.admissions.head(PARTITION).await.unwrap();
    for admissions in [
        &desk.ports.admissions,
        &other.admissions,
        &desk.ports.admissions,
    ] {
        let head = admissions.take_over(PARTITION).await.unwrap();
        assert!(head.fence > last.fence);
        let fence = head.fence;
        assert_eq!(head, PartitionHead { fence, ..last });
        assert_eq!(admissions.head(PARTITION).await.unwrap(), head);
        last = head;
    }
    let first = desk
        .ports
        .admissions
        .take_over(PartitionId::new(0))
        .await
        .unwrap();
    assert!(
        first.fence > Fence::default(),
        "of a partition nobody asked about before"
    );
    let draws = (0..10).map(|_| desk.ports.admissions.take_over(PARTITION));
    let mut fences: Vec<Fence> = join_all(draws)
        .await
        .into_iter()
        .map(|head| head.unwrap().fence)
        .collect();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), 10, "no two writers draw the same");
}

async fn an_epoch_is_raised_once_from_what_was_seen(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let partition = desk.partition_of(voucher.id);
    let before = desk.head(partition).await;
    let admissions = &desk.ports.admissions;
    let raised = admissions
        .next_epoch(partition, before.epoch)
        .await
        .unwrap();
    assert_eq!(raised.epoch, before.epoch.next());
    assert_eq!(raised.applied, before.applied, "the sequence goes on");
    assert_eq!(raised.entry, EntryId::START, "the stream starts over");
    let again = admissions
        .next_epoch(partition, before.epoch)
        .await
        .unwrap();
    assert_eq!(again, raised, "somebody raised it before");
    let draws = (0..5).map(|_| admissions.next_epoch(partition, raised.epoch));
    for head in join_all(draws).await {
        assert_eq!(head.unwrap().epoch, raised.epoch.next());
    }
}

async fn a_batch_moves_the_position(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let decisions = (1..=3).map(|buyer| Decision::Granted(claim(&voucher, buyer, 1)));
    let batch = desk
        .batch(desk.partition_of(voucher.id), decisions.collect())
        .await;
    let applied = desk.ports.admissions.apply(&batch).await.unwrap();
    let expected = PartitionHead {
        applied: Sequence::new(batch.head.applied.get() + 3),
        entry: batch.up_to,
        ..batch.head
    };
    let Applied::Committed { verdicts, head, .. } = applied else {
        panic!("not applied: {applied:?}");
    };
    assert_eq!((verdicts, head), (vec![Verdict::Confirmed; 3], expected));
    let stored = desk.ports.admissions.head(batch.partition).await.unwrap();
    assert_eq!(stored, expected);
}

async fn an_entry_cut_in_two_is_completed_by_its_last_part(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let decision = Decision::Granted(claim(&voucher, 1, 1));
    let mut batch = desk
        .batch(desk.partition_of(voucher.id), vec![decision])
        .await;
    // The entry has more decisions than the batch: it is not completed by it.
    batch.up_to = batch.head.entry;
    desk.commit(&batch).await;
    let head = desk.ports.admissions.head(batch.partition).await.unwrap();
    assert_eq!(head.entry, batch.head.entry);
    assert_eq!(head.applied, batch.head.applied.next());
}

async fn an_empty_batch_moves_the_position(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let body = Unreadable {
        raw: "hello".to_owned(),
        reason: "not ours".to_owned(),
        named: None,
    };
    let entry = EntryId {
        millis: 7,
        counter: 1,
    };
    let head = desk.ports.admissions.take_over(PARTITION).await.unwrap();
    let batch = AdmissionBatch {
        partition: PARTITION,
        head,
        items: vec![BatchItem::Unreadable {
            entry,
            body,
            taken: None,
        }],
        up_to: entry,
    };
    desk.commit(&batch).await;
    let stored = desk.ports.admissions.head(PARTITION).await.unwrap();
    assert_eq!(
        stored,
        PartitionHead { entry, ..head },
        "only the entry moves"
    );
}

/// Asserts that a batch is refused because the ledger is at `head`, and that it left nothing.
async fn assert_stale(desk: &Desk<'_>, batch: &AdmissionBatch, head: PartitionHead) {
    let applied = desk.ports.admissions.apply(batch).await.unwrap();
    assert_eq!(applied, Applied::Stale(head));
    assert_eq!(
        desk.ports.admissions.head(batch.partition).await.unwrap(),
        head
    );
    for item in &batch.items {
        let BatchItem::Decision { decision, .. } = item else {
            continue;
        };
        let order = decision.claim().expect("an order").order;
        assert_eq!(desk.ports.ledger.order(order).await.unwrap(), None);
    }
}

/// Faults F7 and B25: a writer that was paused beyond its lease goes on.
async fn the_writer_of_an_old_fence_writes_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let partition = desk.partition_of(voucher.id);
    let admissions = &desk.ports.admissions;
    let old = admissions.take_over(partition).await.unwrap();
    let new = admissions.take_over(partition).await.unwrap();
    let now = desk.now().await;
    let decision = || vec![Decision::Granted(claim(&voucher, 1, 1))];
    let late = batch_from(old, partition, decision(), now);
    assert_stale(&desk, &late, new).await;
    let applied = admissions
        .apply(&batch_from(new, partition, decision(), now))
        .await
        .unwrap();
    assert!(matches!(applied, Applied::Committed { .. }), "{applied:?}");
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn a_batch_of_an_old_epoch_writes_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let partition = desk.partition_of(voucher.id);
    let admissions = &desk.ports.admissions;
    let old = admissions.take_over(partition).await.unwrap();
    let new = admissions.next_epoch(partition, old.epoch).await.unwrap();
    let decision = vec![Decision::Granted(claim(&voucher, 1, 1))];
    let late = batch_from(old, partition, decision, desk.now().await);
    assert_stale(&desk, &late, new).await;
}

/// Hole 6: redelivery deducts again.
async fn a_batch_that_was_applied_writes_nothing_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let decision = vec![Decision::Granted(claim(&voucher, 1, 2))];
    let batch = desk.batch(desk.partition_of(voucher.id), decision).await;
    desk.commit(&batch).await;
    let applied = desk.ports.admissions.apply(&batch).await.unwrap();
    assert_eq!(applied, Applied::Stale(desk.head(batch.partition).await));
    assert_eq!(desk.stock(&voucher).await, 3);
}

async fn a_batch_beyond_a_gap_writes_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let partition = desk.partition_of(voucher.id);
    let head = desk.ports.admissions.take_over(partition).await.unwrap();
    let ahead = PartitionHead {
        applied: Sequence::new(head.applied.get() + 1),
        ..head
    };
    let decision = vec![Decision::Granted(claim(&voucher, 1, 1))];
    let batch = batch_from(ahead, partition, decision, desk.now().await);
    assert_stale(&desk, &batch, head).await;
}

async fn of_two_writers_at_one_position_one_goes_on(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let other = harness.another_process().await;
    let voucher = desk.voucher(10, 1).await;
    let partition = desk.partition_of(voucher.id);
    for round in 0..5 {
        let head = desk.ports.admissions.head(partition).await.unwrap();
        let now = desk.now().await;
        let batch = |buyer| {
            let decision = vec![Decision::Granted(claim(&voucher, buyer, 1))];
            batch_from(head, partition, decision, now)
        };
        let (mine, others) = (batch(2 * round), batch(2 * round + 1));
        let (mine, others) = futures::join!(
            desk.ports.admissions.apply(&mine),
            other.admissions.apply(&others),
        );
        let committed = [mine.unwrap(), others.unwrap()]
            .iter()
            .filter(|applied| matches!(applied, Applied::Committed { .. }))
            .count();
        assert_eq!(committed, 1);
    }
    assert_eq!(desk.stock(&voucher).await, 5);
}

async fn partitions_are_at_positions_of_their_own(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let [first, second] = [desk.voucher(5, 1).await, desk.voucher(5, 1).await];
    let [one, two] = [&first, &second].map(|voucher| desk.partition_of(voucher.id));
    assert_ne!(one, two, "vouchers are numbered one after the other");
    desk.granted(&first, 1, 1).await;
    desk.granted(&first, 2, 1).await;
    desk.granted(&second, 1, 1).await;
    assert_eq!(desk.head(one).await.applied, Sequence::new(2));
    assert_eq!(desk.head(two).await.applied, Sequence::new(1));
}

async fn a_sequence_outlives_its_epoch(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let partition = desk.partition_of(voucher.id);
    let admissions = &desk.ports.admissions;
    let epoch = desk.head(partition).await.epoch;
    let head = admissions.next_epoch(partition, epoch).await.unwrap();
    let decision = vec![Decision::Granted(claim(&voucher, 2, 1))];
    // A new stream may begin with an older entry than the last one of the old stream.
    let batch = batch_from(
        head,
        partition,
        decision,
        seckill_domain::Timestamp::from_millis(5),
    );
    assert_eq!(desk.commit(&batch).await, [Verdict::Confirmed]);
    assert_eq!(desk.head(partition).await.applied, Sequence::new(2));
}

/// One decision of each kind that there can be, applied.
async fn applied_of_each_kind(desk: &Desk<'_>) -> (PartitionId, Vec<BatchItem>) {
    let voucher = desk.voucher(9, 1).await;
    let [held, waits, leaves, lost] = [1, 2, 3, 4].map(|buyer| claim(&voucher, buyer, 1));
    let left = Decision::Left {
        claim: leaves.clone(),
        reason: seckill_domain::LeftReason::Withdrawn,
    };
    let decisions = vec![
        Decision::Granted(held.clone()),
        joining(&waits, 2),
        joining(&leaves, 3),
        left,
        Decision::Promoted(waits),
        Decision::Lost(lost),
    ];
    let batch = desk.batch(desk.partition_of(voucher.id), decisions).await;
    desk.commit(&batch).await;
    // What became of an order later does not matter.
    desk.cancel(&held).await;
    (batch.partition, batch.items)
}

async fn what_was_applied_is_recognized(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (partition, items) = applied_of_each_kind(&desk).await;
    let admissions = &desk.ports.admissions;
    assert!(admissions.has_applied(partition, &items).await.unwrap());
    for item in &items {
        let one = std::slice::from_ref(item);
        assert!(
            admissions.has_applied(partition, one).await.unwrap(),
            "{item:?}"
        );
    }
    let entry = EntryId::START;
    let body = Unreadable {
        raw: "hello".to_owned(),
        reason: "not ours".to_owned(),
        named: None,
    };
    let unreadable = [BatchItem::Unreadable {
        entry,
        body,
        taken: None,
    }];
    assert!(
        admissions
            .has_applied(partition, &unreadable)
            .await
            .unwrap()
    );
    assert!(admissions.has_applied(partition, &[]).await.unwrap());
}

/// Grants and places that were appended again: none of them is taken for news from a Redis that went
/// back.
async fn what_was_there_already_is_recognized_by_each_of_its_numbers(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 1).await;
    let [held, waits] = [1, 2].map(|buyer| claim(&voucher, buyer, 1));
    let again = || {
        let held = Decision::Granted(held.clone());
        vec![held.clone(), joining(&waits, 2), held, joining(&waits, 2)]
    };
    let partition = desk.partition_of(voucher.id);
    let mut items = Vec::new();
    for _ in 0..2 {
        let batch = desk.batch(partition, again()).await;
        let verdicts = desk.commit(&batch).await;
        assert_eq!(verdicts[2..], [Verdict::AlreadyThere; 2]);
        items.extend(batch.items);
    }
    let admissions = &desk.ports.admissions;
    assert!(admissions.has_applied(partition, &items).await.unwrap());
    for item in &items {
        let one = std::slice::from_ref(item);
        let known = admissions.has_applied(partition, one).await.unwrap();
        assert!(known, "{item:?}");
    }
}

/// Redis went back to an older state, and decided something else under the same numbers.
async fn what_was_not_applied_is_not_recognized(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (partition, items) = applied_of_each_kind(&desk).await;
    let admissions = &desk.ports.admissions;
    let BatchItem::Decision { decision, .. } = &items[0] else {
        panic!("a decision");
    };
    let voucher = desk.stored(decision.voucher()).await;
    for item in &items {
        let BatchItem::Decision {
            sequence,
            entry,
            decision,
        } = item.clone()
        else {
            panic!("a decision");
        };
        let other = BatchItem::Decision {
            sequence,
            entry,
            decision: Decision::Granted(claim(&voucher, 77, 1)),
        };
        let later = BatchItem::Decision {
            sequence: Sequence::new(sequence.get() + 100),
            entry,
            decision,
        };
        for strange in [other, later] {
            let strange = std::slice::from_ref(&strange);
            let known = admissions.has_applied(partition, strange).await.unwrap();
            assert!(!known, "{strange:?}");
        }
    }
}

async fn the_number_of_partitions_is_settled_once(harness: &dyn LedgerHarness) {
    let admissions = &harness.ledger().admissions;
    let settled = admissions
        .settle_partitions(super::PARTITIONS)
        .await
        .unwrap();
    assert_eq!(settled, super::PARTITIONS);
    for count in [super::PARTITIONS, super::PARTITIONS * 2, 1] {
        let other = harness.another_process().await;
        let settled = other.admissions.settle_partitions(count).await.unwrap();
        assert_eq!(settled, super::PARTITIONS, "asked for {count}");
    }
}

//! Lost hot data is noticed: "not loaded" is an answer, a wrong answer is not.

use seckill_application::ports::{Admitted, NotLoaded, PartitionState, StreamReply};
use seckill_domain::{Admission, Attempt, Epoch, PlaceAtFirst, Sequence};

use super::opening::{Opening, VOUCHER};
use super::stall::{Stall, forget_tickets, waitlisted};
use super::{Harm, HotHarness, promises};

promises! { loader_losses over dyn HotHarness:
    a_wiped_store_is_missing_and_not_sold_out,
    a_lost_stream_shuts_the_partition,
    a_lost_group_is_noticed,
    whatever_single_piece_is_lost_no_answer_is_wrong,
}

async fn a_wiped_store_is_missing_and_not_sold_out(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    let attempt = stall.granted(1, 1).await;
    harness.harm(Harm::Wipe).await;
    let state = stall.hot.loader.partition(stall.partition).await.unwrap();
    assert_eq!(state, PartitionState::Missing);
    stall.assert_not_loaded(NotLoaded::Partition).await;
    let repeat = stall.ask(&[attempt]).await;
    assert_eq!(repeat, Admitted::NotLoaded(NotLoaded::Partition));
}

async fn a_lost_stream_shuts_the_partition(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    stall.granted(1, 1).await;
    harness.harm(Harm::LoseStream(stall.partition)).await;
    stall.assert_not_loaded(NotLoaded::Partition).await;
    let state = stall.hot.loader.partition(stall.partition).await.unwrap();
    assert_eq!(state, PartitionState::Missing);
    let (partition, epoch) = (stall.partition, stall.epoch);
    let no_wait = std::time::Duration::ZERO;
    let stream = &stall.hot.stream;
    let read = stream
        .read_new(partition, epoch, "worker", 10, no_wait)
        .await
        .unwrap();
    assert_eq!(read, StreamReply::Missing, "reading makes no new stream");
    stall.assert_not_loaded(NotLoaded::Partition).await;
}

async fn a_lost_group_is_noticed(harness: &dyn HotHarness) {
    let stall = Opening::of(5).open(harness).await;
    stall.granted(1, 1).await;
    harness.harm(Harm::LoseGroup(stall.partition)).await;
    let state = stall.hot.loader.partition(stall.partition).await.unwrap();
    assert_eq!(state, PartitionState::Missing);
}

/// What was asked of a sale before something was lost.
struct Before {
    stall: Stall,
    holder: Attempt,
    waiting: Attempt,
}

/// A sale in a life of its own, with a holder, a head who waits for more than is free, used keys,
/// and a free unit.
async fn before(harness: &dyn HotHarness, epoch: u64) -> Before {
    let partition = harness.partitions().of(VOUCHER);
    let applied = Sequence::new(epoch * 1_000);
    let loader = &harness.hot().loader;
    loader
        .begin_epoch(partition, Epoch::new(epoch), applied)
        .await
        .unwrap();
    let stall = Opening::of(3).limit(2).waitlist(5).open(harness).await;
    let holder = stall.keyed(1, 1, "held");
    let waiting = stall.keyed(3, 2, "waits");
    stall.admit(&holder).await;
    stall.granted(2, 1).await;
    stall.admit(&waiting).await;
    Before {
        stall,
        holder,
        waiting,
    }
}

/// Asks, and returns whether the gate knew that it cannot answer.
async fn right_or_not_loaded(
    stall: &Stall,
    attempt: &Attempt,
    right: &Admission,
    lost: &str,
) -> bool {
    match stall.ask(std::slice::from_ref(attempt)).await {
        Admitted::NotLoaded(_) => true,
        Admitted::Decided { mut admissions, .. } => {
            forget_tickets(&mut admissions);
            assert_eq!(
                admissions,
                std::slice::from_ref(right),
                "{attempt:?} without {lost}"
            );
            false
        }
        Admitted::BacklogFull => panic!("the backlog is short"),
    }
}

async fn assert_no_wrong_answer(before: &Before, lost: &str) -> bool {
    let Before {
        stall,
        holder,
        waiting,
    } = before;
    let (held, waits) = (holder.order, waiting.order);
    let position = 1;
    let replayed = |order, first| Admission::Replayed { order, first };
    let new = stall.attempt(4, 1);
    let order = new.order;
    let questions = [
        (holder.clone(), Admission::Granted { order: held }),
        (
            stall.keyed(1, 1, "held"),
            replayed(held, PlaceAtFirst::Granted),
        ),
        (
            stall.attempt(1, 2),
            Admission::LimitExceeded { remaining: 1 },
        ),
        (waiting.clone(), waitlisted(waits, position)),
        (
            stall.keyed(3, 2, "waits"),
            replayed(waits, PlaceAtFirst::Waitlisted),
        ),
        (
            stall.attempt(3, 2),
            Admission::AlreadyWaiting {
                order: waits,
                position,
            },
        ),
        (new, waitlisted(order, 2)),
    ];
    let mut noticed = 0;
    for (attempt, right) in &questions {
        noticed += usize::from(right_or_not_loaded(stall, attempt, right, lost).await);
    }
    assert!(
        noticed == 0 || noticed == questions.len(),
        "without {lost}, {noticed} of {} questions were not answered",
        questions.len()
    );
    noticed > 0
}

/// Holes 1, 4 and the fault F12: one key is gone, and the gate sells what it does not have, or
/// sells a holder a second unit, or says "sold out".
async fn whatever_single_piece_is_lost_no_answer_is_wrong(harness: &dyn HotHarness) {
    let mut noticed = Vec::new();
    for round in 0.. {
        let epoch = 1 + round as u64;
        let before = before(harness, epoch).await;
        let pieces = harness.pieces(VOUCHER).await;
        let Some(piece) = pieces.get(round) else {
            break;
        };
        let harm = Harm::Lose {
            voucher: VOUCHER,
            piece: piece.clone(),
        };
        harness.harm(harm).await;
        if assert_no_wrong_answer(&before, piece).await {
            noticed.push(piece.clone());
        }
    }
    assert!(noticed.len() >= 4, "only {noticed:?} were missed");
}

//! `PurchaseGate::admit`: a batch is decided one attempt after the other, in one step.

use futures::future::join_all;
use seckill_application::ports::{ATTEMPTS_MAX, Admitted};
use seckill_domain::{Admission, Attempt};

use super::opening::Opening;
use super::stall::waitlisted;
use super::{BACKLOG_LIMIT, HotHarness, promises};

promises! { gate_batches over dyn HotHarness:
    a_batch_is_decided_one_after_the_other,
    a_batch_of_refusals_is_answered_whole,
    a_batch_sees_its_own_decisions,
    the_same_attempt_twice_in_a_batch_is_one_order,
    a_full_batch_is_one_entry,
    two_processes_never_sell_a_unit_twice,
    one_attempt_sent_by_many_at_once_is_one_order,
    a_full_backlog_decides_nothing_until_the_ledger_catches_up,
    a_full_backlog_stops_neither_updates_nor_leaving,
}

async fn a_batch_is_decided_one_after_the_other(harness: &dyn HotHarness) {
    let stall = Opening::of(3).waitlist(1).open(harness).await;
    let attempts: Vec<Attempt> = (1..=6).map(|buyer| stall.attempt(buyer, 1)).collect();
    let admissions = stall.admit_all(&attempts).await;
    let granted = |index: usize| Admission::Granted {
        order: attempts[index].order,
    };
    let waits = waitlisted(attempts[3].order, 1);
    let sold_out = Admission::SoldOut;
    assert_eq!(
        admissions,
        [
            granted(0),
            granted(1),
            granted(2),
            waits,
            sold_out.clone(),
            sold_out
        ]
    );
    assert_eq!(stall.log().await.sizes(), [4], "one entry for one step");
}

async fn a_batch_of_refusals_is_answered_whole(harness: &dyn HotHarness) {
    let stall = Opening::of(1).open(harness).await;
    stall.granted(1, 1).await;
    let attempts: Vec<Attempt> = (2..=4).map(|buyer| stall.attempt(buyer, 1)).collect();
    assert_eq!(
        stall.admit_all(&attempts).await,
        vec![Admission::SoldOut; 3]
    );
    assert_eq!(stall.log().await.sizes(), [1]);
}

/// Stands for: several orders in one request are each judged alone, and all pass (B47).
async fn a_batch_sees_its_own_decisions(harness: &dyn HotHarness) {
    let stall = Opening::of(9).limit(2).open(harness).await;
    let attempts = [
        stall.keyed(1, 1, "k"),
        stall.keyed(1, 1, "k"),
        stall.keyed(1, 2, "k"),
        stall.attempt(1, 2),
        stall.attempt(1, 1),
        stall.attempt(1, 1),
    ];
    let order = attempts[0].order;
    let last = attempts[4].order;
    let first = seckill_domain::PlaceAtFirst::Granted;
    assert_eq!(
        stall.admit_all(&attempts).await,
        [
            Admission::Granted { order },
            Admission::Replayed { order, first },
            Admission::KeyReused { order },
            Admission::LimitExceeded { remaining: 1 },
            Admission::Granted { order: last },
            Admission::AlreadyHeld {
                orders: vec![order, last]
            },
        ]
    );
    assert_eq!(stall.free().await, 7);
}

async fn the_same_attempt_twice_in_a_batch_is_one_order(harness: &dyn HotHarness) {
    let stall = Opening::of(2).limit(2).waitlist(2).open(harness).await;
    let twice = stall.attempt(1, 2);
    let waits = stall.attempt(2, 1);
    let batch = [twice.clone(), twice.clone(), waits.clone(), waits.clone()];
    let granted = Admission::Granted { order: twice.order };
    let waitlisted = waitlisted(waits.order, 1);
    assert_eq!(
        stall.admit_all(&batch).await,
        [granted.clone(), granted, waitlisted.clone(), waitlisted]
    );
    assert_eq!(stall.log().await.sizes(), [2]);
}

async fn a_full_batch_is_one_entry(harness: &dyn HotHarness) {
    let stall = Opening::of(100).open(harness).await;
    let buyers = 1..=u64::try_from(ATTEMPTS_MAX).unwrap();
    let attempts: Vec<Attempt> = buyers.map(|buyer| stall.attempt(buyer, 1)).collect();
    let admissions = stall.admit_all(&attempts).await;
    for (attempt, admission) in attempts.iter().zip(admissions) {
        let order = attempt.order;
        assert_eq!(admission, Admission::Granted { order });
    }
    assert_eq!(stall.log().await.sizes(), [ATTEMPTS_MAX]);
}

async fn two_processes_never_sell_a_unit_twice(harness: &dyn HotHarness) {
    let stall = Opening::of(10).open(harness).await;
    let other = harness.another_process().await;
    let asks = (1..=60).map(|buyer| {
        let hot = if buyer % 2 == 0 { &stall.hot } else { &other };
        let attempt = stall.attempt(buyer, 1);
        let voucher = stall.voucher;
        async move { hot.gate.admit(voucher, &[attempt]).await.unwrap() }
    });
    let replies = join_all(asks).await;
    let granted = replies.iter().filter(|reply| {
        let Admitted::Decided { admissions, .. } = reply else {
            panic!("{reply:?}");
        };
        matches!(admissions[..], [Admission::Granted { .. }])
    });
    assert_eq!(granted.count(), 10);
    assert_eq!(stall.free().await, 0);
    assert_eq!(stall.decisions().await.len(), 10);
}

async fn one_attempt_sent_by_many_at_once_is_one_order(harness: &dyn HotHarness) {
    let stall = Opening::of(10).limit(5).open(harness).await;
    let attempt = stall.attempt(42, 1);
    let answers = join_all((0..20).map(|_| stall.ask(std::slice::from_ref(&attempt)))).await;
    let order = attempt.order;
    for answer in answers {
        let Admitted::Decided { admissions, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(admissions, [Admission::Granted { order }]);
    }
    assert_eq!(stall.free().await, 9);
    assert_eq!(stall.decisions().await.len(), 1);
}

/// Fills the backlog; returns how many decisions that took.
async fn fill_backlog(stall: &super::stall::Stall) -> u64 {
    let mut buyer = 1_000;
    loop {
        let attempts: Vec<Attempt> = (0..50).map(|n| stall.attempt(buyer + n, 1)).collect();
        buyer += 50;
        match stall.ask(&attempts).await {
            Admitted::Decided { .. } => {}
            Admitted::BacklogFull => return buyer - 1_000 - 50,
            Admitted::NotLoaded(why) => panic!("{why:?}"),
        }
        assert!(buyer < 1_000 + 3 * BACKLOG_LIMIT, "no limit on the backlog");
    }
}

async fn a_full_backlog_decides_nothing_until_the_ledger_catches_up(harness: &dyn HotHarness) {
    let stall = Opening::of(10_000).open(harness).await;
    let decided = fill_backlog(&stall).await;
    assert!(
        (BACKLOG_LIMIT - 49..=BACKLOG_LIMIT + 50).contains(&decided),
        "{decided}"
    );
    let before = stall.pulse().await;
    assert_eq!(
        stall.ask(&[stall.attempt(1, 1)]).await,
        Admitted::BacklogFull
    );
    assert_eq!(stall.pulse().await, before);
    let log = stall.log().await;
    let stream = &stall.hot.stream;
    let applied = log.last();
    stream
        .ack(stall.partition, stall.epoch, &log.ids(), applied)
        .await
        .unwrap();
    stall.granted(1, 1).await;
}

async fn a_full_backlog_stops_neither_updates_nor_leaving(harness: &dyn HotHarness) {
    let stall = Opening::of(1).waitlist(10_000).open(harness).await;
    let holder = stall.granted(1, 1).await;
    stall.waiting(2, 1).await;
    stall.waiting(3, 1).await;
    fill_backlog(&stall).await;
    let left = stall.leave(3).await;
    assert!(
        matches!(left, seckill_application::ports::LeaveReply::Left(_)),
        "{left:?}"
    );
    stall.release(&holder).await;
    assert!(matches!(
        stall.place(2).await,
        Some(seckill_application::ports::Place::Promoted { .. })
    ));
}

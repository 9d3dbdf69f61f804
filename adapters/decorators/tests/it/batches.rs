//! What goes together, in which order, and what everybody is told.

use std::time::Duration;

use futures::future::join_all;
use futures::{join, poll};
use seckill_application::Effect;
use seckill_application::ports::{Admitted, NotLoaded, PurchaseGate};
use seckill_decorators::{BatchSettings, BatchTally};
use seckill_domain::VoucherId;

use crate::inner::{Inner, Mood, attempt, granted};

const VOUCHER: VoucherId = VoucherId::new(7);

#[tokio::test]
async fn an_attempt_that_finds_its_voucher_idle_is_sent_at_once() {
    let inner = Inner::new();
    inner.replies.add_permits(2);
    let (gate, _) = inner.batched(BatchSettings::default());
    assert_eq!(granted(gate.admit(VOUCHER, &attempt(1)).await), 1);
    assert_eq!(granted(gate.admit(VOUCHER, &attempt(2)).await), 2);
    assert_eq!(inner.calls(), [[1], [2]]);
}

#[tokio::test]
async fn what_comes_during_a_call_goes_together_in_the_next_in_order() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    let attempts: Vec<_> = (1..=6).map(attempt).collect();
    let mut crowd = Box::pin(join_all(attempts.iter().map(|a| gate.admit(VOUCHER, a))));
    assert!(poll!(&mut crowd).is_pending());
    assert_eq!(inner.calls(), [[1]], "the others wait for the first");
    inner.replies.add_permits(2);
    let orders: Vec<u64> = crowd.await.into_iter().map(granted).collect();
    assert_eq!(orders, [1, 2, 3, 4, 5, 6], "everybody gets his own answer");
    assert_eq!(inner.calls(), [vec![1], vec![2, 3, 4, 5, 6]]);
    let expected = BatchTally {
        calls: 2,
        attempts: 6,
        turned_away: 0,
    };
    assert_eq!(gate.tally(), expected);
}

#[tokio::test]
async fn a_batch_has_a_maximum() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings {
        batch_max: 2,
        ..BatchSettings::default()
    });
    let attempts: Vec<_> = (1..=6).map(attempt).collect();
    let mut crowd = Box::pin(join_all(attempts.iter().map(|a| gate.admit(VOUCHER, a))));
    assert!(poll!(&mut crowd).is_pending());
    inner.replies.add_permits(4);
    assert_eq!(crowd.await.len(), 6);
    assert_eq!(inner.calls(), [vec![1], vec![2, 3], vec![4, 5], vec![6]]);
}

#[tokio::test]
async fn several_calls_may_be_under_way() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings {
        calls_max: 2,
        ..BatchSettings::default()
    });
    let attempts: Vec<_> = (1..=5).map(attempt).collect();
    let mut crowd = Box::pin(join_all(attempts.iter().map(|a| gate.admit(VOUCHER, a))));
    assert!(poll!(&mut crowd).is_pending());
    assert_eq!(inner.calls(), [[1], [2]]);
    inner.replies.add_permits(3);
    crowd.await.into_iter().for_each(|reply| {
        granted(reply);
    });
    assert_eq!(inner.calls(), [vec![1], vec![2], vec![3, 4, 5]]);
}

/// Stands for: a lock per buyer: purchases that have nothing to do with each other collide (1.8).
#[tokio::test]
async fn vouchers_do_not_wait_for_each_other() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    let (first, second) = (attempt(1), attempt(2));
    // The same shard, and another one.
    for other in [VoucherId::new(VOUCHER.get() + 16), VoucherId::new(8)] {
        let mut blocked = gate.admit(VOUCHER, &first);
        assert!(poll!(&mut blocked).is_pending());
        let mut free = gate.admit(other, &second);
        assert!(poll!(&mut free).is_pending());
        inner.replies.add_permits(2);
        let (one, two) = join!(blocked, free);
        assert_eq!((granted(one), granted(two)), (1, 2));
    }
    assert_eq!(inner.calls(), [[1], [2], [1], [2]]);
}

#[tokio::test]
async fn a_callers_own_batch_is_left_as_it_is() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    inner.replies.add_permits(1);
    let own: Vec<_> = (1..=3).flat_map(attempt).collect();
    let Ok(Admitted::Decided { admissions, .. }) = gate.admit(VOUCHER, &own).await else {
        panic!("not decided");
    };
    assert_eq!(admissions.len(), 3);
    assert_eq!(inner.calls(), [[1, 2, 3]]);
}

/// The replies of one attempt alone and of two in one batch.
async fn in_mood(mood: Mood) -> Vec<Result<Admitted, seckill_application::Fault>> {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    inner.set(mood);
    let attempts: Vec<_> = (1..=3).map(attempt).collect();
    let mut crowd = Box::pin(join_all(attempts.iter().map(|a| gate.admit(VOUCHER, a))));
    assert!(poll!(&mut crowd).is_pending());
    inner.replies.add_permits(2);
    let replies = crowd.await;
    assert_eq!(inner.calls(), [vec![1], vec![2, 3]]);
    inner.set(Mood::Grants);
    inner.replies.add_permits(1);
    assert_eq!(
        granted(gate.admit(VOUCHER, &attempt(4)).await),
        4,
        "it goes on"
    );
    replies
}

#[tokio::test]
async fn everybody_in_a_call_is_told_of_its_fault() {
    for (mood, effect, retryable, chain) in [
        (
            Mood::Unknown,
            Effect::Unknown,
            true,
            "redis.admit failed: connection reset",
        ),
        (
            Mood::Unavailable,
            Effect::None,
            true,
            "redis.admit failed: refused",
        ),
        (
            Mood::Broken,
            Effect::None,
            false,
            "redis.admit failed: nonsense",
        ),
    ] {
        for reply in in_mood(mood).await {
            let fault = reply.unwrap_err();
            assert_eq!(
                (fault.effect(), fault.is_retryable()),
                (effect, retryable),
                "{mood:?}"
            );
            assert_eq!(fault.chain(), chain);
            assert_eq!(fault.port(), "redis.admit");
        }
    }
}

#[tokio::test]
async fn everybody_in_a_call_is_told_that_the_gate_is_not_loaded() {
    for reply in in_mood(Mood::NotLoaded).await {
        assert_eq!(reply.unwrap(), Admitted::NotLoaded(NotLoaded::Loading));
    }
}

#[tokio::test]
async fn a_reply_that_leaves_somebody_out_is_nobodys() {
    let replies = in_mood(Mood::ForgetsOne).await;
    assert_eq!(
        replies[0]
            .as_ref()
            .map(|reply| matches!(reply, Admitted::Decided { .. }))
            .ok(),
        Some(true),
        "alone, the gate's word is passed on as it is"
    );
    for reply in &replies[1..] {
        let fault = reply.as_ref().unwrap_err();
        assert!(!fault.is_retryable(), "{fault:?}");
    }
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings {
        queue_max: 2,
        ..BatchSettings::default()
    });
    let attempts: Vec<_> = (1..=4).map(attempt).collect();
    let mut crowd = Box::pin(join_all(attempts.iter().map(|a| gate.admit(VOUCHER, a))));
    assert!(poll!(&mut crowd).is_pending());
    inner.replies.add_permits(2);
    let mut replies = crowd.await;
    let fault = replies.pop().unwrap().unwrap_err();
    assert_eq!((fault.effect(), fault.is_retryable()), (Effect::None, true));
    assert_eq!(
        replies.into_iter().map(granted).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(gate.tally().turned_away, 1);
}

#[tokio::test]
async fn who_waits_too_long_is_turned_away_unsent() {
    let inner = Inner::new();
    let (gate, clock) = inner.batched(BatchSettings::default());
    let attempts: Vec<_> = (1..=4).map(attempt).collect();
    let [one, two, three, four] = attempts.as_slice() else {
        unreachable!()
    };
    let mut driving = gate.admit(VOUCHER, one);
    let mut stale = gate.admit(VOUCHER, two);
    assert!(poll!(&mut driving).is_pending() && poll!(&mut stale).is_pending());
    clock.advance(Duration::from_millis(1_001));
    // A newcomer finds the stale one out, even while the call hangs.
    let mut fresh = gate.admit(VOUCHER, three);
    assert!(poll!(&mut fresh).is_pending());
    let fault = stale.await.unwrap_err();
    assert_eq!((fault.effect(), fault.is_retryable()), (Effect::None, true));
    // So does the end of the call.
    clock.advance(Duration::from_millis(1_001));
    inner.replies.add_permits(1);
    assert_eq!(granted(driving.await), 1);
    assert_eq!(fresh.await.unwrap_err().effect(), Effect::None);
    inner.replies.add_permits(1);
    assert_eq!(granted(gate.admit(VOUCHER, four).await), 4);
    assert_eq!(
        inner.calls(),
        [[1], [4]],
        "what was turned away was not sent"
    );
    assert_eq!(gate.tally().turned_away, 2);
}

//! Callers who go away, at every point, and calls that panic.

use futures::future::join_all;
use futures::poll;
use seckill_application::Effect;
use seckill_application::ports::PurchaseGate;
use seckill_decorators::BatchSettings;
use seckill_domain::VoucherId;

use crate::inner::{Inner, Mood, attempt, granted};

const VOUCHER: VoucherId = VoucherId::new(7);

#[tokio::test]
async fn who_waits_goes_on_when_the_caller_before_goes_away() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    let [one, two, three] = [attempt(1), attempt(2), attempt(3)];
    let mut alone = gate.admit(VOUCHER, &one);
    let mut second = gate.admit(VOUCHER, &two);
    let mut third = gate.admit(VOUCHER, &three);
    assert!(poll!(&mut alone).is_pending());
    assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
    drop(alone);
    inner.replies.add_permits(1);
    let replies = join_all([second, third]).await;
    assert_eq!(replies.into_iter().map(granted).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(inner.calls(), [vec![1], vec![2, 3]]);
}

/// Three in one call, begun; the first of them drives it.
macro_rules! three_in_a_call {
    ($inner:ident, $gate:ident, $leader:ident, $second:ident, $third:ident) => {
        let $inner = Inner::new();
        let ($gate, _) = $inner.batched(BatchSettings::default());
        let [one, two, three, four] = [attempt(1), attempt(2), attempt(3), attempt(4)];
        let mut alone = $gate.admit(VOUCHER, &one);
        let mut $leader = $gate.admit(VOUCHER, &two);
        let mut $second = $gate.admit(VOUCHER, &three);
        let mut $third = $gate.admit(VOUCHER, &four);
        assert!(poll!(&mut alone).is_pending() && poll!(&mut $leader).is_pending());
        assert!(poll!(&mut $second).is_pending() && poll!(&mut $third).is_pending());
        $inner.replies.add_permits(1);
        assert_eq!(granted(alone.await), 1);
        assert_eq!($inner.calls(), [vec![1], vec![2, 3, 4]], "sent at once");
    };
}

#[tokio::test]
async fn the_call_of_a_driver_who_goes_away_is_driven_on() {
    for begun_to_drive in [false, true] {
        three_in_a_call!(inner, gate, leader, second, third);
        if begun_to_drive {
            assert!(poll!(&mut leader).is_pending());
        }
        drop(leader);
        inner.replies.add_permits(1);
        let replies = join_all([second, third]).await;
        assert_eq!(replies.into_iter().map(granted).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(inner.calls().len(), 2, "nothing was asked twice");
        assert_eq!(inner.ended(), 2);
    }
}

#[tokio::test]
async fn members_who_go_away_do_not_disturb_the_call() {
    three_in_a_call!(inner, gate, leader, second, third);
    drop(second);
    assert!(poll!(&mut leader).is_pending());
    drop(leader);
    inner.replies.add_permits(1);
    assert_eq!(granted(third.await), 4);
    assert_eq!(inner.ended(), 2);
}

#[tokio::test]
async fn a_call_that_nobody_wants_any_more_makes_room_for_the_next() {
    three_in_a_call!(inner, gate, leader, second, third);
    let five = attempt(5);
    let mut waiting = gate.admit(VOUCHER, &five);
    assert!(poll!(&mut waiting).is_pending());
    drop((leader, second, third));
    inner.replies.add_permits(1);
    assert_eq!(granted(waiting.await), 5);
    assert_eq!(inner.calls(), [vec![1], vec![2, 3, 4], vec![5]]);
}

#[tokio::test]
async fn who_goes_away_before_he_is_sent_is_not_sent() {
    let inner = Inner::new();
    let (gate, _) = inner.batched(BatchSettings::default());
    let [one, two, three] = [attempt(1), attempt(2), attempt(3)];
    let mut alone = gate.admit(VOUCHER, &one);
    let mut gone = gate.admit(VOUCHER, &two);
    let mut third = gate.admit(VOUCHER, &three);
    assert!(poll!(&mut alone).is_pending());
    assert!(poll!(&mut gone).is_pending() && poll!(&mut third).is_pending());
    drop(gone);
    inner.replies.add_permits(2);
    assert_eq!(granted(alone.await), 1);
    assert_eq!(granted(third.await), 3);
    assert_eq!(inner.calls(), [[1], [3]]);
}

#[tokio::test]
async fn an_answer_that_nobody_fetches_does_no_harm() {
    three_in_a_call!(inner, gate, leader, second, third);
    inner.replies.add_permits(1);
    assert_eq!(granted(leader.await), 2);
    drop((second, third));
    inner.replies.add_permits(1);
    assert_eq!(granted(gate.admit(VOUCHER, &attempt(9)).await), 9);
}

#[tokio::test]
async fn a_call_that_panics_is_a_fault_to_everybody_in_it() {
    three_in_a_call!(inner, gate, leader, second, third);
    inner.set(Mood::Panics);
    inner.replies.add_permits(1);
    for reply in join_all([leader, second, third]).await {
        assert_eq!(reply.unwrap_err().effect(), Effect::Unknown);
    }
    inner.set(Mood::Grants);
    inner.replies.add_permits(1);
    assert_eq!(granted(gate.admit(VOUCHER, &attempt(9)).await), 9);
}

#[tokio::test]
async fn a_caller_whose_own_call_panics_strands_nobody() {
    let inner = Inner::new();
    let gate = std::sync::Arc::new(inner.batched(BatchSettings::default()).0);
    inner.set(Mood::Panics);
    let mut tasks = tokio::task::JoinSet::new();
    let first = gate.clone();
    tasks.spawn(async move { first.admit(VOUCHER, &attempt(1)).await });
    while inner.calls().is_empty() {
        tokio::task::yield_now().await;
    }
    let two = attempt(2);
    let mut second = gate.admit(VOUCHER, &two);
    assert!(poll!(&mut second).is_pending());
    inner.replies.add_permits(1);
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    inner.set(Mood::Grants);
    inner.replies.add_permits(1);
    assert_eq!(granted(second.await), 2);
}

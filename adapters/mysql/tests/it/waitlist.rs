//! The waitlist reaches the ledger.

use seckill_application::ports::Verdict;
use seckill_domain::{Decision, LeftReason, OrderId, OrderStatus, RejectReason, Stage, Ticket};

use crate::fixture::Fixture;

#[tokio::test]
async fn a_joined_order_waits_and_is_promoted_with_a_window_of_its_own() {
    let mut fixture = Fixture::new(10, 2).await;
    fixture.apply(vec![fixture.joined(1, 1, 2, 1)]).await;
    let order = fixture.order(1).await.unwrap();
    assert_eq!(order.stage, Stage::Waiting);
    assert_eq!(order.ticket, Some(Ticket::new(1)));
    assert_eq!(order.expires_at, None);
    assert_eq!(
        fixture.voucher().await.stock_units,
        10,
        "waiting takes nothing"
    );

    let verdicts = fixture.apply(vec![fixture.promoted(1, 1, 2)]).await;
    assert_eq!(verdicts, [Verdict::Confirmed]);
    let promoted = fixture.order(1).await.unwrap();
    assert_eq!(promoted.stage, Stage::PendingPayment);
    assert_eq!(promoted.created_at, order.created_at);
    assert!(promoted.expires_at.is_some());
    assert_eq!(fixture.held_by(1).await, 2);

    let end = promoted.expires_at;
    let verdicts = fixture.apply(vec![fixture.promoted(1, 1, 2)]).await;
    assert_eq!(verdicts, [Verdict::AlreadyThere]);
    let again = fixture.order(1).await.unwrap();
    assert_eq!(again.expires_at, end, "nothing moves the end of the window");
    assert_eq!(fixture.voucher().await.stock_units, 8);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_grant_of_a_waiting_order_is_its_promotion() {
    let mut fixture = Fixture::new(10, 1).await;
    fixture.apply(vec![fixture.joined(1, 1, 1, 1)]).await;
    let verdicts = fixture
        .apply(vec![fixture.granted(1, 1, 1), fixture.granted(2, 2, 1)])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed; 2]);
    let order = fixture.order(1).await.unwrap();
    assert_eq!(order.stage, Stage::PendingPayment);
    assert_eq!(order.ticket, Some(Ticket::new(1)), "it did wait");
    fixture.assert_sound().await;
}

#[tokio::test]
async fn every_reason_to_leave_has_its_stage() {
    let mut fixture = Fixture::new(10, 1).await;
    let reasons = [
        (LeftReason::Withdrawn, Stage::Withdrawn),
        (LeftReason::ClosedOut, Stage::ClosedOut),
        (
            LeftReason::NotEnoughUnits,
            Stage::Rejected {
                reason: RejectReason::NotEnoughUnits,
            },
        ),
        (
            LeftReason::LimitReached,
            Stage::Rejected {
                reason: RejectReason::LimitReached,
            },
        ),
    ];
    let joins = (1..=4).map(|n| fixture.joined(n, n, 1, n)).collect();
    fixture.apply(joins).await;
    for again in [Verdict::Confirmed, Verdict::AlreadyThere] {
        let leaves = (1..).zip(&reasons);
        let leaves = leaves.map(|(n, (reason, _))| fixture.left(n, n, *reason));
        let verdicts = fixture.apply(leaves.collect()).await;
        assert_eq!(verdicts, [again; 4]);
    }
    for (n, (_, stage)) in (1..).zip(&reasons) {
        assert_eq!(fixture.order(n).await.unwrap().stage, *stage);
    }
    assert_eq!(fixture.voucher().await.stock_units, 10);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn what_follows_a_lost_join_still_leaves_a_readable_order() {
    let mut fixture = Fixture::new(10, 1).await;
    let verdicts = fixture
        .apply(vec![
            fixture.left(1, 1, LeftReason::Withdrawn),
            fixture.promoted(2, 2, 1),
            Decision::Lost(fixture.claim(3, 3, 1)),
        ])
        .await;
    assert_eq!(verdicts, [Verdict::Confirmed; 3]);
    assert_eq!(fixture.order(1).await.unwrap().stage, Stage::Withdrawn);
    assert_eq!(fixture.order(2).await.unwrap().stage, Stage::PendingPayment);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_promotion_that_the_ledger_refuses_ends_the_wait_with_the_reason() {
    let mut fixture = Fixture::new(1, 1).await;
    fixture
        .apply(vec![
            fixture.joined(1, 1, 1, 1),
            fixture.joined(2, 2, 1, 2),
            fixture.granted(3, 3, 1),
        ])
        .await;
    let verdicts = fixture.apply(vec![fixture.promoted(1, 1, 1)]).await;
    assert_eq!(verdicts, [Verdict::Rejected(RejectReason::NoStock)]);
    let order = fixture.order(1).await.unwrap();
    let reason = RejectReason::NoStock;
    assert_eq!(order.stage, Stage::Rejected { reason });
    let again = fixture.apply(vec![fixture.granted(1, 1, 1)]).await;
    assert_eq!(
        again,
        [Verdict::Rejected(reason)],
        "the gate is still wrong"
    );
    fixture.assert_sound().await;
}

#[tokio::test]
async fn places_are_counted_by_ticket() {
    let mut fixture = Fixture::new(10, 1).await;
    // Ids do not follow arrival; tickets do.
    fixture
        .apply(vec![
            fixture.joined(30, 1, 1, 1),
            fixture.joined(10, 2, 1, 2),
            fixture.joined(20, 3, 1, 3),
        ])
        .await;
    let place = async |fixture: &Fixture, order| {
        let ledger = &fixture.ports.ledger;
        ledger.waiting_position(OrderId::new(order)).await.unwrap()
    };
    assert_eq!(place(&fixture, 30).await, Some(1));
    assert_eq!(place(&fixture, 20).await, Some(3));
    fixture.apply(vec![fixture.promoted(30, 1, 1)]).await;
    assert_eq!(place(&fixture, 30).await, None);
    assert_eq!(place(&fixture, 10).await, Some(1));
    assert_eq!(place(&fixture, 20).await, Some(2));
    assert_eq!(
        fixture.order(30).await.unwrap().status(),
        OrderStatus::PendingPayment
    );
}

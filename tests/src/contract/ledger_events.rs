//! `AdmissionLedger::apply`: everything that happens to an order leaves an event.

use seckill_application::ports::{AdjustmentReply, NewAdjustment, Verdict};
use seckill_domain::{Claim, Decision, EventKind, LeftReason, NewEvent, OrderStatus, RejectReason};

use super::desk::{Desk, claim, joining};
use super::happenings::{about, claimed, kinds, of_order, unpublished};
use super::{LedgerHarness, promises};

promises! { ledger_events over dyn LedgerHarness:
    a_grant_leaves_an_event_with_its_order,
    the_waitlist_leaves_an_event_for_every_step,
    a_grant_to_one_who_waits_is_his_promotion,
    what_ends_without_units_says_so,
    what_the_ledger_refuses_says_so,
    what_was_there_before_or_is_parked_leaves_nothing,
    a_withdrawal_is_an_event_of_the_voucher,
}

async fn a_grant_leaves_an_event_with_its_order(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claims = [claim(&voucher, 1, 1), claim(&voucher, 2, 1)];
    desk.apply(claims.iter().cloned().map(Decision::Granted).collect())
        .await;
    let pending = EventKind::Order(OrderStatus::PendingPayment);
    for claim in &claims {
        let events = of_order(&desk, claim).await;
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].what, about(claim, pending));
    }
    assert_eq!(unpublished(&desk).await, 2);
}

async fn the_waitlist_leaves_an_event_for_every_step(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let waiting = EventKind::Order(OrderStatus::Waiting);
    let joined = desk.joined(&voucher, 1, 7).await;
    assert_eq!(kinds(&desk, &joined).await, [waiting]);
    desk.apply_one(Decision::Promoted(joined.clone())).await;
    assert_eq!(kinds(&desk, &joined).await, [waiting, EventKind::Promoted]);
    // Both in one batch.
    let quick = claim(&voucher, 2, 1);
    let decisions = vec![joining(&quick, 8), Decision::Promoted(quick.clone())];
    desk.apply(decisions).await;
    assert_eq!(kinds(&desk, &quick).await, [waiting, EventKind::Promoted]);
}

/// Or a buyer whose promotion was appended again is never told.
async fn a_grant_to_one_who_waits_is_his_promotion(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let joined = desk.joined(&voucher, 1, 7).await;
    desk.apply_one(Decision::Granted(joined.clone())).await;
    let expected = [EventKind::Order(OrderStatus::Waiting), EventKind::Promoted];
    assert_eq!(kinds(&desk, &joined).await, expected);
    let unseen = claim(&voucher, 2, 1);
    desk.apply_one(Decision::Promoted(unseen.clone())).await;
    assert_eq!(kinds(&desk, &unseen).await, [EventKind::Promoted]);
}

async fn what_ends_without_units_says_so(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let reasons = [
        (LeftReason::Withdrawn, OrderStatus::Withdrawn),
        (LeftReason::ClosedOut, OrderStatus::ClosedOut),
        (LeftReason::NotEnoughUnits, OrderStatus::Rejected),
        (LeftReason::LimitReached, OrderStatus::Rejected),
    ];
    for (turn, (reason, status)) in (1..).zip(reasons) {
        let joined = desk.joined(&voucher, turn, turn).await;
        let claim = joined.clone();
        desk.apply_one(Decision::Left { claim, reason }).await;
        let expected = [OrderStatus::Waiting, status].map(EventKind::Order);
        assert_eq!(kinds(&desk, &joined).await, expected);
    }
    let lost = claim(&voucher, 9, 1);
    desk.apply_one(Decision::Lost(lost.clone())).await;
    let rejected = EventKind::Order(OrderStatus::Rejected);
    assert_eq!(kinds(&desk, &lost).await, [rejected]);
}

/// A batch that is refused as a whole and done again one by one leaves each event once.
async fn what_the_ledger_refuses_says_so(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    let waits = desk.joined(&voucher, 3, 3).await;
    let [first, surplus] = [claim(&voucher, 1, 1), claim(&voucher, 2, 1)];
    let decisions = vec![
        Decision::Granted(first.clone()),
        Decision::Granted(surplus.clone()),
        Decision::Promoted(waits.clone()),
    ];
    let no_stock = Verdict::Rejected(RejectReason::NoStock);
    let expected = [Verdict::Confirmed, no_stock, no_stock];
    assert_eq!(desk.apply(decisions).await, expected);
    let [pending, rejected, waiting] = [
        OrderStatus::PendingPayment,
        OrderStatus::Rejected,
        OrderStatus::Waiting,
    ]
    .map(EventKind::Order);
    assert_eq!(kinds(&desk, &first).await, [pending]);
    assert_eq!(kinds(&desk, &surplus).await, [rejected]);
    assert_eq!(kinds(&desk, &waits).await, [waiting, rejected]);
}

async fn what_was_there_before_or_is_parked_leaves_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 5).await;
    let granted = desk.granted(&voucher, 1, 1).await;
    let impostor = Claim {
        quantity: 2,
        ..granted.clone()
    };
    let decisions = vec![
        Decision::Granted(granted.clone()),
        Decision::Promoted(granted.clone()),
        joining(&granted, 9),
        Decision::Granted(impostor),
    ];
    let verdicts = desk.apply(decisions).await;
    assert_eq!(verdicts[..3], [Verdict::AlreadyThere; 3]);
    assert!(matches!(verdicts[3], Verdict::Parked(_)));
    assert_eq!(unpublished(&desk).await, 1);
}

async fn a_withdrawal_is_an_event_of_the_voucher(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let mut unit = desk.begin().await;
    let wish = NewAdjustment {
        voucher: voucher.id,
        delta: -2,
        reason: "spoiled".to_owned(),
        key: None,
    };
    let recorded = unit.record_adjustment(&wish).await.unwrap();
    let AdjustmentReply::Recorded(recorded) = recorded else {
        panic!("{recorded:?}");
    };
    unit.commit().await.unwrap();
    let withdrawn = Decision::Withdrawn {
        voucher: voucher.id,
        units: 2,
        adjustment: recorded.id,
    };
    desk.apply(vec![withdrawn.clone(), withdrawn]).await;
    let events = claimed(&desk.ports, "a", 10).await;
    let events: Vec<NewEvent> = events.iter().map(|event| event.what).collect();
    let expected = NewEvent::of_voucher(voucher.id, EventKind::StockAdjusted);
    assert_eq!(events, [expected]);
}

//! `AdmissionLedger::apply`: the waitlist reaches the ledger the way grants do.

use seckill_application::ports::Verdict;
use seckill_domain::{Decision, LeftReason, OrderStatus, RejectReason, Stage, Ticket};

use super::desk::{Desk, PAYMENT_WINDOW, claim, joining, keyed};
use super::{LedgerHarness, promises};

promises! { ledger_waitlist over dyn LedgerHarness:
    a_place_is_an_order_that_waits,
    a_place_takes_no_units,
    a_promotion_gives_the_order_units_and_a_window_of_its_own,
    a_promotion_keeps_id_key_and_turn,
    a_grant_of_an_order_that_waits_is_its_promotion,
    joining_and_promotion_in_one_batch,
    a_place_that_was_given_up_says_why,
    joining_leaving_and_joining_again_in_one_batch,
    a_buyer_has_one_place,
    a_second_place_in_the_same_batch_is_rejected,
    each_kind_is_applied_once,
    a_place_that_is_gone_does_not_come_back,
    a_promotion_without_stock_is_rejected,
    a_promotion_beyond_the_limit_is_rejected,
    a_promoted_buyer_who_gives_his_units_back_is_not_waiting_again,
    a_promotion_of_a_place_that_was_given_up_gives_nothing,
    a_promotion_whose_joining_never_came_is_a_grant,
    a_leaving_whose_joining_never_came_is_an_order_that_ended,
}

const CONFIRMED: Verdict = Verdict::Confirmed;
const THERE: Verdict = Verdict::AlreadyThere;

fn left(claim: &seckill_domain::Claim, reason: LeftReason) -> Decision {
    Decision::Left {
        claim: claim.clone(),
        reason,
    }
}

async fn a_place_is_an_order_that_waits(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 3).await;
    let claim = keyed(&voucher, 42, 2, "k");
    let ticket = 9_007_199_254_740_993;
    let batch = desk
        .batch(desk.partition_of(voucher.id), vec![joining(&claim, ticket)])
        .await;
    assert_eq!(desk.commit(&batch).await, [CONFIRMED]);
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::Waiting);
    assert_eq!(order.ticket, Some(Ticket::new(ticket)));
    assert_eq!(order.expires_at, None);
    assert_eq!(
        (order.buyer, order.quantity, &order.key),
        (claim.buyer, 2, &claim.key)
    );
    assert_eq!(order.created_at, batch.up_to.written_at());
}

async fn a_place_takes_no_units(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    desk.joined(&voucher, 1, 1).await;
    desk.joined(&voucher, 2, 2).await;
    assert_eq!(desk.stock(&voucher).await, 1);
    let direct = desk.granted(&voucher, 3, 1).await;
    assert_eq!(desk.status(&direct).await, OrderStatus::PendingPayment);
}

/// Stands for: promoted by a line in a log, and off the list (hole 13, 2.28).
async fn a_promotion_gives_the_order_units_and_a_window_of_its_own(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    let joined = desk.order(claim.order).await;
    harness.elapse(std::time::Duration::from_millis(50)).await;
    let before = desk.now().await;
    assert_eq!(
        desk.apply_one(Decision::Promoted(claim.clone())).await,
        CONFIRMED
    );
    let after = desk.now().await;
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::PendingPayment);
    let expires_at = order.expires_at.expect("a payment window");
    let window = before.plus(PAYMENT_WINDOW)..=after.plus(PAYMENT_WINDOW);
    assert!(window.contains(&expires_at), "{expires_at:?} in {window:?}");
    assert_eq!(order.created_at, joined.created_at);
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn a_promotion_keeps_id_key_and_turn(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = keyed(&voucher, 1, 1, "k");
    let promoted = Decision::Promoted(claim.clone());
    assert_eq!(
        desk.apply(vec![joining(&claim, 7), promoted]).await,
        [CONFIRMED; 2]
    );
    let order = desk.order(claim.order).await;
    assert_eq!(order.ticket, Some(Ticket::new(7)));
    assert_eq!(order.key, claim.key);
}

async fn a_grant_of_an_order_that_waits_is_its_promotion(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    assert_eq!(
        desk.apply_one(Decision::Granted(claim.clone())).await,
        CONFIRMED
    );
    assert_eq!(desk.status(&claim).await, OrderStatus::PendingPayment);
    assert_eq!(desk.stock(&voucher).await, 4);
    assert_eq!(
        desk.apply_one(Decision::Promoted(claim.clone())).await,
        THERE
    );
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn joining_and_promotion_in_one_batch(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(2, 1).await;
    let claims = [1, 2, 3].map(|buyer| claim(&voucher, buyer, 1));
    let mut decisions: Vec<Decision> = (1..)
        .zip(&claims)
        .map(|(turn, claim)| joining(claim, turn))
        .collect();
    decisions.extend(claims[..2].iter().cloned().map(Decision::Promoted));
    assert_eq!(desk.apply(decisions).await, [CONFIRMED; 5]);
    assert_eq!(desk.status(&claims[1]).await, OrderStatus::PendingPayment);
    assert_eq!(desk.status(&claims[2]).await, OrderStatus::Waiting);
    assert_eq!(desk.stock(&voucher).await, 0);
}

async fn a_place_that_was_given_up_says_why(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let rejected = |reason| Stage::Rejected { reason };
    let reasons = [
        (LeftReason::Withdrawn, Stage::Withdrawn),
        (LeftReason::ClosedOut, Stage::ClosedOut),
        (
            LeftReason::NotEnoughUnits,
            rejected(RejectReason::NotEnoughUnits),
        ),
        (
            LeftReason::LimitReached,
            rejected(RejectReason::LimitReached),
        ),
    ];
    for (buyer, (reason, stage)) in (1..).zip(reasons) {
        let claim = desk.joined(&voucher, buyer, buyer).await;
        assert_eq!(desk.apply_one(left(&claim, reason)).await, CONFIRMED);
        assert_eq!(desk.order(claim.order).await.stage, stage);
        assert_eq!(desk.apply_one(left(&claim, reason)).await, THERE);
    }
    assert_eq!(desk.stock(&voucher).await, 5);
}

async fn joining_leaving_and_joining_again_in_one_batch(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let [first, second] = [1, 1].map(|buyer| claim(&voucher, buyer, 1));
    let decisions = vec![
        joining(&first, 1),
        left(&first, LeftReason::Withdrawn),
        joining(&second, 3),
        Decision::Promoted(second.clone()),
    ];
    assert_eq!(desk.apply(decisions).await, [CONFIRMED; 4]);
    assert_eq!(desk.status(&first).await, OrderStatus::Withdrawn);
    assert_eq!(desk.status(&second).await, OrderStatus::PendingPayment);
}

/// A failover lost his place at the gate, and he joined again before anybody noticed.
async fn a_buyer_has_one_place(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 3).await;
    let first = desk.joined(&voucher, 1, 1).await;
    let second = claim(&voucher, 1, 2);
    let lost = RejectReason::Lost;
    assert_eq!(
        desk.apply_one(joining(&second, 2)).await,
        Verdict::Rejected(lost)
    );
    assert_eq!(desk.status(&first).await, OrderStatus::Waiting);
    let order = desk.order(second.order).await;
    assert_eq!(order.stage, Stage::Rejected { reason: lost });
    desk.apply_one(left(&first, LeftReason::Withdrawn)).await;
    let third = claim(&voucher, 1, 1);
    assert_eq!(desk.apply_one(joining(&third, 3)).await, CONFIRMED);
    assert_eq!(desk.status(&third).await, OrderStatus::Waiting);
}

async fn a_second_place_in_the_same_batch_is_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 3).await;
    let (first, second) = (claim(&voucher, 1, 1), claim(&voucher, 1, 1));
    let decisions = vec![joining(&first, 1), joining(&second, 2)];
    let batch = desk.batch(desk.partition_of(voucher.id), decisions).await;
    let rejected = Verdict::Rejected(RejectReason::Lost);
    assert_eq!(desk.commit(&batch).await, [CONFIRMED, rejected]);
    assert_eq!(desk.status(&first).await, OrderStatus::Waiting);
    assert_eq!(desk.status(&second).await, OrderStatus::Rejected);
}

async fn each_kind_is_applied_once(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    assert_eq!(desk.apply_one(joining(&claim, 1)).await, THERE);
    desk.apply_one(Decision::Promoted(claim.clone())).await;
    let before = desk.order(claim.order).await;
    let again = vec![
        joining(&claim, 1),
        Decision::Promoted(claim.clone()),
        left(&claim, LeftReason::Withdrawn),
    ];
    assert_eq!(desk.apply(again).await, [THERE; 3]);
    assert_eq!(desk.order(claim.order).await, before);
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn a_place_that_is_gone_does_not_come_back(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    desk.apply_one(left(&claim, LeftReason::ClosedOut)).await;
    assert_eq!(desk.apply_one(joining(&claim, 1)).await, THERE);
    assert_eq!(
        desk.apply_one(left(&claim, LeftReason::Withdrawn)).await,
        THERE
    );
    assert_eq!(desk.status(&claim).await, OrderStatus::ClosedOut);
    assert_eq!(
        desk.ports
            .ledger
            .waiting_position(claim.order)
            .await
            .unwrap(),
        None
    );
}

async fn a_promotion_without_stock_is_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    desk.granted(&voucher, 1, 1).await;
    let claim = desk.joined(&voucher, 2, 1).await;
    let reason = RejectReason::NoStock;
    let verdict = desk.apply_one(Decision::Promoted(claim.clone())).await;
    assert_eq!(verdict, Verdict::Rejected(reason));
    assert_eq!(
        desk.order(claim.order).await.stage,
        Stage::Rejected { reason }
    );
}

async fn a_promotion_beyond_the_limit_is_rejected(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 2).await;
    let claim = claim(&voucher, 1, 2);
    desk.apply_one(joining(&claim, 1)).await;
    desk.granted(&voucher, 1, 1).await;
    let reason = RejectReason::LimitReached;
    let verdict = desk.apply_one(Decision::Promoted(claim.clone())).await;
    assert_eq!(verdict, Verdict::Rejected(reason));
    assert_eq!(
        desk.order(claim.order).await.stage,
        Stage::Rejected { reason }
    );
    assert_eq!(desk.stock(&voucher).await, 8);
}

async fn a_promoted_buyer_who_gives_his_units_back_is_not_waiting_again(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(1, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    desk.apply_one(Decision::Promoted(claim.clone())).await;
    desk.cancel(&claim).await;
    assert_eq!(
        desk.apply_one(Decision::Promoted(claim.clone())).await,
        THERE
    );
    assert_eq!(desk.apply_one(joining(&claim, 1)).await, THERE);
    assert_eq!(desk.status(&claim).await, OrderStatus::Cancelled);
    assert_eq!(desk.stock(&voucher).await, 1);
}

/// The gate gave units to an order that had ended without: it is wrong, and has to be told.
async fn a_promotion_of_a_place_that_was_given_up_gives_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = desk.joined(&voucher, 1, 1).await;
    desk.apply_one(left(&claim, LeftReason::Withdrawn)).await;
    let verdict = desk.apply_one(Decision::Promoted(claim.clone())).await;
    assert!(matches!(verdict, Verdict::Rejected(_)), "{verdict:?}");
    assert_eq!(desk.status(&claim).await, OrderStatus::Withdrawn);
    assert_eq!(desk.stock(&voucher).await, 5);
}

async fn a_promotion_whose_joining_never_came_is_a_grant(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 2).await;
    let claim = keyed(&voucher, 1, 2, "k");
    assert_eq!(
        desk.apply_one(Decision::Promoted(claim.clone())).await,
        CONFIRMED
    );
    let order = desk.order(claim.order).await;
    assert_eq!((order.stage, order.quantity), (Stage::PendingPayment, 2));
    assert!(order.expires_at.is_some());
    assert_eq!(desk.stock(&voucher).await, 3);
}

async fn a_leaving_whose_joining_never_came_is_an_order_that_ended(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let claim = claim(&voucher, 1, 1);
    let verdict = desk.apply_one(left(&claim, LeftReason::ClosedOut)).await;
    assert_eq!(verdict, CONFIRMED);
    assert_eq!(desk.status(&claim).await, OrderStatus::ClosedOut);
    assert_eq!(desk.apply_one(joining(&claim, 1)).await, THERE);
    assert_eq!(desk.status(&claim).await, OrderStatus::ClosedOut);
}

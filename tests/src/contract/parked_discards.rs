//! `ParkedMessages::discard`: what could not be applied is given up.

use futures::join;
use seckill_application::ports::{AdjustmentState, ParkedReply, ParkedState};
use seckill_domain::{
    Claim, Decision, EventKind, GateChange, GateUpdate, LeftReason, OrderStatus, RejectReason,
    SaleStatus, Stage, Voucher,
};

use super::desk::{Desk, claim, joining, terms};
use super::happenings::kinds;
use super::parking::{
    SETTLED, discard, impostor, list, missing_before, newest, one_parked, parked, replay, state_of,
    unknown, updates, withdrawal,
};
use super::{LedgerHarness, promises};

promises! { parked_discards over dyn LedgerHarness:
    a_discarded_grant_gives_its_units_back_and_its_order_says_why,
    a_discarded_promotion_ends_the_wait,
    a_discarded_place_is_dropped_at_the_gate,
    a_discarded_place_of_an_order_that_lives_is_left,
    what_took_nothing_tells_the_gate_nothing,
    a_discarded_impostor_leaves_the_other_order_alone,
    a_discarded_claim_to_an_order_that_lives_takes_nothing_from_it,
    a_discarded_withdrawal_is_refused_and_adds_its_units_again,
    what_cannot_be_an_order_is_discarded_without_one,
    discarding_may_be_repeated,
    what_was_settled_one_way_is_not_settled_the_other,
    replaying_and_discarding_at_once_is_one_of_them,
    what_a_missing_voucher_was_asked_for_is_released_once_it_is_there,
}

fn released(claim: &Claim, quantity: u32) -> GateChange {
    GateChange::Release {
        order: claim.order,
        buyer: claim.buyer,
        quantity,
    }
}

async fn a_discarded_grant_gives_its_units_back_and_its_order_says_why(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    assert_eq!(discard(&desk, &message).await, SETTLED);
    let reason = RejectReason::Discarded;
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::Rejected { reason });
    assert_eq!((order.buyer, order.quantity), (claim.buyer, claim.quantity));
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (5, 0));
    let rejected = EventKind::Order(OrderStatus::Rejected);
    assert_eq!(kinds(&desk, &claim).await, [rejected]);
    let changes = vec![released(&claim, message.units)];
    let version = voucher.version.next();
    let expected = GateUpdate {
        voucher: voucher.id,
        version,
        changes,
    };
    assert_eq!(updates(&desk, &voucher).await, [expected]);
    assert_eq!(desk.stored(voucher.id).await.version, version);
    desk.granted(&voucher, 1, 2).await;
}

async fn a_discarded_promotion_ends_the_wait(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let joined = desk.joined(&voucher, 1, 7).await;
    let other = Claim {
        quantity: 3,
        ..joined.clone()
    };
    let message = parked(&desk, Decision::Promoted(other)).await;
    assert_eq!(message.units, 3);
    assert_eq!(discard(&desk, &message).await, SETTLED);
    let reason = RejectReason::Discarded;
    let order = desk.order(joined.order).await;
    assert_eq!(order.stage, Stage::Rejected { reason });
    assert_eq!(order.quantity, 1);
    assert_eq!(desk.stock(&voucher).await, 9);
    let changes = updates(&desk, &voucher).await.remove(0).changes;
    assert_eq!(changes, [released(&joined, 3)]);
}

/// What the order holds by now is not touched: a promotion may be parked as well.
async fn a_discarded_place_is_dropped_at_the_gate(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let draft = desk.draft(5, terms(2)).await;
    let claim = claim(&draft, 1, 2);
    let message = parked(&desk, joining(&claim, 7)).await;
    let published = SaleStatus::Published;
    let voucher = desk.set_status(draft.id, published, false).await;
    let before = updates(&desk, &voucher).await.len();
    assert_eq!(discard(&desk, &message).await, SETTLED);
    let reason = RejectReason::Discarded;
    assert_eq!(
        desk.order(claim.order).await.stage,
        Stage::Rejected { reason }
    );
    let dropped = GateChange::DropPlace {
        order: claim.order,
        buyer: claim.buyer,
    };
    let updates = updates(&desk, &voucher).await.split_off(before);
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].changes, [dropped]);
    let tally = desk.tally(voucher.id).await;
    let units = (tally.stock, tally.parked, tally.units_returned_after);
    assert_eq!(units, (5, 0, 0), "a place is no unit");
}

async fn a_discarded_place_of_an_order_that_lives_is_left(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let live = desk.granted(&voucher, 1, 1).await;
    let other = Claim {
        quantity: 3,
        ..live.clone()
    };
    let message = parked(&desk, joining(&other, 7)).await;
    assert_eq!(discard(&desk, &message).await, SETTLED);
    assert!(desk.status(&live).await.is_live());
    assert_eq!(updates(&desk, &voucher).await, []);
}

async fn what_took_nothing_tells_the_gate_nothing(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let nothing = |buyer| claim(&voucher, buyer, 0);
    let left = Decision::Left {
        claim: nothing(1),
        reason: LeftReason::Withdrawn,
    };
    for decision in [left, Decision::Lost(nothing(2))] {
        let message = parked(&desk, decision).await;
        assert_eq!(discard(&desk, &message).await, SETTLED);
    }
    assert_eq!(updates(&desk, &voucher).await, []);
}

async fn a_discarded_impostor_leaves_the_other_order_alone(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let live = desk.granted(&voucher, 1, 1).await;
    let before = desk.order(live.order).await;
    let stranger = impostor(&live, 2);
    let message = parked(&desk, Decision::Granted(stranger.clone())).await;
    assert_eq!(discard(&desk, &message).await, SETTLED);
    assert_eq!(desk.order(live.order).await, before);
    assert_eq!(desk.stock(&voucher).await, 8);
    let changes = updates(&desk, &voucher).await.remove(0).changes;
    assert_eq!(changes, [released(&stranger, 2)]);
    assert_eq!(kinds(&desk, &live).await.len(), 1);
}

async fn a_discarded_claim_to_an_order_that_lives_takes_nothing_from_it(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(9, 5).await;
    let live = desk.granted(&voucher, 1, 1).await;
    let before = desk.order(live.order).await;
    let other = Claim {
        quantity: 3,
        ..live.clone()
    };
    let message = parked(&desk, Decision::Granted(other)).await;
    assert_eq!(discard(&desk, &message).await, SETTLED);
    assert_eq!(desk.order(live.order).await, before);
    assert_eq!(desk.stock(&voucher).await, 8);
    assert_eq!(updates(&desk, &voucher).await, [], "the gate holds it too");
}

async fn a_discarded_withdrawal_is_refused_and_adds_its_units_again(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, adjustment) = withdrawal(&desk).await;
    assert_eq!(discard(&desk, &message).await, SETTLED);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock, tally.parked), (5, 5, 0));
    assert_eq!(state_of(&desk, adjustment).await, AdjustmentState::Refused);
    let changes = updates(&desk, &voucher).await.remove(0).changes;
    let units = message.units;
    assert_eq!(changes, [GateChange::AddUnits { units }]);
}

async fn what_cannot_be_an_order_is_discarded_without_one(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let voucher = desk.voucher(5, 1).await;
    let stray = Claim {
        voucher: unknown(&voucher),
        ..claim(&voucher, 1, 1)
    };
    let nothing = claim(&voucher, 2, 0);
    for claim in [stray, nothing] {
        let message = parked(&desk, Decision::Granted(claim.clone())).await;
        assert_eq!(discard(&desk, &message).await, SETTLED);
        assert_eq!(desk.ports.ledger.order(claim.order).await.unwrap(), None);
        let stages = desk.ports.ledger.stages(&[claim.order]).await;
        assert_eq!(stages.unwrap(), [], "not had any more");
    }
    assert_eq!(desk.stock(&voucher).await, 5);
}

async fn discarding_may_be_repeated(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    for reason in ["first", "second"] {
        let discarded = desk.ports.parked.discard(message.id, reason).await;
        assert_eq!(discarded.unwrap(), SETTLED);
    }
    assert_eq!(desk.stock(&voucher).await, 5);
    assert_eq!(updates(&desk, &voucher).await.len(), 1);
    assert_eq!(kinds(&desk, &claim).await.len(), 1);
    let state = newest(&desk).await.state;
    assert_eq!(state, ParkedState::Discarded("first".to_owned()));
}

async fn what_was_settled_one_way_is_not_settled_the_other(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (_, replayed, _) = one_parked(&desk).await;
    assert_eq!(replay(&desk, &replayed).await, SETTLED);
    let (_, discarded, _) = one_parked(&desk).await;
    assert_eq!(discard(&desk, &discarded).await, SETTLED);
    let before = list(&desk, false).await;
    assert_eq!(discard(&desk, &replayed).await, ParkedReply::Conflict);
    assert_eq!(replay(&desk, &discarded).await, ParkedReply::Conflict);
    assert_eq!(list(&desk, false).await, before);
}

async fn replaying_and_discarding_at_once_is_one_of_them(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    for _ in 0..4 {
        let (voucher, message, claim) = one_parked(&desk).await;
        let replies = join!(discard(&desk, &message), replay(&desk, &message));
        let live = desk.status(&claim).await.is_live();
        let expected = if live {
            (ParkedReply::Conflict, SETTLED)
        } else {
            (SETTLED, ParkedReply::Conflict)
        };
        assert_eq!(replies, expected);
        let stock = if live { 3 } else { 5 };
        assert_eq!(desk.stock(&voucher).await, stock);
    }
}

async fn what_a_missing_voucher_was_asked_for_is_released_once_it_is_there(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let grant = |voucher: &Voucher| vec![Decision::Granted(claim(voucher, 1, 2))];
    let (voucher, mut messages) = missing_before(&desk, 5, grant).await;
    let message = messages.remove(0);
    let claim = message.claim.clone().expect("a grant");
    assert_eq!(discard(&desk, &message).await, SETTLED);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.stock, tally.parked), (5, 0));
    let changes = updates(&desk, &voucher).await.remove(0).changes;
    assert_eq!(changes, [released(&claim, 2)]);
    assert_eq!(tally.units_returned_after, 2, "until the gate knows");
    assert_eq!(desk.status(&claim).await, OrderStatus::Rejected);
}

//! `ParkedMessages::replay`: what could not be applied is applied after all.

use futures::future::join_all;
use seckill_application::ports::{AdjustmentState, ParkReason, ParkedReply, ParkedState, Verdict};
use seckill_domain::{
    BuyerId, Decision, EventKind, OrderStatus, RejectReason, Stage, Ticket, Voucher,
};

use super::desk::{Desk, PAYMENT_WINDOW, claim, joining, terms};
use super::happenings::kinds;
use super::parking::{
    SETTLED, UNFIT, discard, impostor, list, missing_before, newest, one_parked, parked,
    parked_unreadable, published_late, replay, state_of, updates, withdrawal,
};
use super::{LedgerHarness, promises};

promises! { parked_replays over dyn LedgerHarness:
    what_cannot_be_read_cannot_be_replayed,
    what_is_unfit_still_stays_parked,
    a_replayed_grant_is_an_order_like_any_other,
    a_replayed_place_waits_in_its_turn,
    a_replayed_promotion_gives_units_to_whoever_waits,
    a_replayed_withdrawal_shrinks_the_sale,
    replaying_may_be_repeated,
    the_limit_counts_for_a_replay,
    stock_counts_for_a_replay,
    a_replayed_message_holds_nothing_any_more,
    of_many_replays_one_takes_units,
    what_a_missing_voucher_was_asked_for_is_counted_once_it_is_there,
}

async fn what_cannot_be_read_cannot_be_replayed(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let message = parked_unreadable(&desk).await;
    let unfit = ParkedReply::StillUnfit(ParkReason::Unreadable);
    assert_eq!(replay(&desk, &message).await, unfit);
    assert_eq!(newest(&desk).await, message);
    assert_eq!(discard(&desk, &message).await, SETTLED);
}

async fn what_is_unfit_still_stays_parked(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let draft = desk.draft(5, terms(1)).await;
    let of_draft = parked(&desk, Decision::Granted(claim(&draft, 1, 1))).await;
    let voucher = desk.voucher(9, 5).await;
    let live = desk.granted(&voucher, 1, 1).await;
    let stranger = parked(&desk, Decision::Granted(impostor(&live, 2))).await;
    let before = (list(&desk, true).await, desk.tally(voucher.id).await);
    let unknown = ParkedReply::StillUnfit(ParkReason::UnknownVoucher);
    assert_eq!(replay(&desk, &of_draft).await, unknown);
    assert_eq!(replay(&desk, &stranger).await, UNFIT);
    let after = (list(&desk, true).await, desk.tally(voucher.id).await);
    assert_eq!(after, before);
    assert_eq!(updates(&desk, &voucher).await, []);
}

async fn a_replayed_grant_is_an_order_like_any_other(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    let before = desk.now().await;
    assert_eq!(replay(&desk, &message).await, SETTLED);
    let after = desk.now().await;
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::PendingPayment);
    assert_eq!((order.buyer, order.quantity), (claim.buyer, claim.quantity));
    assert_eq!(order.created_at, message.entry.written_at());
    let due = order.expires_at.expect("has to be paid");
    assert!((before.plus(PAYMENT_WINDOW)..=after.plus(PAYMENT_WINDOW)).contains(&due));
    let tally = desk.tally(voucher.id).await;
    let units = (tally.stock, tally.parked, tally.awaiting_payment);
    assert_eq!(units, (3, 0, 2));
    let pending = EventKind::Order(OrderStatus::PendingPayment);
    assert_eq!(kinds(&desk, &claim).await, [pending]);
    let another = Decision::Granted(super::desk::claim(&voucher, 1, 1));
    let limit = Verdict::Rejected(RejectReason::LimitReached);
    assert_eq!(desk.apply_one(another).await, limit, "his holding counts");
    assert_eq!(updates(&desk, &voucher).await, [], "the gate has it");
}

async fn a_replayed_place_waits_in_its_turn(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let place = |voucher: &Voucher| vec![joining(&claim(voucher, 1, 1), 5)];
    let (voucher, messages) = published_late(&desk, 5, 1, place).await;
    desk.joined(&voucher, 2, 4).await;
    desk.joined(&voucher, 3, 6).await;
    assert_eq!(replay(&desk, &messages[0]).await, SETTLED);
    let seats = desk.snapshot(voucher.id).await.chunks.remove(0).seats;
    let turns: Vec<(BuyerId, Ticket)> = seats.iter().map(|it| (it.buyer, it.ticket)).collect();
    let expected = [(2, 4), (1, 5), (3, 6)];
    assert_eq!(
        turns,
        expected.map(|(buyer, turn)| (BuyerId::new(buyer), Ticket::new(turn)))
    );
}

async fn a_replayed_promotion_gives_units_to_whoever_waits(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let both = |voucher: &Voucher| {
        let claim = claim(voucher, 1, 1);
        vec![joining(&claim, 5), Decision::Promoted(claim)]
    };
    let (voucher, messages) = published_late(&desk, 5, 1, both).await;
    for message in &messages {
        assert_eq!(replay(&desk, message).await, SETTLED);
    }
    let claim = messages[1].claim.clone().expect("a promotion");
    let order = desk.order(claim.order).await;
    assert_eq!(order.stage, Stage::PendingPayment);
    assert_eq!(order.ticket, Some(Ticket::new(5)));
    let expected = [EventKind::Order(OrderStatus::Waiting), EventKind::Promoted];
    assert_eq!(kinds(&desk, &claim).await, expected);
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn a_replayed_withdrawal_shrinks_the_sale(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, adjustment) = withdrawal(&desk).await;
    assert_eq!(replay(&desk, &message).await, SETTLED);
    let tally = desk.tally(voucher.id).await;
    assert_eq!((tally.total, tally.stock, tally.parked), (3, 3, 0));
    assert_eq!(state_of(&desk, adjustment).await, AdjustmentState::Applied);
}

async fn replaying_may_be_repeated(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    assert_eq!(replay(&desk, &message).await, SETTLED);
    let before = (desk.order(claim.order).await, desk.tally(voucher.id).await);
    assert_eq!(replay(&desk, &message).await, SETTLED);
    let after = (desk.order(claim.order).await, desk.tally(voucher.id).await);
    assert_eq!(after, before);
    assert_eq!(kinds(&desk, &claim).await.len(), 1);
}

async fn the_limit_counts_for_a_replay(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let two = |voucher: &Voucher| {
        let claims = [claim(voucher, 1, 1), claim(voucher, 1, 1)];
        claims.map(Decision::Granted).to_vec()
    };
    let (voucher, messages) = published_late(&desk, 5, 1, two).await;
    assert_eq!(replay(&desk, &messages[0]).await, SETTLED);
    let before = desk.tally(voucher.id).await;
    assert_eq!(replay(&desk, &messages[1]).await, UNFIT);
    assert_eq!(desk.tally(voucher.id).await, before);
    let [first, second] = [0, 1].map(|of: usize| messages[of].claim.clone().unwrap());
    let stored = desk.ports.ledger.order(second.order).await.unwrap();
    assert_eq!(stored, None, "it waits still");
    desk.cancel(&first).await;
    assert_eq!(replay(&desk, &messages[1]).await, SETTLED);
    assert_eq!(desk.status(&second).await, OrderStatus::PendingPayment);
    assert_eq!(desk.stock(&voucher).await, 4);
}

async fn stock_counts_for_a_replay(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let two = |voucher: &Voucher| {
        let claims = [claim(voucher, 1, 2), claim(voucher, 2, 2)];
        claims.map(Decision::Granted).to_vec()
    };
    let (voucher, messages) = published_late(&desk, 3, 2, two).await;
    assert_eq!(replay(&desk, &messages[0]).await, SETTLED);
    assert_eq!(replay(&desk, &messages[1]).await, UNFIT);
    let tally = desk.tally(voucher.id).await;
    assert_eq!(tally.awaiting_payment, 2);
    let first = messages[0].claim.clone().expect("a grant");
    desk.cancel(&first).await;
    assert_eq!(replay(&desk, &messages[1]).await, SETTLED);
    let tally = desk.tally(voucher.id).await;
    let units = (tally.stock, tally.parked, tally.awaiting_payment);
    assert_eq!(units, (1, 0, 2));
}

async fn a_replayed_message_holds_nothing_any_more(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    let queued = [(claim.order, OrderStatus::Queued)];
    let stages = async || desk.ports.ledger.stages(&[claim.order]).await.unwrap();
    assert_eq!(stages().await, queued);
    replay(&desk, &message).await;
    assert_eq!(stages().await, [(claim.order, OrderStatus::PendingPayment)]);
    desk.cancel(&claim).await;
    let snapshot = desk.snapshot(voucher.id).await;
    let holders = snapshot.chunks.iter().map(|chunk| chunk.holders.len());
    assert_eq!((snapshot.sale.free, holders.sum()), (5, 0_usize));
    let settled = newest(&desk).await;
    assert_eq!(settled.state, ParkedState::Replayed);
}

async fn of_many_replays_one_takes_units(harness: &dyn LedgerHarness) {
    let desk = Desk::at(harness);
    let (voucher, message, claim) = one_parked(&desk).await;
    let replays = join_all((0..5).map(|_| replay(&desk, &message))).await;
    assert_eq!(replays, [SETTLED; 5]);
    assert_eq!(desk.stock(&voucher).await, 3);
    assert_eq!(kinds(&desk, &claim).await.len(), 1);
}

async fn what_a_missing_voucher_was_asked_for_is_counted_once_it_is_there(
    harness: &dyn LedgerHarness,
) {
    let desk = Desk::at(harness);
    let both = |voucher: &Voucher| {
        let claims = [claim(voucher, 1, 2), claim(voucher, 2, 1)];
        let joined = joining(&claim(voucher, 3, 1), 5);
        let granted = claims.map(Decision::Granted);
        granted.into_iter().chain([joined]).collect()
    };
    let (voucher, messages) = missing_before(&desk, 5, both).await;
    let units: Vec<u32> = messages.iter().map(|message| message.units).collect();
    assert_eq!(units, [2, 1, 0]);
    let units = async || {
        let tally = desk.tally(voucher.id).await;
        let free = desk.snapshot(voucher.id).await.sale.free;
        assert_eq!(free, tally.stock, "what the gate may give is what is left");
        (tally.stock, tally.parked, tally.awaiting_payment)
    };
    assert_eq!(units().await, (2, 3, 0));
    desk.granted(&voucher, 4, 2).await;
    assert_eq!(units().await, (0, 3, 2));
    for (message, expected) in messages.iter().zip([(0, 1, 4), (0, 0, 5), (0, 0, 5)]) {
        assert_eq!(replay(&desk, message).await, SETTLED);
        assert_eq!(units().await, expected);
    }
    assert_eq!(updates(&desk, &voucher).await, [], "the gate has all of it");
}

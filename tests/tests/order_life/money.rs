//! Money that moved: it pays its order, or it leaves a refund record.

use futures::future::join_all;
use seckill_application::ports::PaymentOutcome;
use seckill_application::{
    CancelReply, HearReply, PayReply, PaymentNotice, Purchase, RefundReply, SteerCommand,
};
use seckill_domain::{
    Currency, EventId, EventKind, Forbidden, Money, OrderId, OrderStatus, Refund, RefundReason,
    Stage,
};

use crate::world::{MINUTE, MS, Offer, PRICE_MINOR, World, buyer, money, payment};

fn notice(id: &str, order: OrderId, minor: u64) -> PaymentNotice {
    PaymentNotice {
        payment: payment(id),
        order,
        amount: money(minor),
    }
}

fn hear(world: &World, notice: &PaymentNotice) -> Option<PaymentOutcome> {
    match world.run(world.hear.run(notice)).unwrap() {
        HearReply::Settled(outcome) => Some(outcome),
        HearReply::OrderQueued => None,
        HearReply::Contradicted => panic!("{notice:?} contradicts an earlier one"),
    }
}

fn heard(world: &World, id: &str, order: OrderId) -> PaymentOutcome {
    hear(world, &notice(id, order, PRICE_MINOR)).expect("settled")
}

fn refunds(world: &World) -> Vec<Refund> {
    let page = world.alone(world.ledger.money.refunds(None, 100)).unwrap();
    page.items
}

fn reasons(world: &World) -> Vec<RefundReason> {
    refunds(world).iter().map(|refund| refund.reason).collect()
}

#[test]
fn money_in_time_pays_its_order() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    assert_eq!(heard(&world, "pay-1", order), PaymentOutcome::Paid);
    let id = payment("pay-1");
    assert_eq!(
        world.order(order).stage,
        Stage::Paid {
            payment: id.clone()
        }
    );
    let reply = world.run(world.pay.run(order, buyer(1), &id)).unwrap();
    assert!(matches!(reply, PayReply::Paid(_)), "the buyer says so too");
    assert_eq!(refunds(&world), []);
    let events = world.ledger.events.of_order(order, EventId::default(), 100);
    let told = world.alone(events).unwrap();
    let told: Vec<EventKind> = told.iter().map(|event| event.what.kind).collect();
    let expected = [OrderStatus::PendingPayment, OrderStatus::Paid].map(EventKind::Order);
    assert_eq!(told, expected, "whoever follows the order hears of it");
    world.assert_sound(voucher);
}

#[test]
fn money_for_what_the_buyer_has_paid_already_is_that_payment() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    assert_eq!(heard(&world, "pay-1", order), PaymentOutcome::Paid);
    assert_eq!(refunds(&world), []);
}

#[test]
fn money_that_comes_too_late_goes_back() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let [expired, overdue, cancelled] = [1, 2, 3].map(|it| world.bought(voucher, it, 1));
    let reply = world.run(world.cancel.run(cancelled, buyer(3))).unwrap();
    assert!(matches!(reply, CancelReply::Cancelled(_)));
    let late = PaymentOutcome::RefundedTooLate;
    assert_eq!(heard(&world, "pay-3", cancelled), late);
    world.pass(15 * MINUTE);
    assert_eq!(heard(&world, "pay-2", overdue), late, "before the sweep");
    world.run(world.expire.sweep()).unwrap();
    assert_eq!(heard(&world, "pay-1", expired), late);
    assert_eq!(reasons(&world), [RefundReason::TooLate; 3]);
    let found: Vec<OrderId> = refunds(&world).iter().map(|it| it.order).collect();
    assert_eq!(found, [expired, overdue, cancelled]);
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
}

#[test]
fn money_for_one_who_waits_goes_back() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    world.bought(voucher, 1, 1);
    let waiting = world.waiting(voucher, 2, 1);
    let early = PaymentOutcome::RefundedTooEarly;
    assert_eq!(heard(&world, "pay-2", waiting), early);
    assert_eq!(reasons(&world), [RefundReason::TooEarly]);
    assert_eq!(world.status(waiting), OrderStatus::Waiting);
}

/// He was told that the list is closed, or has left it, and the ledger has not heard of it yet.
#[test]
fn money_for_one_who_waits_no_more_is_too_late() {
    for close in [true, false] {
        let world = World::new();
        let voucher = world.sale(Offer::of(1).waitlist(5));
        world.bought(voucher, 1, 1);
        let waiting = world.waiting(voucher, 2, 1);
        world.settle();
        world.alone(async {
            if close {
                world.steer.run(voucher, SteerCommand::Close).await.unwrap();
                while world.hot.gate.promote(voucher).await.unwrap() {}
            } else {
                world.place.leave(voucher, buyer(2)).await.unwrap();
            }
        });
        let seen = world.alone(world.orders.find(waiting, buyer(2))).unwrap();
        let told = seen.expect("his order").order.status();
        let expected = if close {
            OrderStatus::ClosedOut
        } else {
            OrderStatus::Withdrawn
        };
        assert_eq!(told, expected);
        assert_eq!(
            world.status(waiting),
            OrderStatus::Waiting,
            "not written yet"
        );
        let late = notice("pay-2", waiting, PRICE_MINOR);
        let again = world.alone(world.hear.run(&late)).unwrap();
        assert_eq!(again, HearReply::OrderQueued, "while nobody writes");
        let pay = world.alone(world.pay.run(waiting, buyer(2), &payment("pay-3")));
        let refused = pay.unwrap();
        assert_ne!(refused, PayReply::Refused(Forbidden::Waiting));
        assert_ne!(refused, PayReply::Refused(Forbidden::Queued));
        assert_eq!(hear(&world, &late), Some(PaymentOutcome::RefundedTooLate));
        assert_eq!(reasons(&world), [RefundReason::TooLate]);
        assert_eq!(world.status(waiting), expected);
    }
}

/// From the first moment on, and as long as he waits.
#[test]
fn whoever_waits_cannot_pay_whether_or_not_the_ledger_has_heard_of_him() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    world.bought(voucher, 1, 1);
    let Purchase::Waitlisted { order, .. } = world
        .alone(world.purchase.run(crate::world::request(voucher, 2, 1)))
        .unwrap()
    else {
        panic!("no place");
    };
    let id = payment("pay-2");
    let pay = || world.pay.run(order, buyer(2), &id);
    let refused = PayReply::Refused(Forbidden::Waiting);
    assert_eq!(world.alone(pay()).unwrap(), refused);
    world.settle();
    assert_eq!(world.run(pay()).unwrap(), refused);
}

#[test]
fn a_second_payment_goes_back() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    assert_eq!(heard(&world, "pay-1", order), PaymentOutcome::Paid);
    let second = PaymentOutcome::RefundedSecond;
    assert_eq!(heard(&world, "pay-2", order), second);
    assert_eq!(reasons(&world), [RefundReason::SecondPayment]);
    assert_eq!(world.status(order), OrderStatus::Paid);
    let used = world.run(world.pay.run(order, buyer(1), &payment("pay-2")));
    assert_eq!(used.unwrap(), PayReply::Refused(Forbidden::Paid));
}

#[test]
fn a_wrong_amount_goes_back_and_the_order_can_still_be_paid() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(2));
    let order = world.bought(voucher, 1, 2);
    let wrong = PaymentOutcome::RefundedWrongAmount;
    assert_eq!(heard(&world, "pay-1", order), wrong, "it costs twice that");
    let dollars: Currency = "USD".parse().unwrap();
    let foreign = PaymentNotice {
        amount: Money {
            minor: 2 * PRICE_MINOR,
            currency: dollars,
        },
        ..notice("pay-2", order, 0)
    };
    assert_eq!(hear(&world, &foreign), Some(wrong));
    assert_eq!(refunds(&world)[0].amount, foreign.amount);
    let right = notice("pay-3", order, 2 * PRICE_MINOR);
    assert_eq!(hear(&world, &right), Some(PaymentOutcome::Paid));
}

#[test]
fn money_for_an_unknown_order_goes_back() {
    let world = World::new();
    world.sale(Offer::of(10));
    let unknown = PaymentOutcome::RefundedUnknownOrder;
    assert_eq!(heard(&world, "pay-1", OrderId::new(4_711)), unknown);
    assert_eq!(reasons(&world), [RefundReason::UnknownOrder]);
}

#[test]
fn a_notice_that_comes_again_is_answered_as_the_first_was() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let [paid, late] = [world.bought(voucher, 1, 1), world.bought(voucher, 2, 1)];
    let wrong = notice("pay-0", paid, 1);
    let wrong_outcome = Some(PaymentOutcome::RefundedWrongAmount);
    assert_eq!(hear(&world, &wrong), wrong_outcome);
    assert_eq!(heard(&world, "pay-1", paid), PaymentOutcome::Paid);
    world.pass(15 * MINUTE);
    world.run(world.expire.sweep()).unwrap();
    let too_late = PaymentOutcome::RefundedTooLate;
    assert_eq!(heard(&world, "pay-2", late), too_late);
    world.run(world.refund.run(paid)).unwrap();
    for _ in 0..3 {
        assert_eq!(hear(&world, &wrong), wrong_outcome);
        assert_eq!(heard(&world, "pay-1", paid), PaymentOutcome::Paid);
        assert_eq!(heard(&world, "pay-2", late), too_late);
        for contradicting in [notice("pay-2", paid, PRICE_MINOR), notice("pay-2", late, 1)] {
            let heard = world.run(world.hear.run(&contradicting)).unwrap();
            assert_eq!(heard, HearReply::Contradicted);
        }
    }
    assert_eq!(refunds(&world).len(), 3);
    world.assert_sound(voucher);
}

#[test]
fn notices_at_once_are_settled_once() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let notices: Vec<PaymentNotice> = (0..12)
        .map(|n| notice(&format!("pay-{}", n % 3), order, PRICE_MINOR))
        .collect();
    let outcomes = world.run(join_all(notices.iter().map(|it| world.hear.run(it))));
    let outcomes: Vec<HearReply> = outcomes.into_iter().map(Result::unwrap).collect();
    let is_paid = |it: &&HearReply| **it == HearReply::Settled(PaymentOutcome::Paid);
    let paid = outcomes.iter().filter(is_paid);
    assert_eq!(paid.count(), 4, "one payment, four times told");
    assert_eq!(reasons(&world), [RefundReason::SecondPayment; 2]);
}

#[test]
fn a_notice_whose_answer_is_lost_leaves_one_record() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world.pass(15 * MINUTE);
    world.book.chaos().fail_after("unit_of_work.commit", 2);
    let late = PaymentOutcome::RefundedTooLate;
    assert_eq!(heard(&world, "pay-1", order), late);
    assert!(world.book.chaos().struck() >= 1);
    world.book.chaos().heal();
    assert_eq!(heard(&world, "pay-1", order), late);
    assert_eq!(refunds(&world).len(), 1);
}

#[test]
fn money_for_a_queued_order_is_asked_to_come_again() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.granted(voucher, 1, 1);
    let in_time = notice("pay-1", order, PRICE_MINOR);
    // The writer does not work.
    let queued = world.alone(world.hear.run(&in_time)).unwrap();
    assert_eq!(queued, HearReply::OrderQueued);
    assert_eq!(refunds(&world), []);
    assert_eq!(hear(&world, &in_time), Some(PaymentOutcome::Paid));
}

/// The buyer was told that he has his units; that the ledger does not know yet is not his fault.
#[test]
fn money_for_one_who_was_promoted_just_now_is_not_late() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let first = world.bought(voucher, 1, 1);
    let waiting = world.waiting(voucher, 2, 1);
    world.alone(world.cancel.run(first, buyer(1))).unwrap();
    assert_eq!(
        world.status(waiting),
        OrderStatus::Waiting,
        "not written yet"
    );
    let in_time = notice("pay-2", waiting, PRICE_MINOR);
    let queued = world.alone(world.hear.run(&in_time)).unwrap();
    assert_eq!(queued, HearReply::OrderQueued);
    assert_eq!(hear(&world, &in_time), Some(PaymentOutcome::Paid));
    assert_eq!(world.status(waiting), OrderStatus::Paid);
    assert_eq!(refunds(&world), []);
}

#[test]
fn a_refund_gives_money_and_units_back_once() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(3));
    let order = world.bought(voucher, 1, 3);
    let early = world.run(world.refund.run(order)).unwrap();
    assert_eq!(early, RefundReply::Refused(Forbidden::NotPaid));
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    world.book.chaos().fail_after("unit_of_work.commit", 1);
    let replies = world.run(join_all((0..5).map(|_| world.refund.run(order))));
    for reply in replies {
        let RefundReply::Refunded(refunded) = reply.unwrap() else {
            panic!("not refunded");
        };
        assert_eq!(refunded.status(), OrderStatus::Refunded);
    }
    assert_eq!(reasons(&world), [RefundReason::Requested]);
    assert_eq!(refunds(&world)[0].amount, money(3 * PRICE_MINOR));
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
    let pay = world.run(world.pay.run(order, buyer(1), &payment("pay-2")));
    assert_eq!(pay.unwrap(), PayReply::Refused(Forbidden::Refunded));
    world.bought(voucher, 1, 3);
    let unknown = world.run(world.refund.run(OrderId::new(4_711))).unwrap();
    assert_eq!(unknown, RefundReply::NotFound);
}

#[test]
fn the_provider_is_told_of_every_refund_once() {
    let world = World::new();
    let unknown = OrderId::new(4_711);
    for number in 1..=5 {
        heard(&world, &format!("pay-{number}"), unknown);
    }
    // One fails, one is told and its answer is lost, and one is told and not written down.
    world.sandbox.chaos().fail_before("payments.refund", 1);
    world.sandbox.chaos().fail_after("payments.refund", 1);
    let sent = world.run(world.send_refunds.run()).unwrap();
    assert_eq!(sent, 3);
    world.book.chaos().fail_before("money_movements.sent", 1);
    world.run(world.send_refunds.run()).unwrap_err();
    while world.run(world.send_refunds.run()).unwrap() > 0 {}
    let told: Vec<u64> = world.sandbox.refunds().iter().map(|it| it.id).collect();
    let mut listed: Vec<u64> = refunds(&world).iter().map(|it| it.id).collect();
    listed.reverse();
    assert_eq!(told, listed);
    assert!(refunds(&world).iter().all(|refund| refund.sent));
    world.clock.advance(MS);
    assert_eq!(world.run(world.send_refunds.run()).unwrap(), 0);
}

//! Paying and cancelling: each once, however often it is asked for.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::join_all;
use seckill_application::ports::{Confirmation, Payments};
use seckill_application::{CancelReply, Fault, PayOrder, PayReply, Purchase};
use seckill_domain::{
    EventId, EventKind, Forbidden, Money, OrderId, OrderStatus, PaymentId, Refund, Stage,
};

use crate::world::{MINUTE, Offer, PRICE_MINOR, World, buyer, money, payment, request};

/// A provider that writes down what it is asked.
#[derive(Default)]
struct Attentive(Mutex<Vec<(PaymentId, OrderId, Money)>>);

#[async_trait]
impl Payments for Attentive {
    async fn confirm(
        &self,
        payment: &PaymentId,
        order: OrderId,
        amount: Money,
    ) -> Result<Confirmation, Fault> {
        let asked = (payment.clone(), order, amount);
        self.0.lock().expect("no panic before").push(asked);
        Ok(Confirmation::Confirmed)
    }

    async fn refund(&self, _: &Refund) -> Result<(), Fault> {
        Err(Fault::broken("payments.refund", "nobody asked for one"))
    }
}

#[test]
fn the_provider_is_asked_about_the_whole_amount_of_the_order() {
    let world = World::new();
    let voucher = world.sale(Offer {
        limit: 3,
        ..Offer::of(10)
    });
    let order = world.bought(voucher, 1, 3);
    let provider = Arc::new(Attentive::default());
    let (orders, clock) = (world.orders.clone(), world.clock.clone());
    let pay = PayOrder::new(&world.ledger, provider.clone(), orders, clock);
    let id = payment("pay-1");
    let reply = world.run(pay.run(order, buyer(1), &id)).unwrap();
    assert!(matches!(reply, PayReply::Paid(_)));
    let asked = provider.0.lock().expect("no panic before");
    assert_eq!(*asked, [(id, order, money(3 * PRICE_MINOR))]);
}

#[test]
fn ten_payments_at_once_with_one_payment_id_are_one_payment() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let id = payment("pay-1");
    let pays = (0..10).map(|_| world.pay.run(order, buyer(1), &id));
    for reply in world.run(join_all(pays)) {
        let PayReply::Paid(paid) = reply.unwrap() else {
            panic!("not paid");
        };
        assert_eq!(
            paid.stage,
            Stage::Paid {
                payment: id.clone()
            }
        );
    }
    let events = world.ledger.events.of_order(order, EventId::default(), 100);
    let events = world.alone(events).unwrap();
    let paid = EventKind::Order(OrderStatus::Paid);
    let times = events.iter().filter(|event| event.what.kind == paid);
    assert_eq!(times.count(), 1);
    world.assert_sound(voucher);
}

#[test]
fn of_ten_payments_at_once_with_different_ids_one_pays() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let ids: Vec<_> = (0..10).map(|n| payment(&format!("pay-{n}"))).collect();
    let pays = ids.iter().map(|id| world.pay.run(order, buyer(1), id));
    let replies = world.run(join_all(pays));
    let replies: Vec<PayReply> = replies.into_iter().map(Result::unwrap).collect();
    let paid = replies.iter().filter(|it| matches!(it, PayReply::Paid(_)));
    assert_eq!(paid.count(), 1);
    let refused = PayReply::Refused(Forbidden::Paid);
    assert_eq!(replies.iter().filter(|it| **it == refused).count(), 9);
}

#[test]
fn a_payment_whose_answer_is_lost_is_answered_all_the_same() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    world.book.chaos().fail_after("unit_of_work.commit", 1);
    let reply = world.run(world.pay.run(order, buyer(1), &payment("pay-1")));
    assert!(matches!(reply, Ok(PayReply::Paid(_))), "{reply:?}");
    assert_eq!(world.book.chaos().struck(), 1);
}

#[test]
fn a_declined_payment_takes_nothing_and_another_one_pays() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let declined = world.run(world.pay.run(order, buyer(1), &payment("decline-1")));
    assert!(matches!(declined, Ok(PayReply::Declined(_))));
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    let paid = world.run(world.pay.run(order, buyer(1), &payment("pay-1")));
    assert!(matches!(paid, Ok(PayReply::Paid(_))));
}

#[test]
fn a_payment_belongs_to_one_order() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let [one, two] = [world.bought(voucher, 1, 1), world.bought(voucher, 2, 1)];
    let id = payment("pay-1");
    let paid = world.run(world.pay.run(one, buyer(1), &id)).unwrap();
    assert!(matches!(paid, PayReply::Paid(_)));
    let used = world.run(world.pay.run(two, buyer(2), &id)).unwrap();
    assert_eq!(used, PayReply::PaymentUsed);
    assert_eq!(world.status(two), OrderStatus::PendingPayment);
}

#[test]
fn somebody_elses_order_can_be_neither_paid_nor_cancelled() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let paid = world.run(world.pay.run(order, buyer(2), &payment("pay-1")));
    assert_eq!(paid.unwrap(), PayReply::NotFound);
    let cancelled = world.run(world.cancel.run(order, buyer(2)));
    assert_eq!(cancelled.unwrap(), CancelReply::NotFound);
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
}

#[test]
fn sixteen_cancellations_at_once_give_one_unit_back_and_the_buyer_may_buy_again() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    let cancels = (0..16).map(|_| world.cancel.run(order, buyer(1)));
    for reply in world.run(join_all(cancels)) {
        let CancelReply::Cancelled(cancelled) = reply.unwrap() else {
            panic!("not cancelled");
        };
        assert_eq!(cancelled.status(), OrderStatus::Cancelled);
    }
    world.settle();
    assert_eq!(world.free(voucher), 10);
    world.assert_sound(voucher);
    let again = world.bought(voucher, 1, 1);
    assert_ne!(again, order);
    assert_eq!(world.free(voucher), 9);
}

#[test]
fn a_cancellation_whose_answer_is_lost_gives_its_units_back_once() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10).limit(3));
    let order = world.bought(voucher, 1, 3);
    world.book.chaos().fail_after("unit_of_work.commit", 1);
    world.store.chaos().fail_after("purchase_gate.follow", 1);
    let reply = world.run(world.cancel.run(order, buyer(1)));
    assert!(matches!(reply, Ok(CancelReply::Cancelled(_))), "{reply:?}");
    world.settle();
    assert_eq!(world.free(voucher), 10);
    let struck = (world.book.chaos().struck(), world.store.chaos().struck());
    assert_eq!(struck, (1, 1));
    world.assert_sound(voucher);
}

#[test]
fn what_ended_one_way_does_not_end_another() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let [paid, cancelled, overdue, expired] =
        [1, 2, 3, 4].map(|number| world.bought(voucher, number, 1));
    world.run(world.cancel.run(cancelled, buyer(2))).unwrap();
    let pay = |order, number| {
        let id = payment(&format!("pay-{number}"));
        world.run(async { world.pay.run(order, buyer(number), &id).await.unwrap() })
    };
    let cancel = |order, number| world.run(world.cancel.run(order, buyer(number))).unwrap();
    assert!(matches!(pay(paid, 1), PayReply::Paid(_)));
    assert_eq!(cancel(paid, 1), CancelReply::Refused(Forbidden::Paid));
    assert_eq!(pay(cancelled, 2), PayReply::Refused(Forbidden::Cancelled));
    world.pass(15 * MINUTE);
    // Swept or not, the window has ended.
    assert_eq!(pay(overdue, 3), PayReply::Refused(Forbidden::Expired));
    assert_eq!(cancel(overdue, 3), CancelReply::Refused(Forbidden::Expired));
    assert_eq!(world.status(overdue), OrderStatus::PendingPayment);
    world.run(world.expire.sweep()).unwrap();
    assert_eq!(pay(expired, 4), PayReply::Refused(Forbidden::Expired));
    assert_eq!(cancel(expired, 4), CancelReply::Refused(Forbidden::Expired));
    assert_eq!(world.status(overdue), OrderStatus::Expired);
    world.settle();
    assert_eq!(world.free(voucher), 9);
}

#[test]
fn an_order_that_is_queued_is_waited_for_and_then_told_as_queued() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.granted(voucher, 1, 1);
    // The writer does not work.
    let began = world.clock_ms();
    let id = payment("pay-1");
    let early = world.alone(world.pay.run(order, buyer(1), &id)).unwrap();
    assert_eq!(early, PayReply::Refused(Forbidden::Queued));
    let waited = world.clock_ms() - began;
    assert!((2_000..2_500).contains(&waited), "{waited} ms");
    let cancel = world.alone(world.cancel.run(order, buyer(1))).unwrap();
    assert_eq!(cancel, CancelReply::Refused(Forbidden::Queued));
    let paid = world.run(world.pay.run(order, buyer(1), &id)).unwrap();
    assert!(matches!(paid, PayReply::Paid(_)));
}

#[test]
fn a_replay_says_what_the_order_has_become() {
    let world = World::new();
    let voucher = world.sale(Offer::of(1).waitlist(5));
    let ask = |number| {
        let key = Some("the-key".parse().expect("a key"));
        let request = seckill_application::PurchaseRequest {
            key,
            ..crate::world::request(voucher, number, 1)
        };
        world.run(world.purchase.run(request)).unwrap()
    };
    let Purchase::Granted { order, .. } = ask(1) else {
        panic!("not granted");
    };
    let Purchase::Waitlisted { order: waits, .. } = ask(2) else {
        panic!("no place");
    };
    world.settle();
    world
        .run(world.pay.run(order, buyer(1), &payment("pay-1")))
        .unwrap();
    let status = OrderStatus::Paid;
    assert_eq!(ask(1), Purchase::Granted { order, status });
    // Long after the gate has forgotten when it decided.
    world.pass(5 * MINUTE);
    world.trim();
    let expected = Purchase::Waitlisted {
        order: waits,
        position: 1,
        status: OrderStatus::Waiting,
        joined: false,
    };
    assert_eq!(ask(2), expected);
}

/// Stands for: a message that has waited for some seconds is dropped, though its buyer was given an
/// order id; and for a payment window that runs while nobody can pay.
#[test]
fn a_grant_that_is_written_late_is_an_order_with_its_whole_window() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    // The writer does not work, for longer than the window lasts.
    let asked = world.alone(world.purchase.run(request(voucher, 1, 1)));
    let Purchase::Granted { order, .. } = asked.unwrap() else {
        panic!("not granted");
    };
    world.skip(60 * MINUTE);
    let begun = world.clock_ms();
    world.settle();
    assert_eq!(world.status(order), OrderStatus::PendingPayment);
    let ends = world.order(order).expires_at.expect("a window").as_millis();
    let window = begun + 15 * 60 * 1_000;
    assert!((window..window + 5_000).contains(&ends), "{ends}");
    assert_eq!(world.run(world.expire.sweep()).unwrap(), 0);
    let paid = world.run(world.pay.run(order, buyer(1), &payment("pay-1")));
    assert!(matches!(paid, Ok(PayReply::Paid(_))), "{paid:?}");
    world.assert_sound(voucher);
}

/// Stands for: a cancellation has the counter loaded again from the database, which does not know
/// of the orders on their way.
#[test]
fn a_cancellation_gives_back_its_own_units_and_none_that_are_in_flight() {
    let world = World::new();
    let voucher = world.sale(Offer::of(10));
    let order = world.bought(voucher, 1, 1);
    for number in 2..=6 {
        let asked = world.alone(world.purchase.run(request(voucher, number, 1)));
        assert!(matches!(asked, Ok(Purchase::Granted { .. })), "{asked:?}");
    }
    let reply = world.alone(world.cancel.run(order, buyer(1))).unwrap();
    assert!(matches!(reply, CancelReply::Cancelled(_)), "{reply:?}");
    let relayed = world.alone(world.relay.sweep());
    assert!(relayed.is_ok(), "{relayed:?}");
    assert_eq!(world.free(voucher), 5, "five are on their way");
    world.settle();
    assert_eq!(world.free(voucher), 5);
    world.assert_sound(voucher);
}

//! Money moved, or moves now.

use std::sync::Arc;

use seckill_application::ports::PaymentOutcome;
use seckill_application::{HearReply, PayReply, PaymentNotice};
use seckill_domain::{BuyerId, Money, OrderId, OrderStatus};
use seckill_tests::controls::Branch;

use super::ground::Place;
use super::story::{Story, offer, payment};
use super::{Scene, stamped};

stamped! {
    a_payment => Payment,
    a_notice_of_money_in_time => InTime,
    a_notice_of_money_too_late => TooLate,
    a_notice_of_a_second_payment => Second,
}

/// An order, and a payment that nobody has heard of.
struct Paying {
    story: Story,
    order: OrderId,
    payment: String,
}

impl Paying {
    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let order = story.bought(1, 1).await;
        let payment = format!("payment-{}", story.voucher().id);
        Self {
            story,
            order,
            payment,
        }
    }

    async fn hear(&self, process: &Branch) -> PaymentOutcome {
        let notice = PaymentNotice {
            payment: payment(&self.payment),
            order: self.order,
            amount: Money {
                minor: 8_000,
                currency: "CNY".parse().expect("a currency"),
            },
        };
        match process.hear.run(&notice).await.unwrap() {
            HearReply::Settled(outcome) => outcome,
            reply => panic!("{reply:?}"),
        }
    }
}

/// The buyer pays.
struct Payment(Paying);

impl Scene for Payment {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.lock_order",
        "unit_of_work.save_orders",
        "unit_of_work.append_events",
        "unit_of_work.commit",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Paying::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let id = payment(&self.0.payment);
        let reply = process.pay.run(self.0.order, BuyerId::new(1), &id).await;
        let reply = reply.unwrap();
        assert!(matches!(reply, PayReply::Paid(_)), "{reply:?}");
    }

    async fn check(&self, process: &Branch) {
        let Paying { story, order, .. } = &self.0;
        story.assert_stage(process, *order, OrderStatus::Paid).await;
        story.assert_refunds(process, &self.0.payment, 0).await;
        story.assert_free(process, 2).await;
    }
}

/// What every notice calls.
const NOTICE: [&str; 3] = [
    "unit_of_work.lock_order",
    "unit_of_work.record_payment",
    "unit_of_work.commit",
];

/// The provider says that he has paid.
struct InTime(Paying);

impl Scene for InTime {
    const REACHES: &'static [&'static str] = &NOTICE;

    async fn set(place: &Arc<Place>) -> Self {
        Self(Paying::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        assert_eq!(self.0.hear(process).await, PaymentOutcome::Paid);
    }

    async fn check(&self, process: &Branch) {
        let Paying { story, order, .. } = &self.0;
        story.assert_stage(process, *order, OrderStatus::Paid).await;
        story.assert_refunds(process, &self.0.payment, 0).await;
    }
}

/// It says so of an order whose time is over.
struct TooLate(Paying);

impl Scene for TooLate {
    const REACHES: &'static [&'static str] = &["unit_of_work.record_refund", NOTICE[2]];

    async fn set(place: &Arc<Place>) -> Self {
        let scene = Paying::set(place).await;
        place.end_windows(&[scene.order]).await;
        Self(scene)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let outcome = self.0.hear(process).await;
        assert_eq!(outcome, PaymentOutcome::RefundedTooLate);
    }

    async fn is_over(&self, process: &Branch) -> bool {
        let status = self.0.story.status(process, self.0.order);
        status.await == OrderStatus::Expired
    }

    async fn check(&self, process: &Branch) {
        let Paying { story, .. } = &self.0;
        story.assert_refunds(process, &self.0.payment, 1).await;
        story.assert_free(process, 3).await;
    }
}

/// It says so of an order that was paid by another payment.
struct Second(Paying);

impl Scene for Second {
    const REACHES: &'static [&'static str] = &["unit_of_work.record_refund", NOTICE[2]];

    async fn set(place: &Arc<Place>) -> Self {
        let scene = Paying::set(place).await;
        let first = payment(&format!("first-{}", scene.story.voucher().id));
        let process = place.branch();
        let paid = process.pay.run(scene.order, BuyerId::new(1), &first).await;
        assert!(matches!(paid.unwrap(), PayReply::Paid(_)));
        Self(scene)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let outcome = self.0.hear(process).await;
        assert_eq!(outcome, PaymentOutcome::RefundedSecond);
    }

    async fn check(&self, process: &Branch) {
        let Paying { story, order, .. } = &self.0;
        story.assert_stage(process, *order, OrderStatus::Paid).await;
        story.assert_refunds(process, &self.0.payment, 1).await;
    }
}

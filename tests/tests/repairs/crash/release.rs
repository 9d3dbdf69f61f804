//! Units come back: a cancellation, the end of a payment window, a refund.

use std::sync::Arc;

use seckill_application::{CancelReply, PayReply, RefundReply};
use seckill_domain::{BuyerId, Forbidden, OrderId, OrderStatus, Timestamp};
use seckill_tests::controls::Branch;

use super::ground::Place;
use super::story::{Story, offer, payment};
use super::{Scene, stamped};

stamped! {
    a_cancellation => Cancellation,
    an_expiry_by_the_sweep => SweptExpiry,
    an_expiry_on_time => ExpiryOnTime,
    a_refund => Refund,
}

/// What every release calls.
const RELEASE: [&str; 6] = [
    "ledger.begin",
    "unit_of_work.save_orders",
    "unit_of_work.release",
    "unit_of_work.append_events",
    "unit_of_work.commit",
    "purchase_gate.follow",
];

/// A buyer gives his order up.
struct Cancellation {
    story: Story,
    order: OrderId,
}

impl Scene for Cancellation {
    const REACHES: &'static [&'static str] = &RELEASE;

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let order = story.bought(1, 1).await;
        story.bought(2, 1).await;
        Self { story, order }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        process.give_up(self.order, 1).await;
    }

    async fn again(&self, process: &Branch) {
        let reply = process.cancel.run(self.order, BuyerId::new(1)).await;
        let reply = reply.unwrap();
        let CancelReply::Cancelled(order) = &reply else {
            panic!("{reply:?}");
        };
        assert_eq!(order.status(), OrderStatus::Cancelled);
    }

    async fn check(&self, process: &Branch) {
        let cancelled = OrderStatus::Cancelled;
        self.story
            .assert_stage(process, self.order, cancelled)
            .await;
        self.story.assert_free(process, 2).await;
        self.story.assert_may_buy_again(process, 1).await;
    }
}

/// Two orders whose time is over, and one whose is not.
struct Overdue {
    story: Story,
    over: [OrderId; 2],
    early: OrderId,
}

impl Overdue {
    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(5)).await;
        let over = [story.bought(1, 1).await, story.bought(2, 1).await];
        place.end_windows(&over).await;
        let early = story.bought(3, 1).await;
        Self { story, over, early }
    }

    /// He is refused, swept or not.
    async fn again(&self, process: &Branch) {
        let late = payment("late");
        let reply = process.pay.run(self.over[0], BuyerId::new(1), &late).await;
        let reply = reply.unwrap();
        assert_eq!(reply, PayReply::Refused(Forbidden::Expired));
    }

    async fn is_over(&self, process: &Branch) -> bool {
        let [one, other] = self.over;
        let expired = OrderStatus::Expired;
        self.story.status(process, one).await == expired
            && self.story.status(process, other).await == expired
    }

    async fn check(&self, process: &Branch) {
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.early, pending).await;
        self.story.assert_free(process, 4).await;
        self.story.assert_may_buy_again(process, 1).await;
    }
}

/// The sweep of the ledger finds them.
struct SweptExpiry(Overdue);

impl Scene for SweptExpiry {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.lock_overdue_orders",
        "unit_of_work.save_orders",
        "unit_of_work.release",
        "unit_of_work.append_events",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "gate_updates.forget",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Overdue::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        assert_eq!(process.expire.sweep().await.unwrap(), 2);
    }

    async fn again(&self, process: &Branch) {
        self.0.again(process).await;
    }

    async fn is_over(&self, process: &Branch) -> bool {
        self.0.is_over(process).await
    }

    async fn check(&self, process: &Branch) {
        self.0.check(process).await;
    }
}

/// The delay queue says so, of one too early.
struct ExpiryOnTime(Overdue);

impl Scene for ExpiryOnTime {
    const REACHES: &'static [&'static str] = &[
        "delay_queue.claim_due",
        "unit_of_work.lock_orders",
        "unit_of_work.release",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "delay_queue.complete",
        "delay_queue.schedule",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let scene = Overdue::set(place).await;
        let due = [(scene.early, Timestamp::from_millis(1))];
        place
            .branch()
            .stores
            .hot
            .delays
            .schedule(&due)
            .await
            .unwrap();
        Self(scene)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        assert_eq!(process.expire.on_time().await.unwrap(), 3);
    }

    async fn again(&self, process: &Branch) {
        self.0.again(process).await;
    }

    async fn is_over(&self, process: &Branch) -> bool {
        self.0.is_over(process).await
    }

    async fn check(&self, process: &Branch) {
        self.0.check(process).await;
    }
}

/// An administrator sends the money back.
struct Refund {
    story: Story,
    order: OrderId,
    payment: String,
}

impl Scene for Refund {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.save_orders",
        "unit_of_work.record_refund",
        "unit_of_work.release",
        "unit_of_work.commit",
        "purchase_gate.follow",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let payment = format!("paid-{}", story.voucher().id);
        let order = story.paid(1, &payment).await;
        Self {
            story,
            order,
            payment,
        }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        let reply = process.refund.run(self.order).await.unwrap();
        assert!(matches!(reply, RefundReply::Refunded(_)), "{reply:?}");
    }

    async fn again(&self, process: &Branch) {
        self.act(process).await;
    }

    async fn check(&self, process: &Branch) {
        let refunded = OrderStatus::Refunded;
        self.story.assert_stage(process, self.order, refunded).await;
        self.story.assert_refunds(process, &self.payment, 1).await;
        self.story.assert_free(process, 3).await;
        self.story.assert_may_buy_again(process, 1).await;
    }
}

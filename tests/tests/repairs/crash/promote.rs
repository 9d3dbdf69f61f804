//! Units go to whoever waits; or nobody waits any more.

use std::sync::Arc;

use seckill_application::{CancelReply, SteerCommand, SteerReply};
use seckill_domain::{BuyerId, OrderId, OrderStatus};
use seckill_tests::controls::{Branch, Offer, beside, drain};

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    a_promotion => Promotion,
    a_resumption_that_promotes => Resumption,
    a_place_given_up => Leaving,
    the_end_of_a_sale => End,
}

/// The way of a decision into the ledger, and of its events out of it.
async fn written_and_told(process: &Branch, story: &Story) {
    drain(&mut process.writer("doomed").await).await;
    let publisher = story.place().publisher(process, "doomed");
    assert!(publisher.run().await.unwrap() > 0, "there is news");
}

/// Two units come back at once; three wait, whose names sort differently from their arrival.
struct Promotion {
    story: Story,
    first: OrderId,
    waiting: [OrderId; 3],
}

impl Promotion {
    async fn set(place: &Arc<Place>) -> Self {
        let two_each = Offer {
            limit: 2,
            ..offer(2)
        };
        let story = Story::begin(place, two_each).await;
        let first = story.bought(40, 2).await;
        let waiting = [
            story.waits(30, 1).await,
            story.waits(20, 1).await,
            story.waits(10, 2).await,
        ];
        Self {
            story,
            first,
            waiting,
        }
    }

    async fn check(&self, process: &Branch) {
        let [one, two, three] = self.waiting;
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, one, pending).await;
        self.story.assert_stage(process, two, pending).await;
        let waiting = OrderStatus::Waiting;
        self.story.assert_stage(process, three, waiting).await;
        self.story.assert_free(process, 0).await;
    }
}

impl Scene for Promotion {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.commit",
        "purchase_gate.follow",
        "gate_updates.forget",
        "admission_ledger.take_over",
        "admission_ledger.apply",
        "admission_stream.ack",
        "delay_queue.schedule",
        "event_outbox.claim",
        "notifier.notify",
        "event_outbox.published",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self::set(place).await
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        process.give_up(self.first, 40).await;
        written_and_told(process, &self.story).await;
    }

    async fn again(&self, process: &Branch) {
        process.give_up(self.first, 40).await;
    }

    async fn check(&self, process: &Branch) {
        self.check(process).await;
    }
}

/// Units came back while the sale was paused, and it goes on.
struct Resumption(Promotion);

impl Scene for Resumption {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.save_voucher",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "purchase_gate.facts",
        "admission_ledger.apply",
        "notifier.notify",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let scene = Promotion::set(place).await;
        let process = place.branch();
        let voucher = scene.story.voucher();
        process.steered(voucher, SteerCommand::Pause).await;
        process.give_up(scene.first, 40).await;
        Self(scene)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
        written_and_told(process, &self.0.story).await;
    }

    async fn again(&self, process: &Branch) {
        let voucher = self.0.story.voucher();
        process.steered(voucher, SteerCommand::Resume).await;
    }

    async fn check(&self, process: &Branch) {
        self.0.check(process).await;
    }
}

/// The head of the list, who wants more than there is, gives his place up: the next one fits.
struct Leaving {
    story: Story,
    head: OrderId,
    next: OrderId,
}

impl Scene for Leaving {
    const REACHES: &'static [&'static str] = &[
        "purchase_gate.leave",
        "purchase_gate.promote",
        "admission_ledger.apply",
        "admission_stream.ack",
        "notifier.notify",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let two_each = Offer {
            limit: 2,
            ..offer(2)
        };
        let story = Story::begin(place, two_each).await;
        story.bought(1, 1).await;
        let head = story.waits(3, 2).await;
        let next = story.waits(2, 1).await;
        Self { story, head, next }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        let reply = process.cancel.run(self.head, BuyerId::new(3)).await;
        let reply = reply.unwrap();
        assert!(matches!(reply, CancelReply::Cancelled(_)), "{reply:?}");
        written_and_told(process, &self.story).await;
    }

    /// Whether he has left is for the ledger to say, which hears it from a writer.
    async fn again(&self, process: &Branch) {
        let mut writer = process.writer("beside").await;
        let cancel = process.cancel.run(self.head, BuyerId::new(3));
        let reply = beside(&mut writer, cancel).await.unwrap();
        let CancelReply::Cancelled(order) = &reply else {
            panic!("{reply:?}");
        };
        assert_eq!(order.status(), OrderStatus::Withdrawn);
    }

    async fn check(&self, process: &Branch) {
        let withdrawn = OrderStatus::Withdrawn;
        self.story.assert_stage(process, self.head, withdrawn).await;
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.next, pending).await;
        self.story.assert_free(process, 0).await;
    }
}

/// The sale is closed by hand: those who wait are told.
struct End(Promotion);

impl Scene for End {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.save_voucher",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "purchase_gate.promote",
        "admission_ledger.apply",
        "notifier.notify",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Promotion::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
        written_and_told(process, &self.0.story).await;
    }

    async fn again(&self, process: &Branch) {
        let voucher = self.0.story.voucher().id;
        let reply = process.steer.run(voucher, SteerCommand::Close).await;
        let reply = reply.unwrap();
        assert!(matches!(reply, SteerReply::Done(_)), "{reply:?}");
    }

    async fn check(&self, process: &Branch) {
        let story = &self.0.story;
        for order in self.0.waiting {
            story
                .assert_stage(process, order, OrderStatus::ClosedOut)
                .await;
        }
        let pending = OrderStatus::PendingPayment;
        story.assert_stage(process, self.0.first, pending).await;
    }
}

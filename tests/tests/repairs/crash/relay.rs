//! What the ledger changed reaches the gate, and what happened is told; what the gate granted
//! reaches the ledger.

use std::sync::Arc;

use seckill_application::Purchase;
use seckill_domain::{OrderId, OrderStatus};
use seckill_tests::controls::{Branch, Cut, Fuse, drain};

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    a_relay_of_updates => Updates,
    a_relay_of_events => Events,
    a_grant => Grant,
}

/// Two cancellations are in the ledger, and the gate knows of neither.
struct Updates {
    story: Story,
    orders: [OrderId; 2],
    next: OrderId,
}

impl Scene for Updates {
    const REACHES: &'static [&'static str] = &[
        "gate_updates.waiting",
        "gate_updates.after",
        "purchase_gate.follow",
        "gate_updates.forget",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(2)).await;
        let orders = [story.bought(1, 1).await, story.bought(2, 1).await];
        let next = story.waits(3, 1).await;
        for (order, buyer) in orders.into_iter().zip(1..) {
            let fuse = Arc::new(Fuse::at(Cut::BeforeAny("purchase_gate.follow")));
            let process = place.doomed(&fuse);
            let cancelled = fuse.run(process.give_up(order, buyer)).await;
            assert_eq!(cancelled, None, "it stops after its commit");
        }
        Self {
            story,
            orders,
            next,
        }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        process.relay.sweep().await.unwrap();
    }

    async fn again(&self, process: &Branch) {
        for (order, buyer) in self.orders.into_iter().zip(1..) {
            process.give_up(order, buyer).await;
        }
    }

    async fn check(&self, process: &Branch) {
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.next, pending).await;
        self.story.assert_free(process, 1).await;
        self.story.assert_may_buy_again(process, 1).await;
    }
}

/// There is news; that all of it is told is looked at after every scene.
struct Events(Story);

impl Scene for Events {
    const REACHES: &'static [&'static str] = &[
        "event_outbox.claim",
        "notifier.notify",
        "event_outbox.published",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        story.bought(1, 1).await;
        let order = story.bought(2, 1).await;
        place.branch().give_up(order, 2).await;
        Self(story)
    }

    fn story(&self) -> &Story {
        &self.0
    }

    async fn act(&self, process: &Branch) {
        let publisher = self.0.place().publisher(process, "doomed");
        assert!(publisher.run().await.unwrap() > 0, "there is news");
    }

    async fn again(&self, process: &Branch) {
        let publisher = self.0.place().publisher(process, "again");
        publisher.run().await.unwrap();
    }

    async fn check(&self, process: &Branch) {
        self.0.assert_free(process, 2).await;
    }
}

/// Somebody presses the button, perhaps without an answer.
struct Grant(Story);

impl Scene for Grant {
    const REACHES: &'static [&'static str] = &[
        "order_ids.next",
        "purchase_gate.admit",
        "admission_ledger.take_over",
        "admission_stream.take_over",
        "admission_ledger.apply",
        "admission_stream.ack",
        "delay_queue.schedule",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Story::begin(place, offer(2)).await)
    }

    fn story(&self) -> &Story {
        &self.0
    }

    async fn act(&self, process: &Branch) {
        let answer = process.buy(self.0.voucher(), 1, 1).await;
        assert!(matches!(answer, Purchase::Granted { .. }), "{answer:?}");
        drain(&mut process.writer("doomed").await).await;
    }

    /// He gets one, or learns that he has it.
    async fn again(&self, process: &Branch) {
        self.0.ask(process, 1, 1).await;
    }

    async fn check(&self, process: &Branch) {
        let orders = self.0.orders();
        assert_eq!(orders.len(), 1, "the same one in every answer");
        let pending = OrderStatus::PendingPayment;
        self.0.assert_stage(process, orders[0], pending).await;
        self.0.assert_free(process, 1).await;
    }
}

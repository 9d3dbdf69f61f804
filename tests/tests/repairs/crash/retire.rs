//! A sale that is over leaves the gate.

use std::sync::Arc;

use seckill_application::{Purchase, RefundReply, SteerCommand};
use seckill_domain::OrderId;
use seckill_tests::controls::Branch;

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    a_retirement => Retirement,
    a_refund_after_it => RefundAfterwards,
}

/// A closed sale with one paid order, and nothing open.
struct Retirement {
    story: Story,
    order: OrderId,
}

impl Retirement {
    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let order = story.paid(1, &format!("paid-{}", story.voucher().id)).await;
        let given_up = story.bought(2, 1).await;
        let process = place.branch();
        process.give_up(given_up, 2).await;
        process.steered(story.voucher(), SteerCommand::Close).await;
        Self { story, order }
    }

    /// Whether it has left the gate or not, he has what he has, and nobody gets more.
    async fn again(&self, process: &Branch) {
        let answer = process.buy(self.story.voucher(), 1, 1).await;
        let Purchase::AlreadyHeld { orders } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(orders, [self.order]);
        let answer = process.buy(self.story.voucher(), 2, 1).await;
        assert_eq!(answer, Purchase::Closed);
    }

    /// Whoever retires a sale has found it settled twice.
    async fn retire(process: &Branch) {
        let mut retired = 0;
        for _ in 0..2 {
            retired += process.retire.run().await.unwrap();
        }
        assert_eq!(retired, 1);
    }

    async fn is_retired(&self, process: &Branch) -> bool {
        let voucher = self.story.voucher().id;
        let voucher = process.stores.ledger.ledger.voucher(voucher).await;
        voucher.unwrap().expect("a voucher").retired
    }
}

impl Scene for Retirement {
    const REACHES: &'static [&'static str] = &[
        "ledger.is_unsettled",
        "purchase_gate.tally",
        "purchase_gate.retire",
        "unit_of_work.mark_retired",
        "unit_of_work.commit",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self::set(place).await
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        Self::retire(process).await;
    }

    async fn again(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn is_over(&self, process: &Branch) -> bool {
        self.is_retired(process).await
    }

    async fn check(&self, process: &Branch) {
        assert_eq!(process.free_at_gate(self.story.voucher()).await, None);
    }
}

/// Its paid order is refunded when the gate has nothing left that could be told.
struct RefundAfterwards(Retirement);

impl Scene for RefundAfterwards {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.release",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "gate_updates.forget",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let scene = Retirement::set(place).await;
        Retirement::retire(&place.branch()).await;
        Self(scene)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let reply = process.refund.run(self.0.order).await.unwrap();
        assert!(matches!(reply, RefundReply::Refunded(_)), "{reply:?}");
    }

    async fn is_over(&self, process: &Branch) -> bool {
        self.0.is_retired(process).await
    }

    async fn check(&self, process: &Branch) {
        let story = &self.0.story;
        let id = format!("paid-{}", story.voucher().id);
        story.assert_refunds(process, &id, 1).await;
        assert_eq!(process.free_at_gate(story.voucher()).await, None);
    }
}

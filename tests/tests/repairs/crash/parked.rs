//! A message that could not be applied is settled by hand.

use std::sync::Arc;

use seckill_application::SteerCommand;
use seckill_application::ports::ParkedReply;
use seckill_domain::{OrderId, OrderStatus};
use seckill_tests::controls::Branch;

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    a_replay => Replay,
    a_discard => Discard,
}

/// A grant of a voucher that was a draft when the ledger heard of it, and is on sale since.
struct Parked {
    story: Story,
    order: OrderId,
    message: u64,
}

impl Parked {
    async fn set(place: &Arc<Place>) -> Self {
        let process = place.branch();
        // So that the partition is there.
        let other = process.on_sale(offer(1)).await;
        let voucher = process.drafted(offer(5)).await;
        let order = process.stores.hot.order_ids.next().await.unwrap();
        place.decide_grant(&voucher, 1, order).await;
        process.settle().await;
        let voucher = process.steered(&voucher, SteerCommand::Publish).await;
        place.put_away(&other).await;
        let parked = process.parked.list(true, None, 1).await.unwrap();
        let message = parked.items.first().expect("it is parked");
        assert_eq!(message.claim.as_ref().map(|claim| claim.order), Some(order));
        let story = Story::of(place, voucher, offer(5));
        story.was_granted(1, order);
        Self {
            story,
            order,
            message: message.id,
        }
    }
}

/// It is applied after all.
struct Replay(Parked);

impl Scene for Replay {
    const REACHES: &'static [&'static str] = &["parked_messages.replay"];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Parked::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let reply = process.parked.replay(self.0.message).await.unwrap();
        assert_eq!(reply, ParkedReply::Settled);
    }

    async fn check(&self, process: &Branch) {
        let Parked { story, order, .. } = &self.0;
        let pending = OrderStatus::PendingPayment;
        story.assert_stage(process, *order, pending).await;
        story.assert_free(process, 4).await;
    }
}

/// It is given up.
struct Discard(Parked);

impl Scene for Discard {
    const REACHES: &'static [&'static str] = &[
        "parked_messages.discard",
        "gate_updates.waiting",
        "purchase_gate.follow",
        "gate_updates.forget",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        Self(Parked::set(place).await)
    }

    fn story(&self) -> &Story {
        &self.0.story
    }

    async fn act(&self, process: &Branch) {
        self.again(process).await;
    }

    async fn again(&self, process: &Branch) {
        let reply = process.parked.discard(self.0.message, "forged").await;
        assert_eq!(reply.unwrap(), ParkedReply::Settled);
    }

    async fn check(&self, process: &Branch) {
        let Parked { story, order, .. } = &self.0;
        let rejected = OrderStatus::Rejected;
        story.assert_stage(process, *order, rejected).await;
        story.assert_free(process, 5).await;
        story.assert_may_buy_again(process, 1).await;
    }
}

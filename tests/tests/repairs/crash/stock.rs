//! An administrator adds units, or takes some out.

use std::sync::Arc;

use seckill_application::AdjustStockReply;
use seckill_application::ports::NewAdjustment;
use seckill_domain::{OrderId, OrderStatus};
use seckill_tests::controls::{Branch, beside};

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    an_addition => Addition,
    a_withdrawal => Withdrawal,
}

async fn adjust(process: &Branch, story: &Story, delta: i32) {
    let wish = NewAdjustment {
        voucher: story.voucher().id,
        delta,
        reason: "counted again".to_owned(),
        key: Some("once".parse().expect("a key")),
    };
    // Of a process that stays: what the one that stops does is the same in every play.
    let mut writer = story.place().branch().writer("beside").await;
    let reply = beside(&mut writer, process.adjust.run(&wish)).await;
    let reply = reply.unwrap();
    assert!(matches!(reply, AdjustStockReply::Done(_)), "{reply:?}");
}

async fn assert_total(process: &Branch, story: &Story, units: i64) {
    let tally = process.tally(story.voucher()).await;
    assert_eq!(tally.total, units, "{tally:?}");
}

/// Units for one who waits, and one more.
struct Addition {
    story: Story,
    next: OrderId,
}

impl Scene for Addition {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.record_adjustment",
        "unit_of_work.add_units",
        "unit_of_work.commit",
        "purchase_gate.follow",
        "purchase_gate.facts",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(1)).await;
        story.bought(1, 1).await;
        let next = story.waits(2, 1).await;
        Self { story, next }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        adjust(process, &self.story, 2).await;
    }

    async fn again(&self, process: &Branch) {
        adjust(process, &self.story, 2).await;
    }

    async fn check(&self, process: &Branch) {
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.next, pending).await;
        assert_total(process, &self.story, 3).await;
        self.story.assert_free(process, 1).await;
    }
}

/// Two of four free units leave the sale.
struct Withdrawal(Story);

impl Scene for Withdrawal {
    const REACHES: &'static [&'static str] = &[
        "unit_of_work.record_adjustment",
        "unit_of_work.commit",
        "purchase_gate.withdraw",
        "unit_of_work.adjustment",
    ];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(5)).await;
        story.bought(1, 1).await;
        Self(story)
    }

    fn story(&self) -> &Story {
        &self.0
    }

    async fn act(&self, process: &Branch) {
        adjust(process, &self.0, -2).await;
    }

    async fn again(&self, process: &Branch) {
        adjust(process, &self.0, -2).await;
    }

    async fn check(&self, process: &Branch) {
        assert_total(process, &self.0, 3).await;
        self.0.assert_free(process, 2).await;
    }
}

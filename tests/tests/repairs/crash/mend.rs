//! Reconciliation finds a difference, and mends it.

use std::sync::Arc;
use std::time::Duration;

use seckill_application::{Loaded, ReconcileScope};
use seckill_domain::{OrderId, OrderStatus};
use seckill_tests::controls::{Branch, beside, drain};

use super::ground::Place;
use super::story::{Story, offer};
use super::{Scene, stamped};

stamped! {
    a_repair_of_a_holder_that_is_gone => HolderGone,
    a_repair_of_a_message_that_is_gone => MessageGone,
    a_repair_of_units_that_were_not_released => NotReleased,
    a_repair_of_a_free_count_that_is_off => FreeOff,
}

const EVERY_MINUTE: ReconcileScope = ReconcileScope {
    full: false,
    dry_run: false,
};

/// What a repair of an order calls.
const REPAIR: [&str; 7] = [
    "leases.acquire",
    "purchase_gate.holders",
    "reconciliations.open_orders",
    "reconciliations.repair",
    "purchase_gate.follow",
    "reconciliations.store",
    "leases.release",
];

/// One round, and the way of what it mends.
async fn mend(process: &Branch, story: &Story) {
    let reconcile = process.reconcile("doomed", story.place().pauses());
    let report = reconcile.run(EVERY_MINUTE).await.unwrap();
    let report = report.expect("nobody else is at it");
    assert_eq!(report.repairs(), 1, "{report:?}");
    if report.differences() == 0 {
        let load = process.load.run(story.voucher().id, Duration::ZERO);
        assert_eq!(load.await.unwrap(), Loaded::Loaded);
    }
    drain(&mut process.writer("doomed").await).await;
}

/// Two rounds of a process that finds what is left. The lease of the one that is gone has run out.
async fn mend_again(process: &Branch, story: &Story) {
    for _ in 0..2 {
        let reconcile = process.reconcile("again", story.place().pauses());
        let mut writer = process.writer("again").await;
        let report = beside(&mut writer, reconcile.run(EVERY_MINUTE)).await;
        let report = report.unwrap().expect("nobody else is at it");
        // What the gate does not have is told of, and loaded below.
        let away = report.vouchers.iter().filter(|it| !it.at_gate).count();
        assert_eq!(report.repairs() + away, report.findings(), "{report:?}");
        process.load_wanted(&mut writer).await;
        drain(&mut writer).await;
    }
}

/// The gate has forgotten a holder.
struct HolderGone {
    story: Story,
    order: OrderId,
}

impl Scene for HolderGone {
    const REACHES: &'static [&'static str] = &REPAIR;

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let order = story.bought(1, 1).await;
        story.bought(2, 1).await;
        place.drop_holder(story.voucher(), 1, order).await;
        Self { story, order }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        mend(process, &self.story).await;
    }

    async fn again(&self, process: &Branch) {
        mend_again(process, &self.story).await;
    }

    async fn check(&self, process: &Branch) {
        self.story.assert_free(process, 1).await;
        self.story.assert_holds(process, 1, self.order).await;
    }
}

/// The gate has given a unit, and no message says so.
struct MessageGone {
    story: Story,
    order: OrderId,
}

impl Scene for MessageGone {
    const REACHES: &'static [&'static str] = &REPAIR;
    const IS_CONSERVED: bool = false;

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        story.bought(1, 1).await;
        let order = place.branch().stores.hot.order_ids.next().await.unwrap();
        place.plant_holder(story.voucher(), 2, order).await;
        story.was_granted(2, order);
        Self { story, order }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        mend(process, &self.story).await;
    }

    async fn again(&self, process: &Branch) {
        mend_again(process, &self.story).await;
    }

    async fn check(&self, process: &Branch) {
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.order, pending).await;
        self.story.assert_free(process, 1).await;
        self.story.assert_holds(process, 2, self.order).await;
    }
}

/// The gate still holds an order that the ledger has ended; somebody waits.
struct NotReleased {
    story: Story,
    next: OrderId,
}

impl Scene for NotReleased {
    const REACHES: &'static [&'static str] = &REPAIR;
    const IS_CONSERVED: bool = false;

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(2)).await;
        story.bought(1, 1).await;
        let order = story.bought(2, 1).await;
        place.branch().give_up(order, 2).await;
        place.plant_holder(story.voucher(), 2, order).await;
        let next = story.waits(3, 1).await;
        Self { story, next }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        mend(process, &self.story).await;
    }

    async fn again(&self, process: &Branch) {
        mend_again(process, &self.story).await;
    }

    async fn check(&self, process: &Branch) {
        let pending = OrderStatus::PendingPayment;
        self.story.assert_stage(process, self.next, pending).await;
        self.story.assert_free(process, 0).await;
    }
}

/// Every order agrees, and the free count does not.
struct FreeOff(Story);

impl Scene for FreeOff {
    const REACHES: &'static [&'static str] = &[
        "purchase_gate.holders",
        "gate_loader.unload",
        "reconciliations.store",
        "leases.release",
        "gate_loader.begin_load",
        "gate_loader.load",
        "gate_loader.open",
    ];
    const IS_CONSERVED: bool = false;

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(5)).await;
        story.bought(1, 1).await;
        place.shift_free(story.voucher(), -2).await;
        Self(story)
    }

    fn story(&self) -> &Story {
        &self.0
    }

    async fn act(&self, process: &Branch) {
        mend(process, &self.0).await;
    }

    async fn again(&self, process: &Branch) {
        mend_again(process, &self.0).await;
    }

    async fn check(&self, process: &Branch) {
        self.0.assert_free(process, 4).await;
    }
}

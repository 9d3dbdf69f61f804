//! That the plays find what they are there for: a process that does in two transactions what
//! belongs into one.

use std::sync::Arc;

use seckill_application::ports::Release;
use seckill_domain::{NewEvent, OrderId, OrderStatus};
use seckill_tests::controls::Branch;

use super::Scene;
use super::ground::{Ground, Place};
use super::story::{Story, offer};

/// Gives an order up, and then its unit back.
struct Careless {
    story: Story,
    order: OrderId,
}

impl Scene for Careless {
    const REACHES: &'static [&'static str] = &["unit_of_work.commit"];

    async fn set(place: &Arc<Place>) -> Self {
        let story = Story::begin(place, offer(3)).await;
        let order = story.bought(1, 1).await;
        Self { story, order }
    }

    fn story(&self) -> &Story {
        &self.story
    }

    async fn act(&self, process: &Branch) {
        let ledger = &process.stores.ledger.ledger;
        let mut unit = ledger.begin().await.unwrap();
        let order = unit.lock_order(self.order).await.unwrap();
        let mut order = order.expect("an order");
        let now = unit.now().await.unwrap();
        order.cancel(now).expect("it can be given up");
        let pending = OrderStatus::PendingPayment;
        let saved = unit.save_orders(pending, std::slice::from_ref(&order));
        assert_eq!(saved.await.unwrap(), 1);
        let event = NewEvent::of_order(&order);
        unit.append_events(&[event]).await.unwrap();
        unit.commit().await.unwrap();

        let mut unit = ledger.begin().await.unwrap();
        let release = [Release::of(&order)];
        let released = unit.release(order.voucher, &release).await;
        released.unwrap();
        unit.commit().await.unwrap();
    }

    async fn again(&self, process: &Branch) {
        process.give_up(self.order, 1).await;
    }

    async fn check(&self, process: &Branch) {
        self.story.assert_free(process, 3).await;
    }
}

#[tokio::test]
#[should_panic(expected = "holds: false")]
async fn a_step_that_is_not_atomic_is_found() {
    super::at_every_step::<Careless>(&Ground::memory()).await;
}

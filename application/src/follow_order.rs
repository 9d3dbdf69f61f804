//! A buyer follows his order.

use std::sync::Arc;

use seckill_domain::{BuyerId, Event, EventId, OrderId};

use crate::ports::{EventOutbox, Following, HotPath, LedgerPorts, NoticeFeed};
use crate::{Fault, OrderView, ReadOrders};

/// Most events of one read.
const BATCH_MAX: usize = 100;

/// Reads an order's events and wakes those who wait for more.
pub struct FollowOrder {
    outbox: Arc<dyn EventOutbox>,
    feed: Arc<dyn NoticeFeed>,
    orders: Arc<ReadOrders>,
}

impl FollowOrder {
    /// Over these ports.
    pub fn new(hot: &HotPath, ledger: &LedgerPorts, orders: Arc<ReadOrders>) -> Self {
        Self {
            outbox: ledger.events.clone(),
            feed: hot.feed.clone(),
            orders,
        }
    }

    /// Starts to follow a buyer's own order: the order as it is, and what wakes him. `None` if he
    /// has no such order. Follow first, then read events: nothing falls in between.
    pub async fn follow(
        &self,
        order: OrderId,
        buyer: BuyerId,
    ) -> Result<Option<(OrderView, Box<dyn Following>)>, Fault> {
        let Some(view) = self.orders.find(order, buyer).await? else {
            return Ok(None);
        };
        Ok(Some((view, self.feed.follow(order).await?)))
    }

    /// Events of the order after `after`, oldest first, at most 100.
    pub async fn events(&self, order: OrderId, after: EventId) -> Result<Vec<Event>, Fault> {
        self.outbox.of_order(order, after, BATCH_MAX).await
    }
}

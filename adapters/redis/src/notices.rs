//! Tells other processes what happened to orders, and hears what they tell. By publish and
//! subscribe: whoever does not listen at the moment misses it, and nothing is kept.
//!
//! A message is a line per event, `<order> <event>`. Every process hears of every order: that costs
//! a look into a table, where a subscription per order would cost two calls for each buyer who
//! looks.

use std::sync::Arc;

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{Following, NoticeFeed, Notifier};
use seckill_domain::{Event, OrderId};

use crate::fault::at_most;
use crate::followers::Follower;
use crate::keys::Channel;
use crate::store::{Lane, Store};
use crate::subscription::Subscription;

const EVENTS_MAX: usize = 500;

/// Publishes events.
pub(crate) struct RedisNotifier(pub(crate) Arc<Store>);

#[async_trait]
impl Notifier for RedisNotifier {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        const NOTIFY: &str = "notifier.notify";
        at_most(NOTIFY, events.len(), EVENTS_MAX)?;
        let message = encode(events);
        // What happens to a voucher is followed by nobody.
        if message.is_empty() {
            return Ok(());
        }
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.0.channel(Channel::Notices)).arg(message);
        self.0.ask(NOTIFY, Lane::Bulk, &publish).await?;
        Ok(())
    }
}

/// Hears events.
pub(crate) struct RedisFeed(pub(crate) Arc<Subscription>);

#[async_trait]
impl NoticeFeed for RedisFeed {
    async fn follow(&self, order: OrderId) -> Result<Box<dyn Following>, Fault> {
        // If it cannot be made now, whoever follows looks from time to time, and is woken once it
        // is made.
        self.0.made().await;
        Ok(Box::new(RedisFollowing {
            subscription: self.0.clone(),
            follower: self.0.followers().follow(order),
        }))
    }
}

struct RedisFollowing {
    subscription: Arc<Subscription>,
    follower: Follower,
}

#[async_trait]
impl Following for RedisFollowing {
    async fn changed(&mut self) {
        self.subscription.while_kept(self.follower.woken()).await;
    }
}

/// The message of some events.
fn encode(events: &[Event]) -> String {
    let line = |event: &Event| {
        let (order, _) = event.what.order?;
        Some(format!("{order} {}", event.id.get()))
    };
    events
        .iter()
        .filter_map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The orders that a message is about. Whatever else stands there is passed over.
pub(crate) fn orders_in(message: &[u8]) -> impl Iterator<Item = OrderId> {
    message.split(|byte| *byte == b'\n').filter_map(|line| {
        let order = line.split(|byte| *byte == b' ').next()?;
        std::str::from_utf8(order).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seckill_domain::{
        BuyerId, EventId, EventKind, NewEvent, OrderStatus, Timestamp, VoucherId,
    };

    #[test]
    fn a_message_names_the_orders_and_nothing_else_is_read() {
        let event = |order: Option<u64>| Event {
            id: EventId::new(7),
            what: NewEvent {
                kind: EventKind::Order(OrderStatus::Paid),
                voucher: VoucherId::new(1),
                order: order.map(|order| (OrderId::new(order), BuyerId::new(2))),
            },
            at: Timestamp::from_millis(0),
        };
        let message = encode(&[event(Some(u64::MAX)), event(None), event(Some(3))]);
        let read = |message: &[u8]| orders_in(message).map(OrderId::get).collect::<Vec<_>>();
        assert_eq!(read(message.as_bytes()), [u64::MAX, 3]);
        assert_eq!(read(b""), []);
        assert_eq!(read(b"x 1\n\n5\n \n\xff\xfe 2\n-1 3\n6 7 8"), [5, 6]);
    }
}

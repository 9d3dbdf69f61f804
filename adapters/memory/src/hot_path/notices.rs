//! Tells those who follow an order. Like publish and subscribe: whoever does not listen at the
//! moment misses it, and nothing is kept.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use seckill_application::Fault;
use seckill_application::ports::{Following, NoticeFeed, Notifier};
use seckill_domain::{Event, OrderId};
use tokio::sync::Notify;

use super::store::Shared;
use crate::chaos::at_most;

const EVENTS_MAX: usize = 500;

/// Who follows which order.
#[derive(Debug, Default)]
pub(super) struct Notices {
    followers: Mutex<HashMap<OrderId, Vec<Arc<Notify>>>>,
    /// Notices are lost on their way.
    pub(super) muted: AtomicBool,
}

impl Notices {
    fn followers(&self) -> MutexGuard<'_, HashMap<OrderId, Vec<Arc<Notify>>>> {
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, events: &[Event]) {
        if self.muted.load(Ordering::Relaxed) {
            return;
        }
        let followers = self.followers();
        let orders = events.iter().filter_map(|event| event.what.order);
        for follower in orders
            .filter_map(|(order, _)| followers.get(&order))
            .flatten()
        {
            // Kept for a follower who is busy with what woke him before.
            follower.notify_one();
        }
    }
}

#[async_trait]
impl Notifier for Shared {
    async fn notify(&self, events: &[Event]) -> Result<(), Fault> {
        const NOTIFY: &str = "notifier.notify";
        at_most(NOTIFY, events.len(), EVENTS_MAX)?;
        let call = self.chaos.enter(NOTIFY)?;
        self.notices.tell(events);
        call.answer(())
    }
}

#[async_trait]
impl NoticeFeed for Shared {
    async fn follow(&self, order: OrderId) -> Result<Box<dyn Following>, Fault> {
        let call = self.chaos.enter("notice_feed.follow")?;
        let woken = Arc::new(Notify::new());
        let mut followers = self.notices.followers();
        followers.entry(order).or_default().push(woken.clone());
        drop(followers);
        let follower: Box<dyn Following> = Box::new(Follower {
            notices: self.notices.clone(),
            order,
            woken,
        });
        call.answer(follower)
    }
}

/// One who follows; dropped, he is forgotten.
struct Follower {
    notices: Arc<Notices>,
    order: OrderId,
    woken: Arc<Notify>,
}

#[async_trait]
impl Following for Follower {
    async fn changed(&mut self) {
        self.woken.notified().await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followers = self.notices.followers();
        if let Some(of_order) = followers.get_mut(&self.order) {
            of_order.retain(|woken| !Arc::ptr_eq(woken, &self.woken));
            if of_order.is_empty() {
                followers.remove(&self.order);
            }
        }
    }
}

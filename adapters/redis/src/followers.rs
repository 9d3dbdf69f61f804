//! Who in this process follows which order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seckill_domain::OrderId;
use tokio::sync::Notify;

/// Those who follow orders. Nothing is queued for them: a wake-up that was not slept through yet
/// stands for all that came meanwhile.
#[derive(Default)]
pub(crate) struct Followers(Mutex<HashMap<OrderId, Vec<Arc<Notify>>>>);

impl Followers {
    /// Follows an order until the follower is dropped.
    pub(crate) fn follow(self: &Arc<Self>, order: OrderId) -> Follower {
        let woken = Arc::new(Notify::new());
        self.lock().entry(order).or_default().push(woken.clone());
        Follower {
            followers: self.clone(),
            order,
            woken,
        }
    }

    /// Wakes those who follow these orders.
    pub(crate) fn wake(&self, orders: impl Iterator<Item = OrderId>) {
        let followers = self.lock();
        for woken in orders.filter_map(|it| followers.get(&it)).flatten() {
            woken.notify_one();
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        for woken in self.lock().values().flatten() {
            woken.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrderId, Vec<Arc<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who follows; dropped, he is forgotten.
pub(crate) struct Follower {
    followers: Arc<Followers>,
    order: OrderId,
    woken: Arc<Notify>,
}

impl Follower {
    /// Returns when he was woken since the last return.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followers = self.followers.lock();
        if let Some(of_order) = followers.get_mut(&self.order) {
            of_order.retain(|woken| !Arc::ptr_eq(woken, &self.woken));
            if of_order.is_empty() {
                followers.remove(&self.order);
            }
        }
    }
}

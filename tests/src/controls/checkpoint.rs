//! A place at which somebody stops until told to go on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How long anybody waits for anybody.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stops the first who comes by. Clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    taken: AtomicBool,
    arrived: Notify,
    go_on: Notify,
}

impl Checkpoint {
    /// Stops the first caller until [`Checkpoint::pass`]; later ones do not notice it.
    pub async fn stop(&self) {
        if !self.0.taken.swap(true, Ordering::SeqCst) {
            self.0.arrived.notify_one();
            bounded("somebody to let me pass", self.0.go_on.notified()).await;
        }
    }

    /// Returns once somebody has been stopped.
    pub async fn reached(&self) {
        bounded("somebody to arrive", self.0.arrived.notified()).await;
    }

    /// Lets whoever was stopped go on.
    pub fn pass(&self) {
        self.0.go_on.notify_one();
    }
}

async fn bounded(whom: &str, wait: impl Future<Output = ()>) {
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    assert!(waited.is_ok(), "waited too long for {whom}");
}

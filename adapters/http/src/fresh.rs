//! An answer that counts for a moment.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seckill_application::ports::Clock;
use tokio::sync::Mutex;

/// Remembers what a look showed, so that an endpoint that is open to everybody asks the neighbours
/// only so often, and never twice at once.
pub(crate) struct Fresh<T> {
    clock: Arc<dyn Clock>,
    counts_for: Duration,
    seen: Mutex<Option<(Duration, T)>>,
}

impl<T: Clone> Fresh<T> {
    pub(crate) fn new(clock: Arc<dyn Clock>, counts_for: Duration) -> Self {
        Self {
            clock,
            counts_for,
            seen: Mutex::default(),
        }
    }

    /// What was seen a moment ago, or what `look` shows.
    pub(crate) async fn get(&self, look: impl Future<Output = T>) -> T {
        let mut seen = self.seen.lock().await;
        if let Some((at, known)) = &*seen
            && self.clock.monotonic().saturating_sub(*at) < self.counts_for
        {
            return known.clone();
        }
        let looked = look.await;
        *seen = Some((self.clock.monotonic(), looked.clone()));
        looked
    }
}

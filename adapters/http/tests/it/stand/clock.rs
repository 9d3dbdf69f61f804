//! Real time that can be moved, and that can be made to panic.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use seckill_application::ports::Clock;
use seckill_domain::Timestamp;

/// The clock of a stand.
#[derive(Debug)]
pub(crate) struct TestClock {
    begun: Instant,
    moved_ms: AtomicI64,
    panics: AtomicBool,
}

impl Default for TestClock {
    #[expect(clippy::disallowed_methods, reason = "a clock is where time comes in")]
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            moved_ms: AtomicI64::new(0),
            panics: AtomicBool::new(false),
        }
    }
}

impl TestClock {
    /// Moves the wall clock.
    pub(crate) fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.moved_ms.fetch_add(by, Ordering::SeqCst);
    }

    /// The next question for the time panics.
    pub(crate) fn panic_once(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for TestClock {
    #[expect(clippy::disallowed_methods, reason = "a clock is where time comes in")]
    fn now(&self) -> Timestamp {
        assert!(
            !self.panics.swap(false, Ordering::SeqCst),
            "a planted panic"
        );
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let moved = self.moved_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(i64::try_from(real.as_millis()).unwrap() + moved)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a clock is where waiting is done"
    )]
    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

//! The clock of a process whose pauses are over at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use seckill_application::ports::Clock;
use seckill_domain::Timestamp;

/// What a pause really takes, so that servers and others get to work.
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// The machine's clock, which jumps over every pause. For scenarios of many runs in which nobody is
/// there to be waited for.
#[derive(Debug)]
pub struct HastyClock {
    started: Instant,
    skipped_ms: AtomicU64,
}

impl Default for HastyClock {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            skipped_ms: AtomicU64::new(0),
        }
    }
}

impl HastyClock {
    /// Jumps.
    pub fn skip(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).expect("a short time");
        self.skipped_ms.fetch_add(ms, Ordering::SeqCst);
    }

    fn skipped(&self) -> Duration {
        Duration::from_millis(self.skipped_ms.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl Clock for HastyClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = (since.expect("after 1970") + self.skipped()).as_millis();
        Timestamp::from_millis(i64::try_from(millis).expect("before the end of time"))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed() + self.skipped()
    }

    async fn sleep(&self, pause: Duration) {
        let really = pause.min(PAUSE_MAX);
        self.skip(pause.saturating_sub(really));
        tokio::time::sleep(really).await;
    }
}

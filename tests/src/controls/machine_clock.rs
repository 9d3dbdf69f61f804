//! The clock of a process under test.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use seckill_application::ports::Clock;
use seckill_domain::Timestamp;

/// The machine's clock.
pub(super) struct MachineClock {
    started: Instant,
}

impl MachineClock {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

#[async_trait]
impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.expect("after 1970").as_millis();
        Timestamp::from_millis(i64::try_from(millis).expect("before the end of time"))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

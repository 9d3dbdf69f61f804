//! Waiting for something, but not for ever.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures::future::{Either, select};
use seckill_application::ports::Clock;

/// How long somebody is ready to wait, counted from the first time he has to.
pub(crate) struct Patience<'a> {
    clock: &'a dyn Clock,
    pause: Duration,
    over: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
}

impl<'a> Patience<'a> {
    pub(crate) fn of(clock: &'a dyn Clock, pause: Duration) -> Self {
        Self {
            clock,
            pause,
            over: None,
        }
    }

    /// Waits for an event. `false` if time is over before it happens.
    pub(crate) async fn outlasts(&mut self, event: impl Future<Output = ()>) -> bool {
        let over = self
            .over
            .get_or_insert_with(|| self.clock.sleep(self.pause));
        matches!(select(pin!(event), over.as_mut()).await, Either::Left(_))
    }
}

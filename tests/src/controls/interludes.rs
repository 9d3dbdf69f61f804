//! What happens while somebody pauses.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use seckill_application::ports::Clock;
use seckill_domain::Timestamp;

use super::HastyClock;

/// The pauses of whoever goes by the clock that belongs to them. Nobody else acts while he works,
/// and he does nothing while they act: whatever happens, happens in his pauses.
pub struct Interludes(mpsc::UnboundedReceiver<oneshot::Sender<()>>);

/// Pauses until it is told to go on. Then all the time has gone by.
struct PausedClock {
    time: HastyClock,
    pauses: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl Interludes {
    /// With their clock.
    pub fn new() -> (Self, Arc<dyn Clock>) {
        let (sender, pauses) = mpsc::unbounded();
        let clock = PausedClock {
            time: HastyClock::default(),
            pauses: sender,
        };
        (Self(pauses), Arc::new(clock))
    }

    /// The outcome of some work, in each of whose pauses `act` is called with its number, from 1 on.
    pub async fn fill<T>(
        &mut self,
        work: impl Future<Output = T>,
        mut act: impl AsyncFnMut(u32),
    ) -> T {
        let mut work = pin!(work);
        for number in 1.. {
            let pause = match select(work.as_mut(), self.0.next()).await {
                Either::Left((outcome, _)) => return outcome,
                Either::Right((pause, _)) => pause.expect("the clock is there"),
            };
            act(number).await;
            pause.send(()).expect("it pauses until it is told");
        }
        panic!("it pauses for ever");
    }
}

#[async_trait]
impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn monotonic(&self) -> Duration {
        self.time.monotonic()
    }

    async fn sleep(&self, pause: Duration) {
        let (go_on, told) = oneshot::channel();
        self.pauses.unbounded_send(go_on).expect("somebody acts");
        told.await.expect("somebody tells");
        self.time.skip(pause);
    }
}

//! Waiting for a neighbour, but not for ever.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::Fault;
use crate::ports::Clock;

/// How long a buyer who can be told to come again waits for a read of the ledger. A neighbour that
/// hangs must not use up the deadline of his whole request.
pub(crate) const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// The answer of `look`, or a retryable fault of `port` after `patience`. Only for reads: what is
/// given up may still happen.
pub(crate) async fn within<T>(
    clock: &dyn Clock,
    patience: Duration,
    port: &'static str,
    look: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let answer = until(clock.sleep(patience), look).await;
    answer.unwrap_or_else(|| Err(Fault::unavailable(port, "no answer in time")))
}

/// What `work` comes to, or `None` if `end` comes first: then it is left where it stands.
pub(crate) async fn until<T>(
    end: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        end.as_mut().poll(context).map(|()| None)
    })
    .await
}

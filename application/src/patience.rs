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
    let (mut look, mut end) = (pin!(look), pin!(clock.sleep(patience)));
    poll_fn(|context| {
        if let Poll::Ready(answer) = look.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        end.as_mut()
            .poll(context)
            .map(|()| Err(Fault::unavailable(port, "no answer in time")))
    })
    .await
}

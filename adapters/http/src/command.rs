//! Commands come to their end, whoever drives them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A command that was begun. Its caller drives it, which costs no task and no hand-over between
/// threads; should he go away, it goes on as a task of its own.
pub(crate) struct Command<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// `None` once it has ended.
    rest: Option<Pin<Box<F>>>,
    tracker: TaskTracker,
    /// So that a stop waits for it.
    _counted: TaskTrackerToken,
}

impl<F> Command<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// One that `tracker` counts until its end.
    pub(crate) fn new(command: F, tracker: &TaskTracker) -> Self {
        Self {
            rest: Some(Box::pin(command)),
            tracker: tracker.clone(),
            _counted: tracker.token(),
        }
    }
}

impl<F> Future for Command<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that one that panics is not driven on.
        let Some(mut rest) = self.rest.take() else {
            return Poll::Pending;
        };
        let polled = rest.as_mut().poll(context);
        if polled.is_pending() {
            self.rest = Some(rest);
        }
        polled
    }
}

impl<F> Drop for Command<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn drop(&mut self) {
        // Without a runtime the process is at its end, and so is everything in it.
        if let (Some(rest), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            self.tracker.spawn_on(rest, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::{FutureExt as _, poll};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_command_whose_caller_goes_away_ends_and_is_waited_for() {
        let (tracker, gate) = (TaskTracker::new(), Arc::new(Semaphore::new(0)));
        let ended = Arc::new(AtomicU32::new(0));
        let (door, count) = (gate.clone(), ended.clone());
        let mut command = Box::pin(Command::new(
            async move {
                let _open = door.acquire().await;
                count.fetch_add(1, Ordering::SeqCst);
            },
            &tracker,
        ));
        assert!(poll!(&mut command).is_pending());
        drop(command);
        tracker.close();
        let mut waited = Box::pin(tracker.wait());
        assert!(poll!(&mut waited).is_pending(), "it is still under way");
        gate.add_permits(1);
        waited.await;
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_command_that_ends_or_panics_is_driven_no_further() {
        let tracker = TaskTracker::new();
        assert_eq!(Command::new(async { 7 }, &tracker).await, 7);
        let panics = Command::new(async { panic!("planned") }, &tracker);
        let caught = AssertUnwindSafe(panics).catch_unwind().await;
        assert!(caught.is_err());
        tracker.close();
        tracker.wait().await;
        assert_eq!(tracker.len(), 0);
    }
}

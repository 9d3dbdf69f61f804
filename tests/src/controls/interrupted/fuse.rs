//! Counts the calls of a process, and stops it.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{Either, select};
use tokio::sync::Notify;

/// Where a process stops. Calls are counted from 0, in the order in which they are begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// With the call ready, and not made.
    Before(usize),
    /// With the call carried out, and its answer not looked at.
    After(usize),
    /// Before the first call of this name, as `port.method`.
    BeforeAny(&'static str),
}

/// Lets the calls of one process through, up to the one at which it stops for ever.
#[derive(Debug)]
pub struct Fuse {
    cut: Cut,
    calls: AtomicUsize,
    /// Calls that were begun and have not returned.
    under_way: AtomicUsize,
    stopped_at: OnceLock<&'static str>,
    stopped: Notify,
}

/// One call that is under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Fuse {
    /// One that stops a process there.
    pub fn at(cut: Cut) -> Self {
        Self {
            cut,
            calls: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            stopped_at: OnceLock::new(),
            stopped: Notify::new(),
        }
    }

    /// What the process does until it has done it, or stops: then it is dropped where it is, and
    /// there is no answer.
    pub async fn run<T>(&self, act: impl Future<Output = T>) -> Option<T> {
        self.run_counting(act).await.ok()
    }

    /// The same; in the place of an answer, how many calls of the process were under way when it
    /// stopped.
    pub async fn run_counting<T>(&self, act: impl Future<Output = T>) -> Result<T, usize> {
        match select(pin!(act), pin!(self.stopped.notified())).await {
            Either::Left((done, _)) => Ok(done),
            // What is not done is dropped on return, and is still under way.
            Either::Right(_) => Err(self.under_way.load(Ordering::SeqCst)),
        }
    }

    /// The call before or after which the process has stopped, if it has.
    pub fn stopped_at(&self) -> Option<&'static str> {
        self.stopped_at.get().copied()
    }

    pub(super) async fn call<T>(&self, name: &'static str, call: impl Future<Output = T>) -> T {
        let turn = self.calls.fetch_add(1, Ordering::SeqCst);
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let _under_way = UnderWay(&self.under_way);
        let is_here = self.cut == Cut::Before(turn) || self.cut == Cut::BeforeAny(name);
        if is_here || self.stopped_at().is_some() {
            self.stop(name).await;
        }
        let answer = call.await;
        // Whoever else of the process was on the way does not hear the answer either.
        if self.cut == Cut::After(turn) || self.stopped_at().is_some() {
            self.stop(name).await;
        }
        answer
    }

    async fn stop(&self, name: &'static str) -> Infallible {
        self.stopped_at.get_or_init(|| name);
        self.stopped.notify_one();
        pending().await
    }
}

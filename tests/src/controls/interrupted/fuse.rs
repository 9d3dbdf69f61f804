//! Counts the calls of a process, and stops it.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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
    calls: Mutex<Vec<&'static str>>,
    blown: AtomicBool,
    stopped: Notify,
}

impl Fuse {
    /// One that stops a process there.
    pub fn at(cut: Cut) -> Self {
        Self {
            cut,
            calls: Mutex::default(),
            blown: AtomicBool::new(false),
            stopped: Notify::new(),
        }
    }

    /// What the process does until it has done it, or stops: then it is dropped where it is, and
    /// there is no answer.
    pub async fn run<T>(&self, act: impl Future<Output = T>) -> Option<T> {
        match select(pin!(act), pin!(self.stopped.notified())).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// The calls that were begun.
    pub fn calls(&self) -> Vec<&'static str> {
        self.lock().clone()
    }

    /// Whether the process has stopped.
    pub fn is_blown(&self) -> bool {
        self.blown.load(Ordering::SeqCst)
    }

    pub(super) async fn call<T>(&self, name: &'static str, call: impl Future<Output = T>) -> T {
        let turn = {
            let mut calls = self.lock();
            calls.push(name);
            calls.len() - 1
        };
        if self.is_blown() || self.cut == Cut::Before(turn) || self.cut == Cut::BeforeAny(name) {
            self.stop().await;
        }
        let answer = call.await;
        // Whoever else of the process was on the way does not hear the answer either.
        if self.is_blown() || self.cut == Cut::After(turn) {
            self.stop().await;
        }
        answer
    }

    async fn stop(&self) -> Infallible {
        self.blown.store(true, Ordering::SeqCst);
        self.stopped.notify_one();
        pending().await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

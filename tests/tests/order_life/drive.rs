//! Drives futures on a clock that stands still until everybody waits for it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use seckill_memory::VirtualClock;

/// Notes that somebody was woken, so that time moves only when everybody waits for it.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Drives some work to its end, moving the clock to the next sleeper whenever nobody can go on.
pub(crate) fn drive<T>(clock: &VirtualClock, work: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut work: Pin<&mut _> = pin!(work);
    loop {
        woken.0.store(false, Ordering::SeqCst);
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut context) {
            return outcome;
        }
        if !woken.0.load(Ordering::SeqCst) {
            assert!(clock.advance_to_next(), "everybody waits for ever");
        }
    }
}

//! Which sales somebody found missing at the gate.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use seckill_domain::VoucherId;

/// A list of vouchers to load, each at most once. A buyer's request only puts a voucher on it: the
/// loading is a worker's, so that it goes on when the buyer has gone away.
#[derive(Debug, Default)]
pub struct WantedSales(Mutex<Wanted>);

#[derive(Debug, Default)]
struct Wanted {
    waiting: VecDeque<VoucherId>,
    wakers: Vec<Waker>,
}

/// Beyond this many, more are not noted: the sweep of the gate finds them.
const WAITING_MAX: usize = 10_000;

impl WantedSales {
    /// Asks for a voucher to be loaded.
    pub fn request(&self, voucher: VoucherId) {
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.waiting.len() < WAITING_MAX && !wanted.waiting.contains(&voucher) {
            wanted.waiting.push_back(voucher);
            wanted.wakers.drain(..).for_each(Waker::wake);
        }
    }

    /// The next voucher to load; waits until there is one.
    pub async fn next(&self) -> VoucherId {
        poll_fn(|context| {
            let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(voucher) = wanted.waiting.pop_front() {
                return Poll::Ready(voucher);
            }
            wanted.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

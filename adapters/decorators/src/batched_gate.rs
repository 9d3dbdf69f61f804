//! Many attempts, one call.

mod call;
mod lane;
mod same_fault;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use seckill_application::Fault;
use seckill_application::ports::{ATTEMPTS_MAX, Admitted, Clock, PurchaseGate};
use seckill_domain::{Attempt, VoucherId};

use crate::forward::decorate_admit;
use call::Call;
use lane::{Batch, Entered, Lane, Looked};

/// How attempts are batched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSettings {
    /// Most attempts of one call, 1 to [`ATTEMPTS_MAX`].
    pub batch_max: usize,
    /// Most calls under way for one voucher at a time. With 1, attempts reach the gate strictly in
    /// the order in which they came; with more, two batches may overtake each other.
    pub calls_max: usize,
    /// Most attempts that wait for one voucher; more are turned away at once.
    pub queue_max: usize,
    /// How long an attempt may wait to be sent. One that waited longer is turned away instead.
    pub patience: Duration,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            batch_max: 32,
            calls_max: 1,
            queue_max: 8_192,
            patience: Duration::from_secs(1),
        }
    }
}

/// What a [`BatchedGate`] has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchTally {
    /// Calls of the inner gate.
    pub calls: u64,
    /// Attempts in these calls.
    pub attempts: u64,
    /// Attempts that were turned away because too many waited, or for too long.
    pub turned_away: u64,
}

/// A purchase gate that asks the inner gate about many buyers of one voucher in one call.
///
/// An attempt that finds its voucher idle is sent at once; attempts that come while a call is under
/// way wait and go together in the next one. There is no timer and no task: the caller that comes
/// first drives a call for all in it, the caller whose call has ended sends the next, and one who
/// goes away leaves the call that he drives to another. An attempt that was not sent fails as
/// unavailable, without effect; a fault of the inner gate is given to all in the call.
///
/// Only single attempts are batched, since that is what buyers make; a caller with several has a
/// batch already.
pub struct BatchedGate {
    inner: Arc<dyn PurchaseGate>,
    clock: Arc<dyn Clock>,
    settings: BatchSettings,
    shards: [Mutex<HashMap<VoucherId, Lane>>; SHARDS],
    calls: AtomicU64,
    attempts: AtomicU64,
    turned_away: AtomicU64,
}

/// Vouchers share this many locks.
const SHARDS: usize = 16;
/// Idle lanes are kept with their buffers up to this many per lock.
const LANES_KEPT: usize = 256;
const PORT: &str = "purchase_gate.admit";

decorate_admit!(BatchedGate);

impl BatchedGate {
    /// Around `inner`. Settings out of their bounds are brought into them.
    pub fn new(
        inner: Arc<dyn PurchaseGate>,
        clock: Arc<dyn Clock>,
        settings: BatchSettings,
    ) -> Self {
        let settings = BatchSettings {
            batch_max: settings.batch_max.clamp(1, ATTEMPTS_MAX),
            calls_max: settings.calls_max.max(1),
            queue_max: settings.queue_max.max(1),
            patience: settings.patience,
        };
        Self {
            inner,
            clock,
            settings,
            shards: Default::default(),
            calls: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        }
    }

    /// What it has done so far.
    pub fn tally(&self) -> BatchTally {
        BatchTally {
            calls: self.calls.load(Ordering::Relaxed),
            attempts: self.attempts.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
        }
    }

    async fn decorated(&self, voucher: VoucherId, attempts: &[Attempt]) -> Result<Admitted, Fault> {
        let [attempt] = attempts else {
            self.count_call(attempts.len());
            return self.inner.admit(voucher, attempts).await;
        };
        match poll_fn(|context| Poll::Ready(self.enter(voucher, attempt, context.waker()))).await {
            Entered::Alone => {
                // Its end, by whatever cause, sends those who came meanwhile.
                let _turn = Turn {
                    gate: self,
                    voucher,
                };
                self.count_call(1);
                self.inner.admit(voucher, attempts).await
            }
            Entered::Queued(seat) => {
                Waiting {
                    gate: self,
                    voucher,
                    seat: Some(seat),
                    call: None,
                }
                .await
            }
            Entered::Full => Err(Fault::unavailable(PORT, "too many wait for this voucher")),
        }
    }

    fn enter(&self, voucher: VoucherId, attempt: &Attempt, waker: &Waker) -> Entered {
        let mut turned_away = Vec::new();
        let entered = {
            let mut lanes = self.lock(voucher);
            if lanes.len() >= LANES_KEPT && !lanes.contains_key(&voucher) {
                lanes.retain(|_, lane| !lane.is_idle());
            }
            let lane = lanes.entry(voucher).or_default();
            if lane.take_turn(self.settings.calls_max) {
                return Entered::Alone;
            }
            let now = self.clock.monotonic();
            lane.turn_away(now, self.settings.patience, &mut turned_away);
            lane.queue(attempt, now, waker, self.settings.queue_max)
        };
        let full = usize::from(matches!(entered, Entered::Full));
        self.count_turned_away(turned_away.len() + full);
        turned_away.into_iter().for_each(Waker::wake);
        entered
    }

    /// A call has ended: sends what queued meanwhile, on behalf of its first caller. The first
    /// poll is made here, so that the hot store has work before anybody is woken.
    fn send_next(&self, voucher: VoucherId, batch: Option<Batch>) {
        let Some(batch) = batch else { return };
        let (leader, waker) = (batch.leader(), batch.waker.clone());
        let mut call = self.call(voucher, batch);
        match call.poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => self.hand_over(voucher, call, Some(leader)),
            Poll::Ready(reply) => {
                let next = self.settle(voucher, &call, reply);
                if let Some(next) = next {
                    let call = self.call(voucher, next);
                    self.hand_over(voucher, call, None);
                }
            }
        }
    }

    /// Gives a call to one of its callers to drive. `polled_for` is the seat whose waker the call
    /// has. A call that nobody wants any more is dropped.
    fn hand_over(&self, voucher: VoucherId, call: Call, polled_for: Option<usize>) {
        let mut next = Some(call);
        while let Some(call) = next.take() {
            let handed = self.with_lane(voucher, |lane| lane.hand_over(call, polled_for));
            match handed {
                Ok(waker) => waker.into_iter().for_each(Waker::wake),
                Err(unwanted) => {
                    drop(unwanted);
                    next = self.land(voucher).map(|batch| self.call(voucher, batch));
                }
            }
        }
    }

    /// Answers everybody in a call, and returns the next batch.
    fn settle(
        &self,
        voucher: VoucherId,
        call: &Call,
        reply: Result<Admitted, Fault>,
    ) -> Option<Batch> {
        let mut wakers = Vec::with_capacity(call.members().len());
        let batch = self.with_lane(voucher, |lane| {
            lane.settle(call.members(), reply, &mut wakers);
            self.next_batch(lane, &mut wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
        batch
    }

    /// A call has ended without anybody to answer; returns the next batch.
    fn land(&self, voucher: VoucherId) -> Option<Batch> {
        let mut wakers = Vec::new();
        let batch = self.with_lane(voucher, |lane| self.next_batch(lane, &mut wakers));
        wakers.into_iter().for_each(Waker::wake);
        batch
    }

    fn next_batch(&self, lane: &mut Lane, wakers: &mut Vec<Waker>) -> Option<Batch> {
        if lane.ends_idle() {
            return None;
        }
        let before = wakers.len();
        lane.turn_away(self.clock.monotonic(), self.settings.patience, wakers);
        self.count_turned_away(wakers.len() - before);
        lane.next_batch(self.settings.batch_max)
    }

    fn call(&self, voucher: VoucherId, batch: Batch) -> Call {
        self.count_call(batch.attempts.len());
        Call::new(self.inner.clone(), voucher, batch)
    }

    fn lock(&self, voucher: VoucherId) -> MutexGuard<'_, HashMap<VoucherId, Lane>> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only the low bits are used"
        )]
        let shard = voucher.get() as usize % SHARDS;
        self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn with_lane<T>(&self, voucher: VoucherId, act: impl FnOnce(&mut Lane) -> T) -> T {
        act(self.lock(voucher).entry(voucher).or_default())
    }

    fn count_call(&self, attempts: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.attempts.fetch_add(attempts as u64, Ordering::Relaxed);
    }

    fn count_turned_away(&self, attempts: usize) {
        if attempts > 0 {
            self.turned_away
                .fetch_add(attempts as u64, Ordering::Relaxed);
        }
    }
}

/// The right to have one call under way. Passed on when it ends.
struct Turn<'a> {
    gate: &'a BatchedGate,
    voucher: VoucherId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gate
            .send_next(self.voucher, self.gate.land(self.voucher));
    }
}

/// A caller who waits for his answer, and perhaps drives the call that brings it.
struct Waiting<'a> {
    gate: &'a BatchedGate,
    voucher: VoucherId,
    /// `None` once he has his answer.
    seat: Option<usize>,
    call: Option<Call>,
}

impl Future for Waiting<'_> {
    type Output = Result<Admitted, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (gate, voucher) = (self.gate, self.voucher);
        loop {
            let Some(seat) = self.seat else {
                return Poll::Ready(Err(Fault::broken(PORT, "asked again after the answer")));
            };
            if let Some(call) = &mut self.call {
                let Poll::Ready(reply) = call.poll(context) else {
                    return Poll::Pending;
                };
                if let Some(call) = self.call.take() {
                    let next = gate.settle(voucher, &call, reply);
                    gate.send_next(voucher, next);
                }
            }
            match gate.with_lane(voucher, |lane| lane.look(seat, context.waker())) {
                Looked::Wait => return Poll::Pending,
                Looked::Drive(call) => self.call = Some(call),
                Looked::Answer(reply) => {
                    self.seat = None;
                    return Poll::Ready(reply);
                }
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(seat) = self.seat else { return };
        let handed = self.gate.with_lane(self.voucher, |lane| lane.abandon(seat));
        if let Some(call) = self.call.take().or(handed) {
            self.gate.hand_over(self.voucher, call, None);
        }
    }
}

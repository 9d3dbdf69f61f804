//! A clock that stands still until it is moved.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use seckill_application::ports::Clock;
use seckill_domain::Timestamp;

/// Time for tests and simulation: it moves only by [`VirtualClock::advance`], which wakes whoever
/// has slept long enough. Keeps nanoseconds; only [`Clock::now`] cuts to the millisecond.
#[derive(Debug)]
pub struct VirtualClock {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Unix milliseconds at the start, moved by every step of the wall clock.
    wall_origin_ms: i64,
    elapsed: Duration,
    next_sleeper: u64,
    sleepers: BTreeMap<SleeperKey, Option<Waker>>,
}

/// When a sleeper wakes, and a number that keeps the order of those who wake together.
type SleeperKey = (Duration, u64);

impl VirtualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self {
            state: Mutex::new(State {
                wall_origin_ms: start.as_millis(),
                elapsed: Duration::ZERO,
                next_sleeper: 0,
                sleepers: BTreeMap::new(),
            }),
        }
    }

    /// Moves time forward, and wakes the sleepers whose time has come, the earliest first.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut state = self.state();
            state.elapsed += by;
            state.take_due()
        };
        for waker in due {
            waker.wake();
        }
    }

    /// Moves time to the moment at which the next sleeper wakes, and wakes all that wake then.
    /// `false` if nobody sleeps.
    pub fn advance_to_next(&self) -> bool {
        let Some(pause) = self.next_wake_in() else {
            return false;
        };
        self.advance(pause);
        true
    }

    /// How long until the next sleeper wakes.
    pub fn next_wake_in(&self) -> Option<Duration> {
        let state = self.state();
        let (deadline, _) = state.sleepers.keys().next()?;
        Some(deadline.saturating_sub(state.elapsed))
    }

    /// Steps the wall clock by `millis`, forward or back, as a wrong time server does. Sleepers and
    /// the monotonic clock do not notice.
    pub fn step_wall(&self, millis: i64) {
        let mut state = self.state();
        state.wall_origin_ms = state.wall_origin_ms.saturating_add(millis);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_due(&mut self) -> Vec<Waker> {
        let later = self.sleepers.split_off(&(self.elapsed, u64::MAX));
        let due = std::mem::replace(&mut self.sleepers, later);
        due.into_values().flatten().collect()
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let state = self.state();
        Timestamp::from_millis(state.wall_origin_ms).plus(state.elapsed)
    }

    fn monotonic(&self) -> Duration {
        self.state().elapsed
    }

    async fn sleep(&self, pause: Duration) {
        let sleeper = Sleeper::begin(self, pause);
        poll_fn(|context| sleeper.poll(context.waker())).await;
    }
}

/// Somebody who sleeps; a dropped one is forgotten.
struct Sleeper<'a> {
    clock: &'a VirtualClock,
    key: SleeperKey,
}

impl<'a> Sleeper<'a> {
    fn begin(clock: &'a VirtualClock, pause: Duration) -> Self {
        let mut state = clock.state();
        let key = (state.elapsed.saturating_add(pause), state.next_sleeper);
        state.next_sleeper += 1;
        state.sleepers.insert(key, None);
        drop(state);
        Self { clock, key }
    }

    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.clock.state();
        if self.key.0 <= state.elapsed {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, Some(waker.clone()));
        Poll::Pending
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn clock() -> VirtualClock {
        VirtualClock::new(Timestamp::from_millis(1_000))
    }

    #[test]
    fn time_stands_still_until_it_is_moved() {
        let clock = clock();
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
        clock.advance(Duration::from_micros(600));
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
        clock.advance(Duration::from_micros(600));
        assert_eq!(
            clock.now(),
            Timestamp::from_millis(1_001),
            "parts of a millisecond add up"
        );
        assert_eq!(clock.monotonic(), Duration::from_micros(1_200));
    }

    #[test]
    fn a_sleeper_wakes_at_its_time_and_not_before() {
        let clock = clock();
        let mut sleep = pin!(clock.sleep(5 * MS));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(4 * MS);
        assert!(sleep.as_mut().now_or_never().is_none());
        assert_eq!(clock.next_wake_in(), Some(MS));
        assert!(clock.advance_to_next());
        assert!(sleep.as_mut().now_or_never().is_some());
        assert!(!clock.advance_to_next(), "nobody sleeps any more");
    }

    #[test]
    fn a_sleeper_that_is_dropped_is_forgotten() {
        let clock = clock();
        assert!(clock.sleep(MS).now_or_never().is_none());
        assert_eq!(clock.next_wake_in(), None);
    }

    #[test]
    fn a_step_of_the_wall_clock_wakes_nobody() {
        let clock = clock();
        let mut sleep = pin!(clock.sleep(MS));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.step_wall(-3_600_000);
        assert_eq!(clock.now(), Timestamp::from_millis(1_000 - 3_600_000));
        assert_eq!(clock.monotonic(), Duration::ZERO);
        assert!(sleep.as_mut().now_or_never().is_none());
    }
}

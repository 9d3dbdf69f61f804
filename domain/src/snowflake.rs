//! Order ids from time, a worker's number and a counter: 41 bits of milliseconds since 2024-01-01,
//! 10 bits of worker, 12 bits of counter. Rising within a worker, and unique as long as no two
//! workers have one number at one time, which is for whoever numbers them to ensure.

use std::time::Duration;

use crate::{OrderId, Timestamp};

/// 2024-01-01T00:00:00Z.
const EPOCH_MS: i64 = 1_704_067_200_000;
const WORKER_BITS: u32 = 10;
const COUNTER_BITS: u32 = 12;
const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;
/// How far ids may run ahead of the clock, because it stepped back or because more than 4,096 ids
/// a millisecond were asked for. Beyond it the generator refuses rather than drift away.
const AHEAD_MS_MAX: i64 = 10_000;

/// A generator of order ids for one worker number.
#[derive(Debug)]
pub struct Snowflake {
    worker: u16,
    last_ms: i64,
    counter: u64,
}

/// The clock is too far behind the ids that were issued already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the clock is {} ms behind the ids already issued", .behind.as_millis())]
pub struct ClockBehind {
    /// By how much.
    pub behind: Duration,
}

impl Snowflake {
    /// How many worker numbers there are: 0 to 1,023.
    pub const WORKERS: u16 = 1 << WORKER_BITS;

    /// A generator for a worker number (its low 10 bits).
    pub const fn new(worker: u16) -> Self {
        Self {
            worker: worker % Self::WORKERS,
            last_ms: EPOCH_MS,
            counter: COUNTER_MAX,
        }
    }

    /// The next id. A clock that stepped back a little does not matter: the generator keeps to the
    /// latest millisecond it has seen and borrows from the ones to come.
    pub fn next(&mut self, now: Timestamp) -> Result<OrderId, ClockBehind> {
        let now_ms = now.as_millis();
        if now_ms > self.last_ms {
            self.last_ms = now_ms;
            self.counter = 0;
        } else if self.last_ms - now_ms > AHEAD_MS_MAX {
            return Err(ClockBehind {
                behind: now.until(Timestamp::from_millis(self.last_ms)),
            });
        } else if self.counter < COUNTER_MAX {
            self.counter += 1;
        } else {
            self.last_ms += 1;
            self.counter = 0;
        }
        let millis = u64::try_from(self.last_ms - EPOCH_MS).unwrap_or(0);
        let id = (millis << (WORKER_BITS + COUNTER_BITS))
            | (u64::from(self.worker) << COUNTER_BITS)
            | self.counter;
        Ok(OrderId::new(id))
    }

    /// The millisecond that an id carries.
    pub const fn issued_at(id: OrderId) -> Timestamp {
        Timestamp::from_millis(EPOCH_MS + (id.get() >> (WORKER_BITS + COUNTER_BITS)).cast_signed())
    }

    /// Goes on under another worker number, without ever going back in time.
    #[must_use]
    pub fn renumbered(&self, worker: u16) -> Self {
        Self {
            worker: worker % Self::WORKERS,
            last_ms: self.last_ms,
            counter: self.counter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_796_000_000_000;

    #[test]
    fn ids_rise_and_never_repeat_even_when_the_clock_steps_back() {
        let mut ids = Snowflake::new(7);
        let mut last = OrderId::new(0);
        for step in 0..20_000 {
            let now = Timestamp::from_millis(NOW - (step / 100) * 3);
            let id = ids.next(now).unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }

    #[test]
    fn a_clock_far_behind_is_refused() {
        let mut ids = Snowflake::new(7);
        ids.next(Timestamp::from_millis(NOW)).unwrap();
        let behind = ids
            .next(Timestamp::from_millis(NOW - 3_600_000))
            .unwrap_err();
        assert_eq!(behind.behind, Duration::from_hours(1));
        ids.next(Timestamp::from_millis(NOW)).unwrap();
    }

    #[test]
    fn an_id_tells_its_millisecond() {
        let mut ids = Snowflake::new(7);
        let id = ids.next(Timestamp::from_millis(NOW)).unwrap();
        assert_eq!(Snowflake::issued_at(id), Timestamp::from_millis(NOW));
    }

    #[test]
    fn workers_do_not_meet() {
        let now = Timestamp::from_millis(NOW);
        let [mut a, mut b] = [Snowflake::new(1), Snowflake::new(2)];
        assert_ne!(a.next(now).unwrap(), b.next(now).unwrap());
    }
}

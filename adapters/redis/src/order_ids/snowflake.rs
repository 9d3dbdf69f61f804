//! Snowflake ids with a worker number that is leased in Redis.
//!
//! Uniqueness does not rest on anybody's watch. The lease is of a *range of milliseconds under a
//! number*: Redis records how far the holder may go before he goes there, and the next holder of
//! the number starts behind that. A process that is paused beyond its lease has, when it wakes up,
//! no milliseconds left that it may use, by its own monotonic clock; and if that clock stood still
//! with it, those it has are nobody else's.
//!
//! What Redis forgets is made up for by waiting, but not by those who still hold a number: their
//! ranges go on, and they register again what they hold. That no newcomer meets them:
//!
//! 1. Ids carry Redis's time, and a limit is set to one lease after it. So all limits that Redis can
//!    have forgotten have passed at the *floor*: one lease after the loss was noticed, which is at
//!    the first call after it, and so not before it.
//! 2. Until the floor a number is given only to a caller who holds it by a limit that has not passed,
//!    both by his own monotonic clock and by Redis's: a *claim*. Whoever else asks waits.
//! 3. After the floor no claim to what was forgotten holds any more, by 1 and 2. From then on the
//!    registry knows every number that is held: those registered again, and those given since.
//! 4. Two claims to one number cannot hold at once. A number is given to another only when its last
//!    limit on record is two leases past, or when nothing is on record after the floor; in both
//!    cases the earlier holder's limit has passed, and with it his claim, before the new one begins.
//! 5. A holder whose limit passed meanwhile is a newcomer. If what is on record is his after the
//!    floor (an older state of Redis may say so, though somebody took the number in between), that
//!    somebody's limit has passed by 1, or he registered again by 2 and the record is not his.
//!
//! All processes of a deployment use the same lease. Left open: Redis loses its data *and* its clock
//! goes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{Clock, OrderIds};
use seckill_domain::{OrderId, Snowflake, Timestamp};

use crate::reply::Reply;
use crate::scripts::IDS_WORKER;
use crate::store::{Lane, Store, millis, words};

const NEXT: &str = "order_ids.next";
/// Most rounds of leasing and waiting for one id.
const ROUNDS_MAX: usize = 8;

/// The generator of one process.
pub(crate) struct SnowflakeIds {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    lease: Duration,
    /// Names the process in the registry.
    token: String,
    state: Mutex<State>,
    /// Held by whoever asks Redis.
    leasing: tokio::sync::Mutex<()>,
}

struct State {
    generator: Snowflake,
    number: u16,
    /// Redis's time when it was last heard of, and when that was.
    base_ms: i64,
    base_at: Duration,
    /// Ids carry milliseconds after `start` and up to `limit`.
    start: i64,
    limit: i64,
    /// Redis gives no number out before this moment of the process's clock.
    free_at: Duration,
}

impl State {
    fn now(&self, monotonic: Duration) -> i64 {
        let passed = monotonic.saturating_sub(self.base_at).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.base_ms.saturating_add(passed)
    }
}

/// What one attempt at an id came to.
enum Issue {
    Id(OrderId),
    /// The range is used up.
    Lease,
    /// The range has not begun, or there is none to be had yet.
    Wait(Duration),
}

impl SnowflakeIds {
    pub(crate) fn new(store: Arc<Store>, clock: Arc<dyn Clock>, lease: Duration) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "two processes must not have the same token even if they were given the same \
                      seed; nothing is decided by its value"
        )]
        let token = format!("{:032x}", rand::random::<u128>());
        #[expect(clippy::disallowed_methods, reason = "only spreads the first tries")]
        let number = rand::random::<u16>() % Snowflake::WORKERS;
        let state = State {
            generator: Snowflake::new(number),
            number,
            base_ms: 0,
            base_at: clock.monotonic(),
            start: 0,
            limit: 0,
            free_at: Duration::ZERO,
        };
        Self {
            store,
            clock,
            lease,
            token,
            state: Mutex::new(state),
            leasing: tokio::sync::Mutex::new(()),
        }
    }

    /// How often the lease should be renewed.
    pub(crate) fn keep_every(&self) -> Duration {
        self.lease / 3
    }

    /// Renews the lease, or takes one.
    pub(crate) async fn keep(&self) -> Result<(), Fault> {
        let _turn = self.leasing.lock().await;
        self.renew().await
    }

    fn issue(&self) -> Result<Issue, Fault> {
        let mut state = self.state();
        let monotonic = self.clock.monotonic();
        let now = state.now(monotonic);
        if state.limit <= now {
            let wait = state.free_at.saturating_sub(monotonic);
            return Ok(if wait.is_zero() {
                Issue::Lease
            } else {
                Issue::Wait(wait)
            });
        }
        if now <= state.start {
            let ahead = u64::try_from(state.start - now).unwrap_or(0);
            return Ok(Issue::Wait(Duration::from_millis(ahead + 1)));
        }
        let id = state
            .generator
            .next(Timestamp::from_millis(now))
            .map_err(|behind| Fault::unavailable(NEXT, behind))?;
        if Snowflake::issued_at(id).as_millis() > state.limit {
            return Ok(Issue::Lease);
        }
        Ok(Issue::Id(id))
    }

    /// Renews unless somebody did meanwhile.
    async fn renew_if_needed(&self) -> Result<(), Fault> {
        let _turn = self.leasing.lock().await;
        let used_up = {
            let (state, monotonic) = (self.state(), self.clock.monotonic());
            state.limit <= state.now(monotonic) && state.free_at <= monotonic
        };
        if used_up {
            self.renew().await?;
        }
        Ok(())
    }

    async fn renew(&self) -> Result<(), Fault> {
        let (number, issued, held) = {
            let state = self.state();
            let now = state.now(self.clock.monotonic());
            let held = if now < state.limit { state.limit } else { 0 };
            (state.number, now, held)
        };
        let args = |command: &mut Cmd| {
            let lease = millis(self.lease);
            words(
                command,
                &[
                    &self.token,
                    &number,
                    &held,
                    &issued,
                    &lease,
                    &Snowflake::WORKERS,
                ],
            );
        };
        let address = self.store.plain_address();
        let reply = self
            .store
            .run_at("order_ids.lease", Lane::Gate, &IDS_WORKER, address, &args)
            .await?;
        match reply.kind() {
            "LEASED" => self.begin(&reply),
            "WAIT" => {
                let wait = Duration::from_millis(reply.parsed(1)?);
                self.state().free_at = self.clock.monotonic() + wait;
                Ok(())
            }
            _ => {
                let full = "all worker numbers are leased";
                Err(Fault::unavailable("order_ids.lease", full))
            }
        }
    }

    /// Goes on under what was leased.
    fn begin(&self, reply: &Reply) -> Result<(), Fault> {
        let (leased, start, limit) = (reply.parsed(1)?, reply.parsed(2)?, reply.parsed(3)?);
        let redis_now: i64 = reply.parsed(4)?;
        let mut state = self.state();
        if leased != state.number || state.limit == 0 {
            tracing::info!(number = leased, "worker number of order ids leased");
            state.generator = state.generator.renumbered(leased);
            state.number = leased;
        }
        let monotonic = self.clock.monotonic();
        // Redis's time is followed, so that a faster clock here does not run away from it. If it has
        // gone back, this one goes on.
        let ahead_max = i64::try_from(self.lease.as_millis() / 2).unwrap_or(i64::MAX);
        let now = state.now(monotonic);
        state.base_ms = if now.saturating_sub(redis_now) > ahead_max {
            now
        } else {
            redis_now
        };
        state.base_at = monotonic;
        state.start = state.start.max(start);
        state.limit = limit;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl OrderIds for SnowflakeIds {
    async fn next(&self) -> Result<OrderId, Fault> {
        for _ in 0..ROUNDS_MAX {
            match self.issue()? {
                Issue::Id(id) => return Ok(id),
                Issue::Lease => self.renew_if_needed().await?,
                Issue::Wait(wait) => self.clock.sleep(wait.min(self.lease)).await,
            }
        }
        Err(Fault::unavailable(
            NEXT,
            "the lease of the worker number does not begin",
        ))
    }
}

//! Ids of seconds and a daily counter: seconds since 2022-01-01T00:00:00Z in the upper 32 bits, a
//! number from a counter in Redis, which starts over every UTC day, in the lower.
//!
//! Numbers are reserved in blocks. The second is that of the reservation, by Redis's clock, and all
//! ids of a block carry it: so a block that is used up after midnight, or after a pause, cannot meet
//! another day's numbers. In Redis the second never goes back, and a counter that may have lost
//! something gives nothing out until the second in which that was noticed is over. Left open: Redis
//! loses its data *and* its clock goes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redis::Cmd;
use seckill_application::Fault;
use seckill_application::ports::{Clock, OrderIds};
use seckill_domain::OrderId;

use crate::scripts::IDS_BLOCK;
use crate::store::{Lane, Store, words};

const NEXT: &str = "order_ids.next";
/// 2022-01-01T00:00:00Z, in Unix seconds.
const START_S: u64 = 1_640_995_200;
const BLOCK: u32 = 1_000;
/// How long a block is used, so that an id tells roughly when it was issued.
const BLOCK_LIFE: Duration = Duration::from_mins(1);
/// Most rounds of reserving and waiting for one id.
const ROUNDS_MAX: usize = 8;
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The generator of one process.
pub(crate) struct DailyIds {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    block: Mutex<Block>,
    /// Held by whoever asks Redis.
    reserving: tokio::sync::Mutex<()>,
}

/// Numbers of one second, from `next` to before `end`.
#[derive(Clone, Copy)]
struct Block {
    second: u32,
    next: u32,
    end: u32,
    until: Duration,
}

impl DailyIds {
    pub(crate) fn new(store: Arc<Store>, clock: Arc<dyn Clock>) -> Self {
        let block = Block {
            second: 0,
            next: 0,
            end: 0,
            until: Duration::ZERO,
        };
        Self {
            store,
            clock,
            block: Mutex::new(block),
            reserving: tokio::sync::Mutex::new(()),
        }
    }

    fn take(&self) -> Option<OrderId> {
        let now = self.clock.monotonic();
        let mut block = self.block();
        if block.next >= block.end || now >= block.until {
            return None;
        }
        let id = u64::from(block.second) << 32 | u64::from(block.next);
        block.next += 1;
        Some(OrderId::new(id))
    }

    /// Reserves a block. How long to wait, if there is none yet.
    async fn reserve(&self) -> Result<Duration, Fault> {
        let args = |command: &mut Cmd| words(command, &[&BLOCK, &START_S, &u32::MAX]);
        let address = self.store.plain_address();
        let reply = self
            .store
            .run_at("order_ids.reserve", Lane::Gate, &IDS_BLOCK, address, &args)
            .await?;
        match reply.kind() {
            "BLOCK" => {
                let (second, from) = (reply.parsed(1)?, reply.parsed::<u32>(2)?);
                *self.block() = Block {
                    second,
                    next: from,
                    end: from.saturating_add(BLOCK),
                    until: self.clock.monotonic() + BLOCK_LIFE,
                };
                Ok(Duration::ZERO)
            }
            "WAIT" => Ok(Duration::from_millis(reply.parsed(1)?)),
            "FULL" => Err(Fault::unavailable(NEXT, "the day has no more numbers")),
            _ => Err(reply.senseless()),
        }
    }

    fn block(&self) -> MutexGuard<'_, Block> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl OrderIds for DailyIds {
    async fn next(&self) -> Result<OrderId, Fault> {
        if let Some(id) = self.take() {
            return Ok(id);
        }
        let _turn = self.reserving.lock().await;
        for _ in 0..ROUNDS_MAX {
            if let Some(id) = self.take() {
                return Ok(id);
            }
            let wait = self.reserve().await?;
            if !wait.is_zero() {
                self.clock.sleep(wait.min(WAIT_MAX)).await;
            }
        }
        Err(Fault::unavailable(
            NEXT,
            "the counter gives no numbers out yet",
        ))
    }
}

//! One partition's order writer: takes the lease, draws the fence, writes until it loses either.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use seckill_application::ports::{Lease, LeaseOwner};
use seckill_application::{Fault, OrderWriter, Step};
use seckill_domain::PartitionId;
use tokio_util::sync::CancellationToken;

use super::Context;
use super::backoff::Backoff;

/// How often a lease that another holds is asked for.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// So that processes which start together share the partitions.
const STAGGER: Duration = Duration::from_millis(15);
const TRIM_EVERY: Duration = Duration::from_secs(1);
/// A trim removes about this many at most; then there may be more.
const TRIMMED_MAX: usize = 1_000;
const TRIMS_MAX: usize = 20;
/// After a step that had nothing to do and did not wait for something.
const IDLE_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn write_partition(context: Arc<Context>, partition: PartitionId) {
    let leases = &context.system.hot.leases;
    let name = format!("writer:{partition}");
    let owner = LeaseOwner(format!("{}:{name}", context.process));
    let ttl = context.settings.lease_ttl;
    let mut backoff = Backoff::default();
    let mut pause = STAGGER * u32::from(partition.get() % 32);
    while context.rest(pause).await {
        pause = match leases.acquire(&name, &owner, ttl).await {
            Ok(None) => {
                backoff.works("asking for a partition");
                ASK_EVERY.min(ttl)
            }
            Ok(Some(lease)) => {
                backoff.works("asking for a partition");
                let shift = Shift {
                    context: &context,
                    partition,
                    consumer: owner.0.clone(),
                    lost: CancellationToken::new(),
                };
                shift.run(&lease).await
            }
            Err(fault) => backoff.fault(&fault, "asking for a partition"),
        };
    }
}

/// The time from taking a lease to giving it back.
struct Shift<'a> {
    context: &'a Context,
    partition: PartitionId,
    consumer: String,
    /// The lease is another's, or nobody's.
    lost: CancellationToken,
}

impl Shift<'_> {
    /// Returns how long to wait before asking for the lease again.
    async fn run(&self, lease: &Lease) -> Duration {
        let pause = tokio::select! {
            pause = self.work() => pause,
            never = self.watch(lease) => match never {},
        };
        if let Err(fault) = self.context.system.hot.leases.release(lease).await {
            tracing::debug!(fault = fault.chain(), "the lease will run out");
        }
        pause
    }

    /// The watchdog: renews the lease while the writer works, and tells it when the lease is lost.
    async fn watch(&self, lease: &Lease) -> Infallible {
        let system = &self.context.system;
        let ttl = self.context.settings.lease_ttl;
        let mut held_until = system.clock.monotonic() + ttl;
        loop {
            system.clock.sleep(ttl / 3).await;
            let asked = system.clock.monotonic();
            match system.hot.leases.renew(lease, ttl).await {
                Ok(true) => {
                    held_until = asked + ttl;
                    continue;
                }
                Ok(false) => {}
                Err(_) if system.clock.monotonic() < held_until => continue,
                Err(fault) => tracing::debug!(fault = fault.chain(), "lease not renewed in time"),
            }
            if !self.lost.is_cancelled() {
                tracing::warn!(partition = %self.partition, "the lease is lost");
                self.lost.cancel();
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.lost.is_cancelled() && !self.context.stop.is_asked_for()
    }

    /// Writes until the lease or the fence is lost, or a stop is asked for. The step under way is
    /// always finished.
    async fn work(&self) -> Duration {
        let clock = &self.context.system.clock;
        let settings = &self.context.settings;
        let mut backoff = Backoff::default();
        let Some(mut writer) = self.take_over(&mut backoff).await else {
            return ASK_EVERY;
        };
        tracing::info!(partition = %self.partition, "writing orders");
        let mut trim_at = clock.monotonic() + TRIM_EVERY;
        let mut was_in_part = false;
        while self.goes_on() {
            let begun = clock.monotonic();
            match writer.step().await {
                Ok(Step::Applied(written)) => {
                    backoff.works("writing orders");
                    // A transaction costs the database as much as dozens of orders. Under a load
                    // that does not fill it by itself, it is shared by what comes in a moment. A
                    // single one is the rest of what was read of a backlog, or the first in a while.
                    let in_part = written > 0 && written < settings.writer.batch_min;
                    if in_part && was_in_part {
                        self.pause(settings.writer_linger).await;
                    }
                    was_in_part = in_part;
                }
                Ok(Step::Idle) => {
                    was_in_part = false;
                    backoff.works("writing orders");
                    if clock.monotonic().saturating_sub(begun) < IDLE_PAUSE {
                        self.context.rest(IDLE_PAUSE).await;
                    }
                }
                Ok(Step::Fenced) => {
                    tracing::warn!(partition = %self.partition, "another writer took over");
                    return ASK_EVERY;
                }
                Err(fault) => self.pause(backoff.fault(&fault, "writing orders")).await,
            }
            if clock.monotonic() >= trim_at {
                trim(&writer).await;
                trim_at = clock.monotonic() + TRIM_EVERY;
            }
        }
        if let Err(fault) = writer.follow_up().await {
            tracing::debug!(fault = fault.chain(), "left to whoever takes over");
        }
        Duration::ZERO
    }

    async fn take_over(&self, backoff: &mut Backoff) -> Option<OrderWriter> {
        let system = &self.context.system;
        while self.goes_on() {
            let taken: Result<OrderWriter, Fault> = OrderWriter::take_over(
                self.partition,
                self.consumer.clone(),
                self.context.settings.writer,
                &system.hot,
                &system.ledger,
                system.recover.clone(),
                system.wanted.clone(),
                system.meters.clone(),
            )
            .await;
            match taken {
                Ok(writer) => return Some(writer),
                Err(fault) => self.pause(backoff.fault(&fault, "taking over")).await,
            }
        }
        None
    }

    async fn pause(&self, pause: Duration) {
        tokio::select! {
            _ = self.context.rest(pause) => {}
            () = self.lost.cancelled() => {}
        }
    }
}

/// Trimming can wait: a fault is not worth more than a word.
async fn trim(writer: &OrderWriter) {
    for _ in 0..TRIMS_MAX {
        match writer.trim().await {
            Ok(removed) if removed < TRIMMED_MAX => return,
            Ok(_) => {}
            Err(fault) => return tracing::debug!(fault = fault.chain(), "trimmed later"),
        }
    }
}

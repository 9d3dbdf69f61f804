//! The connection on which this process hears what others publish. There is one, however many
//! orders are followed; it is made when somebody first listens.
//!
//! Nothing is spawned for it. Whoever waits for something that is heard also keeps the connection:
//! one of those who wait has the task of making it again when it is lost, later and later as long
//! as that fails, and of asking from time to time whether it is still alive. What was published
//! meanwhile is gone, so when it is lost and when it is there again everybody is woken, to look for
//! himself. What is heard only wakes; nothing is queued, so nothing can overflow. A process that
//! reads too slowly is disconnected by Redis, and then woken.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use redis::{PushInfo, PushKind, Value};
use seckill_application::Fault;
use seckill_application::ports::Clock;
use tokio::sync::{Mutex, watch};

use crate::connection::{Connection, Dialer};
use crate::fault;
use crate::followers::Followers;
use crate::keys::Channel;
use crate::notices::orders_in;

const PORT: &str = "redis.subscription";
/// How soon a connection is tried again after a failure, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How often it is asked whether a silent connection is alive.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// What one process hears.
pub(crate) struct Subscription {
    dialer: Dialer,
    clock: Arc<dyn Clock>,
    heard: Arc<Heard>,
    upkeep: Mutex<Upkeep>,
}

/// Where what is heard goes. The driver calls it while it reads, so it only wakes.
struct Heard {
    wakes_channel: String,
    notices_channel: String,
    /// The number of the connection that is up, if one is.
    up: watch::Sender<Option<u64>>,
    /// Counts what wakes those who wait for orders to be due.
    wakes: watch::Sender<u64>,
    followers: Arc<Followers>,
}

/// What whoever keeps the connection knows of it.
#[derive(Default)]
struct Upkeep {
    connection: Option<Connection>,
    /// How many connections were tried; their numbers.
    tried: u64,
    failures: u32,
    retry_at: Duration,
    check_at: Duration,
}

impl Subscription {
    pub(crate) fn new(dialer: Dialer, namespace: &str, clock: Arc<dyn Clock>) -> Self {
        Self {
            dialer,
            clock,
            heard: Arc::new(Heard {
                wakes_channel: Channel::Wakes.of_namespace(namespace),
                notices_channel: Channel::Notices.of_namespace(namespace),
                up: watch::Sender::new(None),
                wakes: watch::Sender::new(0),
                followers: Arc::default(),
            }),
            upkeep: Mutex::default(),
        }
    }

    /// Changes when an order is due earlier than was known, or that may have been missed.
    pub(crate) fn wakes(&self) -> watch::Receiver<u64> {
        self.heard.wakes.subscribe()
    }

    /// Those who follow orders.
    pub(crate) fn followers(&self) -> &Arc<Followers> {
        &self.heard.followers
    }

    /// Returns when the connection is made, or could not be made in the time that one may take.
    pub(crate) async fn made(&self) {
        let mut up = self.heard.up.subscribe();
        if up.borrow().is_some() {
            return;
        }
        let patience = self.clock.sleep(self.dialer.connect_timeout());
        let made = self.while_kept(async { drop(up.wait_for(Option::is_some).await) });
        select(patience, pin!(made)).await;
    }

    /// Waits for something, and keeps the connection meanwhile.
    pub(crate) async fn while_kept<T>(&self, waiting: impl Future<Output = T>) -> T {
        match select(pin!(waiting), pin!(self.keep())).await {
            Either::Left((answer, _)) => answer,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Keeps the connection, as long as this is polled. Of many who do, one has the work.
    async fn keep(&self) -> Infallible {
        let mut upkeep = self.upkeep.lock().await;
        let mut up = self.heard.up.subscribe();
        loop {
            let now = self.clock.monotonic();
            if up.borrow_and_update().is_none() {
                let pause = upkeep.retry_at.saturating_sub(now);
                if !pause.is_zero() {
                    self.clock.sleep(pause).await;
                }
                self.try_to_connect(&mut upkeep).await;
                continue;
            }
            let lost = pin!(up.changed());
            let pause = self.clock.sleep(upkeep.check_at.saturating_sub(now));
            if let Either::Right(_) = select(lost, pause).await {
                self.check(&mut upkeep).await;
            }
        }
    }

    async fn try_to_connect(&self, upkeep: &mut Upkeep) {
        upkeep.connection = None;
        upkeep.tried += 1;
        match self.connect(upkeep.tried).await {
            Ok(connection) => {
                if upkeep.failures > 0 {
                    tracing::info!("hears again what other processes publish");
                }
                upkeep.failures = 0;
                upkeep.retry_at = Duration::ZERO;
                upkeep.check_at = self.clock.monotonic() + CHECK_EVERY;
                self.heard.made(upkeep.tried, &connection);
                upkeep.connection = Some(connection);
            }
            Err(fault) => {
                if upkeep.failures == 0 {
                    tracing::warn!(
                        fault = fault.chain(),
                        "hears nothing that other processes \
                        publish, and tries again"
                    );
                }
                let pause = RETRY_FIRST * 2_u32.saturating_pow(upkeep.failures.min(10));
                upkeep.failures = upkeep.failures.saturating_add(1);
                upkeep.retry_at = self.clock.monotonic() + pause.min(RETRY_MAX);
            }
        }
    }

    async fn connect(&self, number: u64) -> Result<Connection, Fault> {
        let heard = self.heard.clone();
        let mut connection = self
            .dialer
            .dial_and_hear(move |push| heard.take(number, &push))
            .await
            .map_err(|error| fault::of_connecting(PORT, error))?;
        let channels = [&self.heard.wakes_channel, &self.heard.notices_channel];
        connection
            .subscribe(&channels)
            .await
            .map_err(|error| fault::of_command(PORT, error))?;
        Ok(connection)
    }

    /// A connection whose other end is gone without a word looks like one on which nothing is said.
    async fn check(&self, upkeep: &mut Upkeep) {
        if let Some(connection) = &mut upkeep.connection
            && connection.ask(&redis::cmd("PING")).await.is_err()
        {
            self.heard.lost(upkeep.tried);
        }
        // Only now: if this was dropped before the answer, the next one asks again.
        upkeep.check_at = self.clock.monotonic() + CHECK_EVERY;
    }
}

impl Heard {
    fn take(&self, number: u64, push: &PushInfo) {
        match (&push.kind, push.data.as_slice()) {
            (PushKind::Disconnection, _) => self.lost(number),
            (PushKind::Message, [Value::BulkString(channel), Value::BulkString(message)]) => {
                if *channel == self.notices_channel.as_bytes() {
                    self.followers.wake(orders_in(message));
                } else if *channel == self.wakes_channel.as_bytes() {
                    self.wake_waiting();
                }
            }
            _ => {}
        }
    }

    /// A connection is there. What was published before is gone.
    fn made(&self, number: u64, connection: &Connection) {
        self.up.send_replace(Some(number));
        self.wake_waiting();
        self.followers.wake_all();
        // It may have been lost before anybody knew of it.
        if !connection.is_open() {
            self.lost(number);
        }
    }

    fn lost(&self, number: u64) {
        let was_up = self.up.send_if_modified(|up| {
            let it_is = *up == Some(number);
            if it_is {
                *up = None;
            }
            it_is
        });
        if was_up {
            self.wake_waiting();
            self.followers.wake_all();
        }
    }

    fn wake_waiting(&self) {
        self.wakes.send_modify(|count| *count += 1);
    }
}

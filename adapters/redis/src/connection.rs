//! Connections. One is shared by many calls at once, answers come back in the order of questions.
//!
//! Not the driver's own manager, for two reasons. It keeps a connection after a timeout, though
//! nobody knows whether it will ever answer again. And it does not tell whether a command was sent:
//! here a connection that is known to be closed is replaced *before* anything is sent, so that
//! "Redis is away" has no effect, and only an answer that got lost has an unknown one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    PushInfo, PushKind, RedisError, Value,
};
use seckill_application::Fault;

use crate::config::RedisConfig;
use crate::fault;

/// Commands that may wait in the process for the connection.
const QUEUE: usize = 4_096;
/// Bytes that are gathered before they are written.
const WRITE_BUFFER_BYTES: usize = 64 * 1_024;
/// Connections for blocking reads that are kept for the next one.
const IDLE_MAX: usize = 16;

const URL: &str = "redis.url";
const URL_ALLOWED: &str = "not a URL of Redis: redis://[[user]:password@]host[:port][/database]";

/// Reads a URL. What is wrong with it is told without it: it carries the password.
pub(crate) fn read_url(url: &str) -> Result<ConnectionInfo, Fault> {
    if url.starts_with("rediss://") || url.starts_with("valkeys://") {
        let refusal = "TLS is not built in: put a TLS proxy in front of Redis, and use redis://";
        return Err(Fault::broken(URL, refusal));
    }
    let info = url
        .into_connection_info()
        .map_err(|_| Fault::broken(URL, URL_ALLOWED))?;
    if info.redis_settings().db() < 0 {
        return Err(Fault::broken(URL, "a database has a number from 0 on"));
    }
    Ok(info)
}

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Dialer {
    client: Client,
    connect_timeout: Duration,
    response_timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, Fault> {
        let info = read_url(&config.url)?;
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        // Without it the kernel holds small requests back for up to 40 ms.
        let tcp = TcpSettings::default().set_nodelay(true);
        let info = info.set_redis_settings(settings).set_tcp_settings(tcp);
        Ok(Self {
            client: Client::open(info).map_err(|_| Fault::broken(URL, URL_ALLOWED))?,
            connect_timeout: config.connect_timeout,
            response_timeout: config.response_timeout,
        })
    }

    /// How long a connection may take.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    async fn dial(&self, response_timeout: Option<Duration>) -> Result<Connection, RedisError> {
        self.dial_with(response_timeout, |_| {}).await
    }

    /// A connection that hands over what Redis says unasked. `hear` is called while the connection
    /// is read, and must not wait; the last it hears is that the connection is lost.
    pub(crate) async fn dial_and_hear(
        &self,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        self.dial_with(Some(self.response_timeout), hear).await
    }

    async fn dial_with(
        &self,
        response_timeout: Option<Duration>,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let closed = Arc::new(AtomicBool::new(false));
        let noticed = closed.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(response_timeout)
            .set_pipeline_buffer_size(QUEUE)
            .set_write_backpressure_boundary(WRITE_BUFFER_BYTES)
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    noticed.store(true, Ordering::Release);
                }
                hear(push);
                Ok::<(), redis::aio::SendError>(())
            });
        let wire = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Ok(Connection { wire, closed })
    }
}

/// A connection. Clones are handles on the same one.
#[derive(Clone)]
pub(crate) struct Connection {
    wire: MultiplexedConnection,
    closed: Arc<AtomicBool>,
}

impl Connection {
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Hears what is published on these channels from now on.
    pub(crate) async fn subscribe(&mut self, channels: &[&String]) -> Result<(), RedisError> {
        self.wire.subscribe(channels).await
    }

    /// Sends a command and returns what Redis answered.
    pub(crate) async fn ask(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        self.wire
            .send_packed_command(command)
            .await?
            .extract_error()
    }
}

/// A connection that many share, replaced when it is lost.
pub(crate) struct Link {
    dialer: Dialer,
    current: Mutex<Option<Connection>>,
    /// Held by whoever dials.
    dialing: tokio::sync::Mutex<()>,
    /// How many attempts to connect have ended, and how the last one failed: those who waited for
    /// it share its failure, and do not each make their own.
    attempts: AtomicU64,
    failure: Mutex<Option<RedisError>>,
}

impl Link {
    pub(crate) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            current: Mutex::new(None),
            dialing: tokio::sync::Mutex::new(()),
            attempts: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    /// Sends a command and returns what Redis answered.
    pub(crate) async fn ask(
        &self,
        port: &'static str,
        command: &Cmd,
    ) -> Result<Result<Value, RedisError>, Fault> {
        let mut connection = self.connection(port).await?;
        let answer = connection.ask(command).await;
        if let Err(error) = &answer
            && fault::spoils_connection(error)
        {
            self.discard(&connection);
        }
        Ok(answer)
    }

    async fn connection(&self, port: &'static str) -> Result<Connection, Fault> {
        if let Some(open) = self.open() {
            return Ok(open);
        }
        let seen = self.attempts.load(Ordering::Acquire);
        let _turn = self.dialing.lock().await;
        if let Some(open) = self.open() {
            return Ok(open);
        }
        if self.attempts.load(Ordering::Acquire) != seen
            && let Some(failure) = lock(&self.failure).clone()
        {
            return Err(fault::of_connecting(port, failure));
        }
        let dialed = self.dialer.dial(Some(self.dialer.response_timeout)).await;
        self.attempts.fetch_add(1, Ordering::AcqRel);
        match dialed {
            Ok(connection) => {
                *lock(&self.failure) = None;
                *lock(&self.current) = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                *lock(&self.failure) = Some(error.clone());
                Err(fault::of_connecting(port, error))
            }
        }
    }

    fn open(&self) -> Option<Connection> {
        lock(&self.current).clone().filter(Connection::is_open)
    }

    fn discard(&self, spoilt: &Connection) {
        let mut current = lock(&self.current);
        if let Some(connection) = &*current
            && Arc::ptr_eq(&connection.closed, &spoilt.closed)
        {
            *current = None;
        }
    }
}

/// Connections for reads that wait: one per read, because everybody else's answer would wait too.
pub(crate) struct BlockingLinks {
    dialer: Dialer,
    idle: Mutex<Vec<Connection>>,
}

impl BlockingLinks {
    pub(crate) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Sends a command that Redis may answer up to `wait` later. If this future is dropped, so is
    /// the connection, and what it was about to be given stays pending.
    pub(crate) async fn ask(
        &self,
        port: &'static str,
        command: &Cmd,
        wait: Duration,
    ) -> Result<Result<Value, RedisError>, Fault> {
        let idle = lock(&self.idle).pop().filter(Connection::is_open);
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.dialer.dial(None).await).map_err(|it| fault::of_connecting(port, it))?,
        };
        let patience = wait + self.dialer.response_timeout;
        let late = |_| Fault::unknown(port, "Redis did not answer a blocking read in time");
        let answer = tokio::time::timeout(patience, connection.ask(command))
            .await
            .map_err(late)?;
        if !answer.as_ref().is_err_and(fault::spoils_connection) {
            let mut idle = lock(&self.idle);
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
        }
        Ok(answer)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

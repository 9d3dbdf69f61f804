//! The running service: from settings to an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;
use seckill_application::ports::Clock;
use seckill_http::{HttpApp, HttpSettings};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::adapters::Adapters;
use crate::clock::SystemClock;
use crate::config::{BadSetting, Config, Role};
use crate::demonstration::{self, Demonstration};
use crate::failure::Failure;
use crate::shutdown::Stop;
use crate::wiring::System;
use crate::workers::Workers;

/// Connections that the system keeps for us until we accept them.
const LISTEN_BACKLOG: i32 = 4_096;
/// How long a stop waits until the ledger has what this process granted.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
const DRAIN_PAUSE: Duration = Duration::from_millis(20);
/// How long a stop waits for the loops: longer than a blocking read and a batch.
const WORKERS_PATIENCE: Duration = Duration::from_secs(6);

/// A service that runs until it is stopped.
pub struct Service {
    address: SocketAddr,
    system: Arc<System>,
    adapters: Arc<Adapters>,
    workers: Workers,
    http: JoinHandle<std::io::Result<()>>,
    demonstration: Option<Demonstration>,
    role: Role,
    stop: Stop,
}

impl Service {
    /// Connects, brings the schema up to date, puts the demonstration voucher on sale where there is
    /// one, starts the loops and serves. `stop` ends the start as well.
    pub async fn start(config: &Config, stop: Stop) -> Result<Self, Failure> {
        // A port that is taken is found out before anything else is touched. Until everything is
        // ready connections are refused.
        let door = Door::reserve(config.listen)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let adapters = Adapters::connect(
            &config.stores,
            config.partitions,
            config.migrate,
            &clock,
            &stop,
        )
        .await?;
        let adapters = Arc::new(adapters);
        let system = System::wire(&adapters, config.partitions, config.batches, clock);
        let system = Arc::new(system);
        let app = Self::app(config, &system, &stop)?;
        let workers = Workers::start(
            config.role,
            system.clone(),
            adapters.clone(),
            config.workers,
            process_name(),
        );
        let demonstration = if config.demonstration {
            Some(demonstration::put_on_sale(&system, &config.auth).await?)
        } else {
            None
        };
        let (address, listener) = door.open()?;
        let http = TaskTracker::new().spawn(seckill_http::serve(listener, app));
        tracing::info!(%address, role = ?config.role, persistence = adapters.persistence, "serving");
        Ok(Self {
            address,
            system,
            adapters,
            workers,
            http,
            demonstration,
            role: config.role,
            stop,
        })
    }

    fn app(config: &Config, system: &System, stop: &Stop) -> Result<HttpApp, Failure> {
        let vitals = system.vitals(config.stores.backlog_max());
        let settings = HttpSettings {
            // A worker answers nothing but what is always answered: health and metrics.
            in_flight_max: if config.role.serves() {
                config.http.in_flight_max
            } else {
                0
            },
            ..config.http.clone()
        };
        let tokens = config.auth.verifier()?;
        Ok(HttpApp::new(
            system.api(),
            vitals,
            tokens,
            settings,
            stop.soft_token(),
        ))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The use cases that it serves.
    pub fn system(&self) -> &Arc<System> {
        &self.system
    }

    pub(crate) fn demonstration(&self) -> Option<&Demonstration> {
        self.demonstration.as_ref()
    }

    /// Returns after an orderly end: once a stop is asked for, requests that were begun are
    /// answered, batches are finished, and leases are given back.
    pub async fn run(mut self) -> Result<(), Failure> {
        let served = tokio::select! {
            served = &mut self.http => served,
            () = self.stop.ended() => {
                self.http.abort();
                self.workers.end().await;
                return Ok(());
            }
        };
        if !self.stop.is_asked_for() {
            tracing::error!("the HTTP edge ended by itself");
        }
        tokio::select! {
            () = self.finish() => tracing::info!("stopped"),
            () = self.stop.ended() => self.workers.end().await,
        }
        served.map_err(anyhow::Error::from)??;
        Ok(())
    }

    async fn finish(&self) {
        if self.role.serves() {
            self.drain().await;
        }
        self.workers.stop(WORKERS_PATIENCE).await;
        self.adapters.close().await;
    }

    /// Nobody remembers this process's grants once it is gone: waits a little until the ledger has
    /// them.
    async fn drain(&self) {
        let (clock, remembered) = (&self.system.clock, &self.system.remembered);
        let deadline = clock.monotonic() + DRAIN_PATIENCE;
        while !remembered.is_empty() && clock.monotonic() < deadline {
            clock.sleep(DRAIN_PAUSE).await;
        }
        if !remembered.is_empty() {
            let grants = remembered.len();
            tracing::warn!(
                grants,
                "stopped before the ledger had every grant; the stream has them"
            );
        }
    }
}

/// A port that is ours, and not open yet.
struct Door(Socket);

impl Door {
    fn reserve(address: SocketAddr) -> Result<Self, Failure> {
        let reserve = || {
            let socket = Socket::new(
                Domain::for_address(address),
                Type::STREAM,
                Some(Protocol::TCP),
            )?;
            // A port whose last connections have not quite ended may be taken again.
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            Ok::<_, std::io::Error>(socket)
        };
        reserve().map(Self).map_err(|error| {
            Failure::Setting(BadSetting {
                setting: "SECKILL_LISTEN",
                problem: format!("cannot listen on {address}: {error}"),
            })
        })
    }

    fn open(self) -> std::io::Result<(SocketAddr, TcpListener)> {
        self.0.listen(LISTEN_BACKLOG)?;
        let listener = TcpListener::from_std(self.0.into())?;
        Ok((listener.local_addr()?, listener))
    }
}

/// Unique among all processes of a deployment, and never used again.
#[expect(
    clippy::disallowed_methods,
    reason = "two processes must not agree on a name, whatever seed anybody chose"
)]
fn process_name() -> String {
    let chance: u64 = rand::rng().next_u64();
    format!("{}-{chance:016x}", std::process::id())
}

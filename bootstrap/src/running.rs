//! The running service: from settings to an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;

use seckill_http::{HttpApp, HttpSettings, Surface};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::config::{BadSetting, Config};
use crate::demonstration::{self, Demonstration};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::shutdown::Stop;
use crate::wiring::System;

/// Connections that the system keeps for us until we accept them.
const LISTEN_BACKLOG: i32 = 4_096;

/// A service that runs until it is stopped.
pub struct Service {
    address: SocketAddr,
    engine: Engine,
    http: JoinHandle<std::io::Result<()>>,
    demonstration: Option<Demonstration>,
    stop: Stop,
}

impl Service {
    /// Connects, brings the schema up to date, puts the demonstration voucher on sale where there is
    /// one, starts the loops and serves. `stop` ends the start as well.
    pub async fn start(config: &Config, stop: Stop) -> Result<Self, Failure> {
        // A port that is taken is found out before anything else is touched. Until everything is
        // ready connections are refused.
        let door = Door::reserve(config.listen)?;
        let engine = Engine::start(&config.engine, &stop).await?;
        let app = Self::app(config, engine.system(), &stop)?;
        let demonstration = if config.demonstration {
            Some(demonstration::put_on_sale(engine.system(), &config.auth).await?)
        } else {
            None
        };
        let (address, listener) = door.open()?;
        let http = TaskTracker::new().spawn(seckill_http::serve(listener, app));
        let persistence = engine.persistence();
        tracing::info!(%address, role = ?config.engine.role, persistence, "serving");
        Ok(Self {
            address,
            engine,
            http,
            demonstration,
            stop,
        })
    }

    fn app(config: &Config, system: &System, stop: &Stop) -> Result<HttpApp, Failure> {
        let vitals = system.vitals(config.engine.stores.backlog_max());
        let settings = HttpSettings {
            surface: if config.engine.role.serves() {
                Surface::Everything
            } else {
                Surface::Operations
            },
            ..config.http.clone()
        };
        let tokens = config.auth.verifier()?;
        Ok(HttpApp::new(
            system.api(),
            vitals,
            tokens,
            config.notices.clone(),
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
        self.engine.system()
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
                self.engine.end().await;
                return Ok(());
            }
        };
        if !self.stop.is_asked_for() {
            tracing::error!("the HTTP edge ended by itself");
        }
        tokio::select! {
            () = self.engine.finish() => tracing::info!("stopped"),
            () = self.stop.ended() => self.engine.end().await,
        }
        served.map_err(anyhow::Error::from)??;
        self.engine.refusal().map_or(Ok(()), Err)
    }
}

/// A port that is ours, and not open yet. Two who start at once may both get this far; the first to
/// open it has it.
struct Door {
    address: SocketAddr,
    socket: Socket,
}

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
        let socket = reserve().map_err(|error| Self::taken(address, &error))?;
        Ok(Self { address, socket })
    }

    fn open(self) -> Result<(SocketAddr, TcpListener), Failure> {
        let open = |socket: Socket| {
            socket.listen(LISTEN_BACKLOG)?;
            let listener = TcpListener::from_std(socket.into())?;
            Ok::<_, std::io::Error>((listener.local_addr()?, listener))
        };
        open(self.socket).map_err(|error| Self::taken(self.address, &error))
    }

    fn taken(address: SocketAddr, error: &std::io::Error) -> Failure {
        Failure::Setting(BadSetting {
            setting: "SECKILL_LISTEN",
            problem: format!("cannot listen on {address}: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_two_who_start_at_once_on_a_port_the_later_one_names_it() {
        let any = Door::reserve(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = any.socket.local_addr().unwrap().as_socket().unwrap();
        let late = Door::reserve(address).unwrap();
        let (opened, _listener) = any.open().unwrap();
        assert_eq!(opened, address);
        match late.open() {
            Err(Failure::Setting(bad)) => {
                assert_eq!(bad.setting, "SECKILL_LISTEN");
                assert!(
                    bad.problem.contains(&address.to_string()),
                    "{}",
                    bad.problem
                );
            }
            other => panic!("{other:?}"),
        }
        // Taken now, and found out at once.
        assert!(matches!(Door::reserve(address), Err(Failure::Setting(_))));
    }
}

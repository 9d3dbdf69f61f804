//! Accepts connections.

mod patience;
mod refusal;
mod told;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{HttpApp, PeerAddress};
use crate::metrics::HttpMeters;
use crate::settings::HttpSettings;
use patience::{PatientIo, Phase};
use refusal::Refusals;
use told::Told;

/// How long to wait after the system could not give a connection: usually for a file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often what is no longer needed is forgotten.
const TIDY_EVERY: Duration = Duration::from_secs(5);
/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1_024;

/// Serves until the application is told to stop; then answers what was asked, finishes what was
/// begun, and returns, after `stop_patience` at the latest.
pub async fn serve(listener: TcpListener, app: HttpApp) -> io::Result<()> {
    let settings = app.context().settings.clone();
    let mut door = Door::new(app.clone(), &settings);
    let stopping = app.context().stopping.clone();
    // Clients hear of the stop before the door closes: by /readyz, and by answers that say that
    // the connection ends.
    let mut leave = pin!(async {
        stopping.cancelled().await;
        pause(settings.stop_notice).await;
    });
    let mut tidy = tokio::time::interval(TIDY_EVERY);
    loop {
        tokio::select! {
            biased;
            () = &mut leave => break,
            _ = tidy.tick() => {
                let app = app.clone();
                door.tasks.spawn_blocking(move || app.tidy());
            }
            // Beyond the limit new connections wait in the listener's queue.
            (permit, accepted) = door.next(&listener) => match accepted {
                Ok((stream, peer)) => door.open(stream, peer, permit),
                Err(failed) => {
                    tracing::warn!(%failed, "no connection could be accepted");
                    pause(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    door.last_guests(listener)?;
    // So that what they asked is read before their connections are told to end.
    pause(ACCEPT_PAUSE).await;
    door.close(&app, settings.stop_patience).await;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the accept loop is a loop of this edge: it must not spin while the system is short of descriptors, and gives clients notice before it ends"
)]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

struct Door {
    app: HttpApp,
    http: http1::Builder,
    header_timeout: Duration,
    unread_timeout: Duration,
    places: Arc<Semaphore>,
    /// With fewer places left, connections are not kept.
    places_few: usize,
    graceful: GracefulShutdown,
    /// Cancelled when nobody who has not asked yet is waited for.
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Door {
    fn new(app: HttpApp, settings: &HttpSettings) -> Self {
        let places = settings.connections_max.min(Semaphore::MAX_PERMITS);
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(settings.idle_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .keep_alive(true);
        Self {
            app,
            http,
            header_timeout: settings.header_timeout,
            unread_timeout: settings.unread_timeout,
            places: Arc::new(Semaphore::new(places)),
            places_few: places.div_ceil(4),
            graceful: GracefulShutdown::new(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    async fn next(
        &self,
        listener: &TcpListener,
    ) -> (
        Option<OwnedSemaphorePermit>,
        io::Result<(TcpStream, SocketAddr)>,
    ) {
        let permit = self.places.clone().acquire_owned().await.ok();
        (permit, listener.accept().await)
    }

    fn open(&self, stream: TcpStream, peer: SocketAddr, permit: Option<OwnedSemaphorePermit>) {
        prepare(&stream, self.unread_timeout);
        let app = self.app.clone();
        let peer = PeerAddress(peer.ip());
        let phase = Phase::new();
        let served = phase.clone();
        let (places, places_few) = (self.places.clone(), self.places_few);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (app, phase) = (app.clone(), served.clone());
            let crowded = places.available_permits() < places_few;
            phase.busy();
            async move {
                request.extensions_mut().insert(peer);
                let mut answer = app.answer(request).await;
                if crowded {
                    // Somebody else shall have the place.
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(header::CONNECTION, close);
                }
                Ok::<_, Infallible>(answer.map(|body| Told::new(body, phase)))
            }
        });
        let refusals = Refusals::new(self.app.clone());
        let closing = self.closing.clone();
        let io = PatientIo::new(stream, phase, self.header_timeout, closing, refusals);
        let connection = self.http.serve_connection(io, service);
        let connection = self.graceful.watch(connection);
        let open = HttpMeters::connection(self.app.context());
        self.tasks.spawn(async move {
            let _held = (permit, open);
            if let Err(broken) = connection.await {
                tracing::debug!(%broken, "a connection broke");
            }
        });
    }

    /// Who stands at the door when it closes is let in.
    fn last_guests(&mut self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        while let Ok(permit) = self.places.clone().try_acquire_owned() {
            let Ok((stream, peer)) = listener.accept() else {
                break;
            };
            stream.set_nonblocking(true)?;
            self.open(TcpStream::from_std(stream)?, peer, Some(permit));
        }
        Ok(())
    }

    async fn close(self, app: &HttpApp, patience: Duration) {
        let Self {
            graceful,
            closing,
            tasks,
            ..
        } = self;
        tasks.close();
        closing.cancel();
        let quiet = async {
            graceful.shutdown().await;
            tasks.wait().await;
            app.drain().await;
        };
        if tokio::time::timeout(patience, quiet).await.is_err() {
            tracing::warn!("stopped before every connection and command had ended");
        }
    }
}

/// Answers leave at once, and a client who does not read them is given up.
fn prepare(stream: &TcpStream, unread_timeout: Duration) {
    if let Err(failed) = stream.set_nodelay(true) {
        tracing::debug!(%failed, "a connection without TCP_NODELAY");
    }
    #[cfg(target_os = "linux")]
    if let Err(failed) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(unread_timeout)) {
        tracing::debug!(%failed, "a connection without TCP_USER_TIMEOUT");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = unread_timeout;
}

//! A network that fails when it is told to: a TCP proxy between a process and a server.
//!
//! It sees bytes and knows no protocol, and does only what TCP lets happen: bytes come late, a
//! connection goes silent or breaks, and never does something in the middle get lost while what is
//! behind it arrives. So a swallowed reply is a connection on which nothing more is heard, and a
//! lost packet is one that comes a retransmission later, with everything behind it.

mod line;
mod trap;
mod weather;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use line::Line;
use trap::Snare;

pub use trap::{Fate, Trap};
pub use weather::Weather;

/// A port of this machine behind which there is a server, at a distance. Dropped, it and its
/// connections are gone.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    road: Arc<Road>,
    accepting: AbortHandle,
}

/// What all connections of a proxy have in common.
#[derive(Debug)]
struct Road {
    server: Mutex<SocketAddr>,
    weather: watch::Sender<Weather>,
    /// How often all connections were cut.
    cuts: watch::Sender<u64>,
    /// How often the servers' halves of all connections were closed.
    half_closes: watch::Sender<u64>,
    snares: Mutex<Vec<Arc<Snare>>>,
    accepted: AtomicU64,
    reached: AtomicU64,
    /// Packets that came a retransmission later.
    lost: AtomicU64,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// A proxy in front of this address, in fair weather.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let road = Arc::new(Road {
            server: Mutex::new(server),
            weather: watch::Sender::default(),
            cuts: watch::Sender::default(),
            half_closes: watch::Sender::default(),
            snares: Mutex::default(),
            accepted: AtomicU64::new(0),
            reached: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&road))).abort_handle();
        Self {
            port,
            road,
            accepting,
        }
    }

    /// A proxy in front of a server of this machine.
    pub async fn to_port(port: u16) -> Self {
        Self::to(SocketAddr::from(([127, 0, 0, 1], port))).await
    }

    /// Its own port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// New connections go to this port of the machine. Those that there are stay where they are.
    pub fn aim_at(&self, port: u16) {
        *locked(&self.road.server) = SocketAddr::from(([127, 0, 0, 1], port));
    }

    /// From now on it is like this, for what is sent from now on.
    pub fn weather(&self, weather: Weather) {
        self.road.weather.send_replace(weather);
    }

    /// Nothing arrives on either side any more, and no connection breaks: what is sent waits.
    /// Connections are still accepted.
    pub fn hold(&self) {
        self.road.weather.send_modify(|weather| weather.held = true);
    }

    /// What was held back arrives, however late, and whether anybody still waits for it or not.
    pub fn release(&self) {
        let open = |weather: &mut Weather| weather.held = false;
        self.road.weather.send_modify(open);
    }

    /// Breaks every connection, with what is under way. Returns how many there were.
    pub fn cut(&self) -> usize {
        let open = self.open();
        self.road.cuts.send_modify(|cuts| *cuts += 1);
        open
    }

    /// On every connection the server seems to have said its last word, and still hears.
    pub fn half_close(&self) {
        self.road.half_closes.send_modify(|times| *times += 1);
    }

    /// Waits for a connection on which the process has sent these texts, one after the other, and
    /// does this to the request that the last of them is in.
    pub fn trap(&self, texts: &[&str], fate: Fate) -> Trap {
        self.trap_nth(texts, 1, fate)
    }

    /// The same, to the `nth` such request, counted from 1 over all connections.
    pub fn trap_nth(&self, texts: &[&str], nth: usize, fate: Fate) -> Trap {
        let snare = Arc::new(Snare::new(texts, nth, fate));
        locked(&self.road.snares).push(Arc::clone(&snare));
        Trap::of(snare)
    }

    /// How many connections were accepted.
    pub fn accepted(&self) -> u64 {
        self.road.accepted.load(Relaxed)
    }

    /// How many of them found a server.
    pub fn reached(&self) -> u64 {
        self.road.reached.load(Relaxed)
    }

    /// How many packets were lost at first.
    pub fn lost(&self) -> u64 {
        self.road.lost.load(Relaxed)
    }

    /// How many connections there were at most, with a server behind them or not.
    pub fn most_open(&self) -> u64 {
        u64::try_from(self.road.most_open.load(Relaxed)).expect("a small number")
    }

    /// How many connections there are.
    pub fn open(&self) -> usize {
        self.road.open.load(Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts until it is aborted, which also drops all connections.
async fn accept(listener: TcpListener, road: Arc<Road>) {
    let mut lines = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        road.accepted.fetch_add(1, Relaxed);
        let open = road.open.fetch_add(1, Relaxed) + 1;
        road.most_open.fetch_max(open, Relaxed);
        let left = Left(Arc::clone(&road));
        lines.spawn(async move {
            connect(client, &left.0).await;
        });
        while lines.try_join_next().is_some() {}
    }
}

/// One connection that is counted as open.
struct Left(Arc<Road>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

async fn connect(client: TcpStream, road: &Arc<Road>) {
    // Before anything can be awaited: a cut counts from the moment of acceptance.
    let mut cuts = road.cuts.subscribe();
    let address = *locked(&road.server);
    let carried = async {
        // Nobody is there: the process sees its connection end.
        let Ok(server) = TcpStream::connect(address).await else {
            return;
        };
        road.reached.fetch_add(1, Relaxed);
        for end in [&client, &server] {
            end.set_nodelay(true).expect("a socket");
        }
        Line::new(road).carry(client, server).await;
    };
    tokio::select! {
        () = carried => {}
        _ = cuts.changed() => {}
    }
}

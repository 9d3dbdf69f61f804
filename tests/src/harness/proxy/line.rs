//! One connection through a proxy: two pipes, each with packets that are under way.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::trap::{Fate, Heard, Snare};
use super::{Road, locked};

/// Bytes of one packet at most.
const PACKET: usize = 16 * 1024;
/// Packets that may be under way in one direction; whoever sends more waits.
const UNDER_WAY: usize = 256;

/// What both directions of a connection know.
pub(super) struct Line<'a> {
    road: &'a Road,
    /// A request of this connection whose reply does not arrive.
    caught: Mutex<Option<Arc<Snare>>>,
    broken: Notify,
}

struct Packet {
    due: Instant,
    bytes: Vec<u8>,
}

impl<'a> Line<'a> {
    pub(super) fn new(road: &'a Road) -> Self {
        Self {
            road,
            caught: Mutex::default(),
            broken: Notify::new(),
        }
    }

    /// Returns when the connection is over in both directions, or broken.
    pub(super) async fn carry(&self, client: TcpStream, server: TcpStream) {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let (sent, to_bring_up) = mpsc::channel(UNDER_WAY);
        let (answered, to_bring_down) = mpsc::channel(UNDER_WAY);
        let over = async {
            tokio::join!(
                self.take(from_client, sent),
                self.bring_up(to_bring_up, to_server),
                self.take(from_server, answered),
                self.bring_down(to_bring_down, to_client),
            )
        };
        tokio::select! {
            _ = over => {}
            () = self.broken.notified() => {}
        }
    }

    /// Takes in what is said, and says when it is due on the other side. Nothing overtakes.
    async fn take(&self, mut from: OwnedReadHalf, packets: mpsc::Sender<Packet>) {
        let mut buffer = vec![0; PACKET];
        let mut due = Instant::now();
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let (late, lost) = self.road.weather.borrow().lateness(&mut rand::rng());
            self.road.lost.fetch_add(u64::from(lost), Relaxed);
            due = due.max(Instant::now() + late);
            let bytes = buffer[..read].to_vec();
            if packets.send(Packet { due, bytes }).await.is_err() {
                break;
            }
        }
    }

    async fn on_arrival(&self, packet: &Packet) {
        sleep_until(packet.due).await;
        let mut weather = self.road.weather.subscribe();
        // An error would mean that the proxy is gone, and this with it.
        let _ = weather.wait_for(|weather| !weather.held).await;
    }

    /// To the server.
    async fn bring_up(&self, mut packets: mpsc::Receiver<Packet>, mut to: OwnedWriteHalf) {
        let mut heard = Heard::default();
        while let Some(packet) = packets.recv().await {
            self.on_arrival(&packet).await;
            let snare = heard.more(&packet.bytes, &locked(&self.road.snares));
            match snare {
                Some(snare) if snare.fate() == Fate::Held => {
                    snare.spring();
                    snare.until_released().await;
                }
                Some(snare) => *locked(&self.caught) = Some(snare),
                None => {}
            }
            if to.write_all(&packet.bytes).await.is_err() {
                break;
            }
        }
        // The other side may have closed already.
        let _ = to.shutdown().await;
    }

    /// To the process.
    async fn bring_down(&self, mut packets: mpsc::Receiver<Packet>, mut to: OwnedWriteHalf) {
        let mut half_closes = self.road.half_closes.subscribe();
        let bring = async {
            while let Some(packet) = packets.recv().await {
                self.on_arrival(&packet).await;
                let snare = locked(&self.caught).clone();
                let bytes = snare.as_ref().map_or(packet.bytes.as_slice(), |snare| {
                    let heard = match snare.fate() {
                        Fate::Broken { after } => after,
                        Fate::Held | Fate::Unanswered => 0,
                    };
                    &packet.bytes[..heard.min(packet.bytes.len())]
                });
                if to.write_all(bytes).await.is_err() {
                    break;
                }
                if let Some(snare) = snare {
                    snare.spring();
                    if snare.fate() != Fate::Unanswered {
                        self.broken.notify_one();
                    }
                }
            }
        };
        tokio::select! {
            () = bring => {}
            _ = half_closes.changed() => {}
        }
        // The other side may have closed already.
        let _ = to.shutdown().await;
        // The server is still heard out, or it would stop listening.
        while packets.recv().await.is_some() {}
    }
}

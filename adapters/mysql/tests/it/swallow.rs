//! A way to the server that loses the answer to a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seckill_mysql::{LedgerConfig, MySqlLedger};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::server::FreshDatabase;

/// A ledger whose commits go through and are not answered, once it is armed.
pub(crate) struct Swallowing {
    pub(crate) ledger: MySqlLedger,
    armed: Arc<AtomicBool>,
}

impl Swallowing {
    pub(crate) async fn connect(database: &FreshDatabase) -> Self {
        Self::of(database, usize::MAX, Duration::from_secs(10)).await
    }

    /// As many connections as this, and how long the ledger tries to have another.
    pub(crate) async fn of(database: &FreshDatabase, most: usize, patience: Duration) -> Self {
        let (before, rest) = database.url.split_once('@').unwrap();
        let (server, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let armed = Arc::new(AtomicBool::new(false));
        tokio::spawn(relay(listener, most, server.to_owned(), armed.clone()));
        // Without encryption, or a commit could not be told from anything else. MySQL lets a user in
        // who has been in before.
        let url = format!("{before}@127.0.0.1:{port}/{path}?ssl-mode=DISABLED");
        let config = LedgerConfig {
            statement_timeout: Duration::from_secs(1),
            acquire_timeout: patience,
            ..LedgerConfig::new(url)
        };
        let ledger = MySqlLedger::connect(config).await.unwrap();
        Self { ledger, armed }
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }
}

async fn relay(listener: TcpListener, most: usize, server: String, armed: Arc<AtomicBool>) {
    for _ in 0..most {
        let Ok((client, _)) = listener.accept().await else {
            break;
        };
        let server = TcpStream::connect(&server).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let deaf = Arc::new(AtomicBool::new(false));
        let hears = (armed.clone(), deaf.clone());
        tokio::spawn(ask(from_client, to_server, hears));
        tokio::spawn(answer(from_server, to_client, deaf));
    }
}

type Flags = (Arc<AtomicBool>, Arc<AtomicBool>);

async fn ask(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, (armed, deaf): Flags) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = client.read(&mut buffer).await {
        let says = &buffer[..count];
        if says.windows(7).any(|word| word == b"\x03COMMIT") && armed.load(Ordering::SeqCst) {
            deaf.store(true, Ordering::SeqCst);
        }
        if server.write_all(says).await.is_err() {
            break;
        }
    }
}

async fn answer(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, deaf: Arc<AtomicBool>) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = server.read(&mut buffer).await {
        if !deaf.load(Ordering::SeqCst) && client.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}

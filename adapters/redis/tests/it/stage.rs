//! A Redis with a partition and a sale in it, and what tests ask of them.

use std::net::TcpListener;
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use redis::FromRedisValue;
use seckill_application::ports::{
    Admitted, Clock, Delivery, EntryId, EpochBegun, HotPath, LoadBegun, LoadChunk, LoadStep,
    LoadToken, OpenSale, Opened, StreamReply,
};
use seckill_domain::{
    Admission, Attempt, BuyerId, Decision, Epoch, GateVersion, OrderId, PartitionId, Partitions,
    Pulse, SaleStatus, SaleTerms, Sequence, Ticket, Timestamp, VoucherId,
};
use seckill_redis::{RedisConfig, RedisHotPath};

pub(crate) const VOUCHER: VoucherId = VoucherId::new(7);
pub(crate) const PARTITION: PartitionId = PartitionId::new(1);
pub(crate) const EPOCH: Epoch = Epoch::new(1);
/// The keys of the partition begin with this.
pub(crate) const TAG: &str = "{seckill:p1}";

/// A redis-server that ends with its test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start(options: &[&str]) -> Self {
        // Somebody else may take the port in between.
        for _ in 0..5 {
            let folder = tempfile::tempdir().expect("a folder for the server's data");
            let port = free_port();
            let mut server = Self {
                child: launch(port, folder.path(), options),
                port,
                folder,
            };
            if server.answers().await {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the server is ours to kill");
        self.child.wait().expect("it ends");
    }

    /// Starts it again on the same data.
    pub(crate) async fn restart(&mut self, options: &[&str]) {
        self.child = launch(self.port, self.folder.path(), options);
        assert!(self.answers().await, "redis-server does not start again");
    }

    async fn answers(&mut self) -> bool {
        let client = redis::Client::open(self.url()).expect("a URL");
        for _ in 0..200 {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await {
                match redis::cmd("PING")
                    .query_async::<String>(&mut connection)
                    .await
                {
                    Ok(_) => return true,
                    Err(error) if error.code() == Some("NOAUTH") => return true,
                    Err(_) => {}
                }
            }
            pause(20).await;
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(port: u16, folder: &std::path::Path, options: &[&str]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--enable-debug-command", "local", "--save", "", "--dir"])
        .arg(folder)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server runs; it is in the package redis-server")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its number").port()
}

#[expect(clippy::disallowed_methods, reason = "the server's time is real")]
pub(crate) async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// The machine's clock.
pub(crate) struct RealClock(Instant);

impl RealClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the tests is the real one"
    )]
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

#[async_trait]
impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, pause: Duration) {
        self::pause(u64::try_from(pause.as_millis()).expect("short") + 1).await;
    }
}

/// A hot path over a server.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) redis: RedisHotPath,
    pub(crate) hot: HotPath,
    raw: redis::aio::MultiplexedConnection,
}

impl Stage {
    /// A partition without a sale.
    pub(crate) async fn bare() -> Self {
        Self::with(&[], |_| {}).await
    }

    /// A partition that has decided so much already.
    pub(crate) async fn bare_after(sequence: u64) -> Self {
        let stage = Self::bare().await;
        stage.raw::<i64>("DEL {seckill:p1}:meta").await;
        let sequence = Sequence::new(sequence);
        let begun = stage
            .hot
            .loader
            .begin_epoch(PARTITION, EPOCH, sequence)
            .await;
        assert_eq!(begun.unwrap(), EpochBegun::Begun);
        stage
    }

    pub(crate) async fn with(options: &[&str], change: impl FnOnce(&mut RedisConfig)) -> Self {
        Self::over(Server::start(options).await, change).await
    }

    pub(crate) async fn over(server: Server, change: impl FnOnce(&mut RedisConfig)) -> Self {
        let mut config = config(&server);
        change(&mut config);
        let redis = RedisHotPath::connect(&config, RealClock::new())
            .await
            .unwrap_or_else(|fault| panic!("{}", fault.chain()));
        let client = redis::Client::open(server.url()).expect("a URL");
        let slow =
            redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
        let raw = client
            .get_multiplexed_async_connection_with_config(&slow)
            .await
            .expect("a connection");
        let hot = redis.ports();
        hot.loader
            .begin_epoch(PARTITION, EPOCH, Sequence::new(0))
            .await
            .expect("an epoch");
        Self {
            server,
            redis,
            hot,
            raw,
        }
    }

    /// A sale that is open.
    pub(crate) async fn selling(free: u32, change: impl FnOnce(&mut SaleTerms)) -> Self {
        let stage = Self::bare().await;
        let mut terms = terms(free);
        change(&mut terms);
        stage.open(terms, free).await;
        stage
    }

    /// Loads a sale with nobody in it, and opens it.
    pub(crate) async fn open(&self, terms: SaleTerms, free: u32) {
        self.load(terms, free, &LoadChunk::default()).await;
    }

    pub(crate) async fn load(&self, terms: SaleTerms, free: u32, chunk: &LoadChunk) {
        let token = LoadToken("loader".to_owned());
        let ttl = Duration::from_secs(10);
        let begun = self
            .hot
            .loader
            .begin_load(VOUCHER, &token, ttl)
            .await
            .unwrap();
        let LoadBegun::Begun { sequence, .. } = begun else {
            panic!("{begun:?}");
        };
        let step = self
            .hot
            .loader
            .load(VOUCHER, &token, chunk, 0)
            .await
            .unwrap();
        assert_eq!(step, LoadStep::Done(sequence));
        let sale = OpenSale {
            terms,
            free,
            version: GateVersion::new(1),
            applied: sequence,
        };
        let opened = self
            .hot
            .loader
            .open(VOUCHER, &token, &sale, 1)
            .await
            .unwrap();
        assert_eq!(opened, Opened::Opened);
    }

    /// Answers to a batch, and the sale after it.
    pub(crate) async fn batch(&self, attempts: &[Attempt]) -> (Vec<Admission>, Pulse) {
        match self.hot.gate.admit(VOUCHER, attempts).await {
            Ok(Admitted::Decided { admissions, pulse }) => (admissions, pulse),
            Ok(other) => panic!("{other:?}"),
            Err(fault) => panic!("{}", fault.chain()),
        }
    }

    pub(crate) async fn buy(&self, order: u64, buyer: u64, quantity: u32) -> Admission {
        self.attempt(&attempt(order, buyer, quantity)).await
    }

    pub(crate) async fn attempt(&self, attempt: &Attempt) -> Admission {
        let (mut admissions, _) = self.batch(std::slice::from_ref(attempt)).await;
        admissions.pop().expect("one answer")
    }

    /// What the gate says to one attempt, whatever it is.
    pub(crate) async fn admitted(&self, order: u64, buyer: u64) -> Admitted {
        let attempts = [attempt(order, buyer, 1)];
        match self.hot.gate.admit(VOUCHER, &attempts).await {
            Ok(admitted) => admitted,
            Err(fault) => panic!("{}", fault.chain()),
        }
    }

    /// Every entry of the stream.
    pub(crate) async fn entries(&self, after: EntryId) -> Vec<Delivery> {
        let reply = self
            .hot
            .stream
            .read_after(PARTITION, EPOCH, after, 512)
            .await
            .unwrap();
        match reply {
            StreamReply::Entries(entries) => entries,
            StreamReply::Missing => panic!("no stream"),
        }
    }

    /// Every decision of the stream, which must be numbered without a gap.
    pub(crate) async fn decisions(&self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        let mut next = None;
        for delivery in self.entries(EntryId::START).await {
            let entry = delivery.body.expect("ours");
            assert_eq!(entry.first, next.unwrap_or(entry.first), "a gap");
            next = Some(Sequence::new(
                entry.first.get() + entry.decisions.len() as u64,
            ));
            decisions.extend(entry.decisions);
        }
        decisions
    }

    /// A plain command: words separated by spaces.
    pub(crate) async fn raw<T: FromRedisValue>(&self, line: &str) -> T {
        self.command(&line.split(' ').collect::<Vec<_>>()).await
    }

    pub(crate) async fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::Cmd::new();
        command.arg(words);
        command
            .query_async(&mut self.raw.clone())
            .await
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// Everything that is stored, key by key, as Redis would dump it.
    pub(crate) async fn everything(&self) -> Vec<(String, Vec<u8>)> {
        let mut keys: Vec<String> = self.raw("KEYS *").await;
        keys.sort_unstable();
        let mut dump = Vec::new();
        for key in keys {
            let value = self.command(&["DUMP", &key]).await;
            dump.push((key, value));
        }
        dump
    }

    /// One more process over the same server.
    pub(crate) async fn another(&self) -> RedisHotPath {
        RedisHotPath::connect(&config(&self.server), RealClock::new())
            .await
            .unwrap_or_else(|fault| panic!("{}", fault.chain()))
    }
}

pub(crate) fn config(server: &Server) -> RedisConfig {
    let partitions = Partitions::new(NonZeroU16::new(2).expect("not zero"));
    RedisConfig {
        id_lease: Duration::from_millis(300),
        ..RedisConfig::new(server.url(), partitions)
    }
}

/// A key of the voucher.
pub(crate) fn key(name: &str) -> String {
    match name {
        "meta" | "decided" => format!("{TAG}:{name}"),
        "stream" => format!("{TAG}:stream:{EPOCH}"),
        name => format!("{TAG}:v{VOUCHER}:{name}"),
    }
}

/// A sale of `total` units, 1 per buyer, nobody may wait, open for a long time.
pub(crate) fn terms(total: u32) -> SaleTerms {
    SaleTerms {
        status: SaleStatus::Published,
        opens_at: Timestamp::from_millis(1_600_000_000_000),
        closes_at: Timestamp::from_millis(4_000_000_000_000),
        per_buyer_limit: 1,
        waitlist_capacity: 0,
        total_units: total,
    }
}

pub(crate) fn attempt(order: u64, buyer: u64, quantity: u32) -> Attempt {
    Attempt {
        order: OrderId::new(order),
        buyer: BuyerId::new(buyer),
        quantity,
        key: None,
    }
}

pub(crate) fn keyed(order: u64, buyer: u64, quantity: u32, key: &str) -> Attempt {
    Attempt {
        key: Some(key.parse().expect("a key")),
        ..attempt(order, buyer, quantity)
    }
}

pub(crate) fn granted(order: u64) -> Admission {
    Admission::Granted {
        order: OrderId::new(order),
    }
}

/// A place that was taken by the decision of this number.
pub(crate) fn waitlisted(order: u64, position: u32, number: u64) -> Admission {
    Admission::Waitlisted {
        order: OrderId::new(order),
        position,
        ticket: Ticket::drawn_at(EPOCH, Sequence::new(number)),
    }
}

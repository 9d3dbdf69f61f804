//! A deployment of the service: its stores, and the processes that share them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::OnceCell;

use super::gate::Gate;
use super::ledger::Ledger;
use super::process::{Process, Ran};
use super::provider::{self, PAYMENTS_SECRET};
use super::proxy::Proxy;
use super::shop::Shop;
use crate::stack::{self, FreshDatabase, PrivateStack, RealStack};

/// The stores of one deployment, and how to start processes on them. Processes are the test's to
/// keep; the stores go with this.
#[derive(Debug)]
pub struct Site {
    program: &'static str,
    stores: Stores,
    settings: Vec<(String, String)>,
    standing: Option<Arc<Process>>,
}

#[derive(Debug)]
enum Stores {
    Memory,
    Real(Arc<Real>),
}

#[derive(Debug)]
struct Real {
    redis_url: String,
    database: FreshDatabase,
    namespace: String,
    servers: Option<PrivateStack>,
}

/// A process that tests share, with its stores.
type Standing = OnceCell<(Arc<Process>, Option<Arc<Real>>)>;

static IN_MEMORY: Standing = OnceCell::const_new();
static ON_SERVERS: Standing = OnceCell::const_new();

impl Site {
    fn new(program: &'static str, stores: Stores) -> Self {
        Self {
            program,
            stores,
            settings: vec![(PAYMENTS_SECRET.to_owned(), provider::SECRET.to_owned())],
            standing: None,
        }
    }

    fn on(program: &'static str, real: &Arc<Real>) -> Self {
        let settings = [
            ("SECKILL_GATE", real.redis_url.as_str()),
            ("SECKILL_LEDGER", real.database.url()),
            ("SECKILL_NAMESPACE", real.namespace.as_str()),
        ];
        let site = Self::new(program, Stores::Real(Arc::clone(real)));
        settings
            .into_iter()
            .fold(site, |site, (name, value)| site.with(name, value))
    }

    /// The stores of a process of its own in memory.
    pub fn memory(program: &'static str) -> Self {
        stack::memory();
        Self::new(program, Stores::Memory)
    }

    /// A database and a key namespace of its own on the servers that the tests share. `None` as in
    /// [`stack::shared`].
    pub async fn shared(program: &'static str) -> Option<Self> {
        let servers = stack::shared().await?;
        Some(Self::on(program, &fresh(servers).await))
    }

    /// Servers of its own, which it may kill. `None` as in [`stack::private`].
    pub async fn private(program: &'static str) -> Option<Self> {
        let servers = stack::private().await?;
        let real = Real {
            redis_url: servers.stack.redis_url().to_owned(),
            database: servers.stack.fresh_database().await,
            namespace: servers.stack.fresh_namespace(),
            servers: Some(servers),
        };
        Some(Self::on(program, &Arc::new(real)))
    }

    /// The one process in memory that all tests share which leave it alone.
    pub async fn standing_memory(program: &'static str) -> Self {
        let mut site = Self::memory(program);
        let start = async || (Arc::new(site.start().await), None);
        site.standing = Some(Arc::clone(&IN_MEMORY.get_or_init(start).await.0));
        site
    }

    /// The one process on the shared servers that all tests share which leave it alone. `None` as
    /// in [`stack::shared`].
    pub async fn standing_shared(program: &'static str) -> Option<Self> {
        let servers = stack::shared().await?;
        let start = async || {
            let real = fresh(servers).await;
            let process = Self::on(program, &real).start().await;
            (Arc::new(process), Some(real))
        };
        let (process, real) = ON_SERVERS.get_or_init(start).await;
        let mut site = Self::on(program, real.as_ref()?);
        site.standing = Some(Arc::clone(process));
        Some(site)
    }

    /// Processes started from now on have this setting too.
    #[must_use]
    pub fn with(mut self, setting: &str, value: &str) -> Self {
        self.settings.push((setting.to_owned(), value.to_owned()));
        self
    }

    /// Processes started from now on do not have this setting.
    #[must_use]
    pub fn without(mut self, setting: &str) -> Self {
        self.settings.retain(|(name, _)| name != setting);
        self
    }

    /// Processes started from now on reach Redis through this proxy.
    #[must_use]
    pub fn with_redis_behind(self, proxy: &Proxy) -> Self {
        let url = through(proxy, &self.real().redis_url);
        self.with("SECKILL_GATE", &url)
    }

    /// Starts one more process, which has a way of its own to Redis.
    pub async fn start_with_redis_behind(&self, proxy: &Proxy) -> Process {
        let url = through(proxy, &self.real().redis_url);
        let mut settings = self.settings.clone();
        settings.push(("SECKILL_GATE".to_owned(), url));
        started(Process::start(self.program, &settings, new_log()).await)
    }

    /// Processes started from now on reach the database through this proxy, which can read along.
    #[must_use]
    pub fn with_mysql_behind(self, proxy: &Proxy) -> Self {
        let url = through(proxy, self.real().database.url());
        let readable = "ssl-mode=DISABLED";
        let separator = if url.contains('?') { '&' } else { '?' };
        self.with("SECKILL_LEDGER", &format!("{url}{separator}{readable}"))
    }

    /// A proxy in front of the Redis of a site that has its own.
    pub async fn proxy_to_redis(&self) -> Proxy {
        Proxy::to_port(self.servers().redis.port()).await
    }

    /// A proxy in front of the database of a site that has its own.
    pub async fn proxy_to_mysql(&self) -> Proxy {
        Proxy::to_port(self.servers().mysql.port()).await
    }

    /// Starts one more process, and waits until it is ready.
    pub async fn start(&self) -> Process {
        started(Process::start(self.program, &self.settings, new_log()).await)
    }

    /// Runs the program once, with these arguments, on the same stores.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        super::process::run(self.program, arguments, &self.settings).await
    }

    /// As [`Site::run`], with other settings than the site's.
    pub async fn run_with(&self, arguments: &[&str], others: &[(&str, &str)]) -> Ran {
        let mut settings = self.settings.clone();
        settings.extend(others.iter().map(|(name, value)| {
            let setting: (String, String) = ((*name).to_owned(), (*value).to_owned());
            setting
        }));
        super::process::run(self.program, arguments, &settings).await
    }

    /// Where the gate is.
    pub fn gate_url(&self) -> &str {
        &self.real().redis_url
    }

    /// A client of the process that tests share.
    pub fn shop(&self) -> Shop {
        self.standing
            .as_ref()
            .expect("a site with a standing process")
            .shop()
    }

    /// Whether the stores are real ones.
    pub fn is_real(&self) -> bool {
        matches!(self.stores, Stores::Real(_))
    }

    /// The servers, of a site that has its own.
    pub fn servers(&self) -> &PrivateStack {
        let servers = self.real().servers.as_ref();
        servers.expect("a site with servers of its own")
    }

    /// A look behind the gate.
    pub async fn gate(&self) -> Gate {
        let real = self.real();
        Gate::connect(&real.redis_url, &real.namespace).await
    }

    /// A look behind the gate of another Redis of this machine, such as a replica.
    pub async fn gate_at(&self, port: u16) -> Gate {
        let url = format!("redis://127.0.0.1:{port}");
        Gate::connect(&url, &self.real().namespace).await
    }

    /// The same ledger, of a deployment that has moved to another Redis of this machine.
    pub async fn ledger_beside(&self, port: u16) -> Ledger {
        let url = format!("redis://127.0.0.1:{port}");
        let ledger = self.ledger().await;
        ledger.beside(&url, &self.real().namespace)
    }

    /// A look into the ledger, beside its gate.
    pub async fn ledger(&self) -> Ledger {
        let real = self.real();
        let ledger = Ledger::connect(real.database.url()).await;
        ledger.beside(&real.redis_url, &real.namespace)
    }

    /// A look into the ledger, if there is one to look into.
    pub async fn ledger_if_real(&self) -> Option<Ledger> {
        match self.stores {
            Stores::Memory => None,
            Stores::Real(_) => Some(self.ledger().await),
        }
    }

    fn real(&self) -> &Real {
        match &self.stores {
            Stores::Real(real) => real,
            Stores::Memory => panic!("nobody can look into a process's memory"),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let (true, Some(process)) = (std::thread::panicking(), &self.standing) {
            eprintln!("--- the process says\n{}", process.log_tail());
        }
    }
}

fn started(process: Result<Process, String>) -> Process {
    process.unwrap_or_else(|error| panic!("the service does not start: {error}"))
}

async fn fresh(servers: &RealStack) -> Arc<Real> {
    Arc::new(Real {
        redis_url: servers.redis_url().to_owned(),
        database: servers.fresh_database().await,
        namespace: servers.fresh_namespace(),
        servers: None,
    })
}

/// The same address at a proxy's port.
fn through(proxy: &Proxy, url: &str) -> String {
    let (scheme, rest) = url.split_once("//").expect("a scheme");
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let user = server.rsplit_once('@').map_or("", |(user, _)| user);
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}//{user}{at}127.0.0.1:{}/{path}", proxy.port())
}

fn new_log() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    stack::run_folder().join(format!("process-{number}.log"))
}

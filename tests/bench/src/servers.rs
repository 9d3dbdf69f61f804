//! A Redis and a MySQL server of this machine, with every write on disk before it is answered.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use redis::aio::MultiplexedConnection;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};

use crate::children::Process;

const READY_WITHIN: Duration = Duration::from_mins(1);

/// Both servers. Their data is removed when this is dropped.
#[derive(Debug)]
pub struct Servers {
    /// Redis.
    pub redis: Process,
    /// MySQL or `MariaDB`.
    pub mysql: Process,
    /// Where Redis listens.
    pub redis_address: SocketAddr,
    mysql_port: u16,
    /// Where everything is written.
    pub folder: tempfile::TempDir,
}

/// The programs that are needed.
#[derive(Debug, Clone)]
pub struct Programs {
    redis: PathBuf,
    mysql: PathBuf,
    /// The reference client of Redis.
    pub redis_benchmark: PathBuf,
}

impl Programs {
    /// Those of this machine.
    pub fn find() -> anyhow::Result<Self> {
        Ok(Self {
            redis: find(&["redis-server"], "redis-server")?,
            mysql: find(&["mariadbd", "mysqld"], "mariadb-server")?,
            redis_benchmark: find(&["redis-benchmark"], "redis-tools")?,
        })
    }

    /// What they say they are.
    pub fn versions(&self) -> Vec<String> {
        [&self.redis, &self.mysql]
            .map(|program| {
                let said = std::process::Command::new(program)
                    .arg("--version")
                    .output();
                let said = said.map(|said| said.stdout).unwrap_or_default();
                String::from_utf8_lossy(&said).trim().to_owned()
            })
            .to_vec()
    }
}

fn find(names: &[&str], package: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .collect();
    let candidates = names
        .iter()
        .flat_map(|name| folders.iter().map(move |it| it.join(name)));
    let found = candidates.into_iter().find(|program| program.is_file());
    found.with_context(|| {
        format!(
            "no {} here: install the package {package}",
            names.join(" or ")
        )
    })
}

/// A port that nobody listens on.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Servers {
    /// Starts both with empty data.
    pub async fn start(programs: &Programs) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("seckill-bench-")
            .tempdir()?;
        let redis_port = free_port()?;
        let redis_address = SocketAddr::from(([127, 0, 0, 1], redis_port));
        let redis = start_redis(programs, folder.path(), redis_port)?;
        let mysql_port = free_port()?;
        let mysql = start_mysql(programs, folder.path(), mysql_port)?;
        let mut servers = Self {
            redis,
            mysql,
            redis_address,
            mysql_port,
            folder,
        };
        servers.until_ready().await?;
        Ok(servers)
    }

    async fn until_ready(&mut self) -> anyhow::Result<()> {
        let address = self.redis_address;
        (self.redis)
            .until(READY_WITHIN, async || connect_redis(address).await.is_ok())
            .await?;
        let options = self.mysql_options("");
        let up = async || MySqlPool::connect_with(options.clone()).await.is_ok();
        self.mysql.until(READY_WITHIN, up).await
    }

    /// The address of Redis as a URL.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.redis_address)
    }

    /// The address of a database as a URL.
    pub fn mysql_url(&self, database: &str) -> String {
        format!(
            "mysql://bench:bench@127.0.0.1:{}/{database}",
            self.mysql_port
        )
    }

    /// A connection to Redis.
    pub async fn connect_redis(&self) -> anyhow::Result<MultiplexedConnection> {
        connect_redis(self.redis_address).await
    }

    /// A few connections to a database.
    pub async fn connect_mysql(&self, database: &str) -> anyhow::Result<MySqlPool> {
        let pool = MySqlPoolOptions::new()
            .max_connections(2)
            .test_before_acquire(false);
        Ok(pool.connect_with(self.mysql_options(database)).await?)
    }

    fn mysql_options(&self, database: &str) -> MySqlConnectOptions {
        let options = MySqlConnectOptions::new()
            .host("127.0.0.1")
            .port(self.mysql_port)
            .username("bench")
            .password("bench");
        match database {
            "" => options,
            name => options.database(name),
        }
    }

    /// Kills Redis and starts it again on its data; returns how long it took to load them.
    pub async fn restart_redis(&mut self, programs: &Programs) -> anyhow::Result<Duration> {
        self.redis.kill().await?;
        let begun = std::time::Instant::now();
        self.redis = start_redis(programs, self.folder.path(), self.redis_address.port())?;
        let address = self.redis_address;
        self.redis
            .until(READY_WITHIN, async || connect_redis(address).await.is_ok())
            .await?;
        Ok(begun.elapsed())
    }
}

async fn connect_redis(address: SocketAddr) -> anyhow::Result<MultiplexedConnection> {
    let client = redis::Client::open(format!("redis://{address}"))?;
    let config = redis::AsyncConnectionConfig::new()
        .set_response_timeout(Some(Duration::from_mins(1)))
        .set_connection_timeout(Some(Duration::from_secs(2)));
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    // Loading its data it accepts connections and answers LOADING.
    redis::cmd("PING")
        .query_async::<()>(&mut connection)
        .await?;
    Ok(connection)
}

fn start_redis(programs: &Programs, folder: &Path, port: u16) -> anyhow::Result<Process> {
    let data = folder.join("redis");
    std::fs::create_dir_all(&data)?;
    let port = port.to_string();
    let dir = data.to_string_lossy().into_owned();
    let args = [
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--dir",
        &dir,
        "--daemonize",
        "no",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--save",
        "",
        "--maxmemory-policy",
        "noeviction",
        "--maxclients",
        "12000",
        // A rewrite in the middle of a run would be measured with it.
        "--auto-aof-rewrite-percentage",
        "0",
    ];
    Process::start(
        "redis-server",
        &programs.redis,
        args,
        &[],
        &data.join("log"),
    )
}

fn start_mysql(programs: &Programs, folder: &Path, port: u16) -> anyhow::Result<Process> {
    let place = folder.join("mysql");
    let data = place.join("data");
    std::fs::create_dir_all(&place)?;
    initialise(&programs.mysql, &place, &data)?;
    let init = place.join("init.sql");
    let statements = "CREATE USER 'bench'@'%' IDENTIFIED BY 'bench';\n\
                      GRANT ALL PRIVILEGES ON *.* TO 'bench'@'%';\n";
    std::fs::write(&init, statements)?;
    let option = |name: &str, value: &Path| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value);
        option
    };
    let mut args = vec![OsString::from("--no-defaults")];
    args.extend(as_root());
    args.extend([
        option("datadir", &data),
        option("socket", &place.join("socket")),
        option("pid-file", &place.join("pid")),
        option("init-file", &init),
        format!("--port={port}").into(),
    ]);
    args.extend(
        [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--max-connections=200",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=512M",
            "--innodb-log-file-size=256M",
            "--skip-log-bin",
            "--performance-schema=OFF",
        ]
        .map(OsString::from),
    );
    // A database that starts deletes the temporary files of all others there.
    let own = place.to_string_lossy().into_owned();
    Process::start(
        "the MySQL server",
        &programs.mysql,
        args,
        &[("TMPDIR", own)],
        &place.join("log"),
    )
}

/// Both kinds of server refuse to run as root unless told so.
fn as_root() -> Option<OsString> {
    use std::os::unix::fs::MetadataExt as _;
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    root.then(|| OsString::from("--user=root"))
}

fn initialise(program: &Path, place: &Path, data: &Path) -> anyhow::Result<()> {
    let is_mariadb = program.file_name().is_some_and(|name| name == "mariadbd");
    let data_option = format!("--datadir={}", data.display());
    let mut command = if is_mariadb {
        let mut command = std::process::Command::new("mariadb-install-db");
        command.args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]);
        command
    } else {
        let mut command = std::process::Command::new(program);
        command.args(["--no-defaults", "--initialize-insecure"]);
        command
    };
    command.env("TMPDIR", place);
    let done = command.args(as_root()).arg(data_option).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "the database could not be initialised: {said}"
    );
    Ok(())
}

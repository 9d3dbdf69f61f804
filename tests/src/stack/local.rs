//! A stack of server processes of this machine.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngExt as _;
use tempfile::TempDir;

use super::probe::Protocol;
use super::programs::Programs;
use super::server::{LocalServer, Recipe};
use super::{RealStack, Source, mysql_data, reaper};

/// Ports are taken from below the range from which systems give out ports by
/// themselves. In that range an outgoing connection may hold the port when a
/// killed server wants it back, or a client may even connect to itself.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// How often another port is tried when somebody else was quicker.
const ATTEMPTS: usize = 5;
/// The user the tests log in as, and its password.
const USER: &str = "seckill";
/// Connections the database admits: several processes with a pool each.
const MAX_CONNECTIONS: u16 = 300;

/// Servers that belong to one test, which may kill them. Dropped, they are
/// killed and their data is removed.
#[derive(Debug)]
pub struct PrivateStack {
    /// The addresses and versions.
    pub stack: RealStack,
    /// The Redis server: every write is on disk before it is answered.
    pub redis: LocalServer,
    /// The MySQL or MariaDB server: every commit is on disk before it is answered.
    pub mysql: LocalServer,
    programs: Programs,
    // Last, so that it is removed when the servers have gone.
    folder: TempDir,
}

impl PrivateStack {
    /// Starts both servers with empty data.
    pub(super) async fn start(programs: &Programs) -> Result<Self, String> {
        let folder = new_folder()?;
        let place = folder
            .path()
            .canonicalize()
            .map_err(|error| error.to_string())?;
        reaper::remove_folder(&place);
        let (redis, mysql) = tokio::join!(
            start_on_some_port(|port| redis_recipe(&programs.redis, &place, port)),
            start_on_some_port(|port| mysql_recipe(&programs.mysql, &place, port)),
        );
        let ((redis, redis_version), (mysql, mysql_version)) = (redis?, mysql?);
        let stack = RealStack::new(
            Source::Local,
            format!("redis://127.0.0.1:{}", redis.port()),
            format!("mysql://{USER}:{USER}@127.0.0.1:{}/", mysql.port()),
            redis_version,
            mysql_version,
        );
        Ok(Self {
            stack,
            redis,
            mysql,
            programs: programs.clone(),
            folder,
        })
    }

    /// Starts one more Redis server, with nothing in it; a test has at most one such.
    pub async fn another_redis(&self) -> LocalServer {
        let place = self.folder.path().canonicalize().expect("the folder");
        let place = place.join("another");
        let recipe = |port| redis_recipe(&self.programs.redis, &place, port);
        let started = start_on_some_port(recipe).await;
        started.unwrap_or_else(|error| panic!("{error}")).0
    }
}

impl PrivateStack {
    /// Starts a Sentinel, alone, that watches the primary at this port of the machine, and promotes
    /// a replica of it once it has not answered for so long. Whom it promotes it writes into the
    /// file `promoted` of its folder, as a port.
    pub async fn sentinel(&self, primary: u16, down_after: Duration) -> LocalServer {
        let place = self.folder.path().canonicalize().expect("the folder");
        let place = place.join("sentinel");
        let recipe =
            |port| sentinel_recipe(&self.programs.redis, &place, port, primary, down_after);
        let started = start_on_some_port(recipe).await;
        started.unwrap_or_else(|error| panic!("{error}")).0
    }
}

fn sentinel_recipe(
    program: &Path,
    place: &Path,
    port: u16,
    primary: u16,
    down_after: Duration,
) -> Result<Recipe, String> {
    let mut recipe = redis_recipe(program, place, port)?;
    let folder = &recipe.folder;
    let write = |name: &str, text: String| -> Result<PathBuf, String> {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path)
    };
    let told = folder.join("promoted");
    // Its seventh argument is the port of the new primary.
    let script = write(
        "told.sh",
        format!(
            "#!/bin/sh\necho \"$7\" > {0}.next && mv {0}.next {0}\n",
            told.display()
        ),
    )?;
    let mut rights = std::fs::metadata(&script)
        .map_err(|error| error.to_string())?
        .permissions();
    rights.set_mode(0o755);
    std::fs::set_permissions(&script, rights).map_err(|error| error.to_string())?;
    let settings = write(
        "sentinel.conf",
        format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nlogfile {}\n\
             sentinel monitor gate 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds gate {}\n\
             sentinel failover-timeout gate 10000\n\
             sentinel client-reconfig-script gate {}\n",
            folder.display(),
            folder.join("log").display(),
            down_after.as_millis(),
            script.display(),
        ),
    )?;
    recipe.args = [
        settings.as_os_str(),
        "--sentinel".as_ref(),
        "--set-proc-title".as_ref(),
        "no".as_ref(),
    ]
    .map(std::ffi::OsStr::to_owned)
    .to_vec();
    Ok(recipe)
}

async fn start_on_some_port(
    recipe: impl Fn(u16) -> Result<Recipe, String>,
) -> Result<(LocalServer, String), String> {
    let mut last_error = String::new();
    for _ in 0..ATTEMPTS {
        let server = LocalServer::new(recipe(free_port()?)?);
        match server.try_start().await {
            Ok(identity) => return Ok((server, identity.version)),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn free_port() -> Result<u16, String> {
    (0..100)
        .map(|_| rand::rng().random_range(PORTS))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| format!("no free port in {PORTS:?}"))
}

/// The folder of everything the test servers of this user write.
pub(super) fn base_folder() -> Result<PathBuf, String> {
    let base = std::env::temp_dir().join(format!("seckill-test-{}", user_id()));
    std::fs::create_dir_all(&base).map_err(|error| format!("{}: {error}", base.display()))?;
    base.canonicalize().map_err(|error| error.to_string())
}

pub(super) fn new_folder() -> Result<TempDir, String> {
    let base = base_folder()?;
    tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(base)
        .map_err(|error| error.to_string())
}

pub(super) fn user_id() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |process| process.uid())
}

fn redis_recipe(program: &Path, place: &Path, port: u16) -> Result<Recipe, String> {
    let folder = place.join("redis");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let port_text = port.to_string();
    let log = folder.join("log");
    let args: [&dyn AsRef<std::ffi::OsStr>; 20] = [
        &"--bind",
        &"127.0.0.1",
        &"--port",
        &port_text,
        &"--dir",
        &folder,
        &"--logfile",
        &log,
        &"--appendonly",
        &"yes",
        &"--appendfsync",
        &"always",
        &"--save",
        &"",
        &"--maxmemory-policy",
        &"noeviction",
        &"--daemonize",
        &"no",
        // Its command line must go on naming its folder, for the reaper.
        &"--set-proc-title",
        &"no",
    ];
    Ok(Recipe {
        name: "redis-server",
        protocol: Protocol::Redis,
        program: program.to_owned(),
        args: args.iter().map(|arg| arg.as_ref().to_owned()).collect(),
        url: format!("redis://127.0.0.1:{port}"),
        folder,
        port,
    })
}

fn mysql_recipe(program: &Path, place: &Path, port: u16) -> Result<Recipe, String> {
    let folder = place.join("mysql");
    let data = folder.join("data");
    if !data.exists() {
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        mysql_data::prepare(program, &data)?;
    }
    let init = folder.join("init.sql");
    let statements = format!(
        "CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{USER}';\n\
         GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
    );
    std::fs::write(&init, statements).map_err(|error| error.to_string())?;
    let option = |name: &str, value: &Path| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value);
        option
    };
    let mut args = vec![OsString::from("--no-defaults")];
    args.extend(mysql_data::as_root());
    args.extend([
        option("datadir", &data),
        option("socket", &folder.join("socket")),
        option("pid-file", &folder.join("pid")),
        option("log-error", &folder.join("log")),
        option("init-file", &init),
        format!("--port={port}").into(),
        format!("--max-connections={MAX_CONNECTIONS}").into(),
    ]);
    args.extend(
        [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=64M",
            "--skip-log-bin",
            "--performance-schema=OFF",
        ]
        .map(OsString::from),
    );
    if !mysql_data::is_mariadb(program)? {
        args.extend(["--mysqlx=OFF", "--secure-file-priv=NULL"].map(OsString::from));
    }
    Ok(Recipe {
        name: "the MySQL server",
        protocol: Protocol::MySql,
        program: program.to_owned(),
        args,
        url: format!("mysql://{USER}:{USER}@127.0.0.1:{port}/"),
        folder,
        port,
    })
}

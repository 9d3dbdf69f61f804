//! One server for all tests of this process, and a database for each.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, MySqlConnection};
use tempfile::TempDir;

const URL: &str = "SECKILL_TEST_MYSQL_URL";

/// The time zone of a server that is started here.
const ZONE: &str = "+08:00";

/// Ends the server when the pipe to its standard input does: when this process is gone, however it
/// ended. The folder goes with it.
const KEEPER: &str = r#"
folder=$1; shift
"$@" >"$folder/out" 2>&1 &
server=$!
cat >/dev/null
kill -9 "$server"; wait "$server" 2>/dev/null
rm -rf "$folder"
"#;

struct Server {
    url: String,
    /// Holds the pipe.
    _keeper: Option<Child>,
}

static SERVER: OnceLock<Server> = OnceLock::new();

fn server() -> &'static Server {
    SERVER.get_or_init(|| match std::env::var(URL) {
        Ok(url) => Server {
            url: url.trim_end_matches('/').to_owned(),
            _keeper: None,
        },
        Err(_) => start(),
    })
}

fn start() -> Server {
    let folder = TempDir::with_prefix("seckill-mysql-").unwrap().keep();
    let data = folder.join("data");
    let installed = Command::new("mariadb-install-db")
        // A server that starts deletes the temporary files of all others there.
        .env("TMPDIR", &folder)
        .arg("--no-defaults")
        .arg(option("datadir", &data))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(
        installed.is_ok_and(|status| status.success()),
        "mariadb-install-db does not run: install the package mariadb-server, or name a server in {URL}"
    );
    let init = folder.join("init.sql");
    let grants = "CREATE USER IF NOT EXISTS 'seckill'@'%' IDENTIFIED BY 'seckill';\n\
         GRANT ALL PRIVILEGES ON *.* TO 'seckill'@'%';\n";
    std::fs::write(&init, grants).unwrap();
    let port = free_port();
    let keeper = Command::new("sh")
        .env("TMPDIR", &folder)
        .args(["-c", KEEPER, "keeper"])
        .arg(&folder)
        .args(["mariadbd", "--no-defaults", "--user=root"])
        .arg(option("datadir", &data))
        .arg(option("socket", &folder.join("socket")))
        .arg(option("pid-file", &folder.join("pid")))
        .arg(option("init-file", &init))
        .arg(format!("--port={port}"))
        .args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--skip-log-bin",
        ])
        .args(["--innodb-buffer-pool-size=64M", "--performance-schema=ON"])
        .args([
            "--max-connections=500",
            "--performance-schema-instrument=statement/%=ON",
        ])
        // Nobody else's zone is ours, so nothing here can pass by chance.
        .arg(format!("--default-time-zone={ZONE}"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(port, &folder);
    Server {
        url: format!("mysql://seckill:seckill@127.0.0.1:{port}"),
        _keeper: Some(keeper),
    }
}

fn option(name: &str, value: &Path) -> String {
    format!("--{name}={}", value.display())
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn wait_for(port: u16, folder: &Path) {
    let started = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if started.elapsed() > Duration::from_secs(30) {
            let said = std::fs::read_to_string(folder.join("out")).unwrap_or_default();
            panic!("mariadbd does not answer: {said}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A database of its own, empty. It is dropped by the next run that has its number, not at the end:
/// a failed test can be looked into.
pub(crate) struct FreshDatabase {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl FreshDatabase {
    pub(crate) async fn create() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut name = String::from("seckill_it_");
        write!(name, "{}", NEXT.fetch_add(1, Ordering::Relaxed)).unwrap();
        let mut connection = root().await;
        for sql in [
            format!("DROP DATABASE IF EXISTS {name}"),
            format!("CREATE DATABASE {name}"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let url = format!("{}/{name}", server().url);
        Self { name, url }
    }

    /// A connection of the test's own, to look and to meddle.
    pub(crate) async fn connect(&self) -> MySqlConnection {
        MySqlConnection::connect(&self.url).await.unwrap()
    }
}

/// The zone that the server should be in, if it is ours to choose.
pub(crate) fn zone() -> Option<&'static str> {
    std::env::var(URL).is_err().then_some(ZONE)
}

/// A connection to no database.
pub(crate) async fn root() -> MySqlConnection {
    MySqlConnection::connect(&server().url).await.unwrap()
}

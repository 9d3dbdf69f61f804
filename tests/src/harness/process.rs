//! One process of the service.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt as _;

use super::call::{Call, Wire};
use super::ledger::HeldWriters;
use super::shop::Shop;
use super::token::SECRET;
use crate::stack;

/// Below the range from which systems give out ports by themselves, and apart from the servers': a
/// client of a process that was killed could otherwise connect to itself.
const PORTS: std::ops::Range<u16> = 12_000..20_000;
/// Those that processes of these tests had: whoever still calls one that was killed meets nobody.
static USED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
/// How long a start may take. Generous: the machine may be compiling at the same time.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// How long a stop may take before the test fails anyway.
const STOPPED_WITHIN: Duration = Duration::from_secs(40);
/// How often a start is tried: tests in another process may take the port in between.
const ATTEMPTS: usize = 5;
/// How long writers are held up beyond a signal.
const HELD_UP_FOR: Duration = Duration::from_millis(300);
/// What the processes log: `debug`, or whatever else `SECKILL_LOG` takes; not less than `info` of the
/// program itself, which says there where it listens.
const LOG: &str = "SECKILL_TEST_LOG";
/// Lines of the log that are shown when a test fails.
const LOG_LINES: usize = 60;

/// A process of the service with its own port and log. Dropped, it is killed; and if the test is
/// failing, the end of its log is shown.
#[derive(Debug)]
pub struct Process {
    base: String,
    log: PathBuf,
    pid: u32,
    child: Mutex<Child>,
}

impl Process {
    /// Starts `program` with these settings and no others of the environment, and waits until it
    /// says that it is ready.
    pub(super) async fn start(
        program: &str,
        settings: &[(String, String)],
        log: PathBuf,
    ) -> Result<Self, String> {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let mut process = Self::spawn(program, settings, log.clone())?;
            match process.until_ready().await {
                Ok(base) => {
                    process.base = base;
                    return Ok(process);
                }
                Err(error) => said = error,
            }
            if !said.to_lowercase().contains("in use") {
                break;
            }
        }
        Err(said)
    }

    fn spawn(program: &str, settings: &[(String, String)], log: PathBuf) -> Result<Self, String> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let file = std::fs::File::create(&log).map_err(|error| error.to_string())?;
        let child = command(program, settings)
            .env("SECKILL_LISTEN", &address)
            .env("SECKILL_AUTH_SECRET", SECRET)
            .env(
                "SECKILL_LOG",
                std::env::var(LOG).as_deref().unwrap_or("info"),
            )
            .stdout(file.try_clone().map_err(|error| error.to_string())?)
            .stderr(file)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        stack::kill_at_exit(child.id(), Path::new(program));
        Ok(Self {
            base: String::new(),
            log,
            pid: child.id(),
            child: Mutex::new(child),
        })
    }

    /// Where it is, once it says that it is ready. On a port that two chose at once the other one may
    /// answer, so it has to say first that it listens.
    async fn until_ready(&self) -> Result<String, String> {
        let begun = Instant::now();
        loop {
            let seen = match self.serving_at() {
                Some(base) => match Wire::to(&base).send(Call::get("/readyz")).await {
                    Ok(reply) if reply.status == 200 => return Ok(base),
                    other => format!("{other:?}"),
                },
                None => "it has not said where it listens".to_owned(),
            };
            if let Some(status) = self.ended() {
                return Err(format!("it ended with {status}\n{}", self.log_tail()));
            }
            if begun.elapsed() >= READY_WITHIN {
                let tail = self.log_tail();
                return Err(format!("not ready in {READY_WITHIN:?}: {seen}\n{tail}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where it listens, once its log says so in a whole line.
    fn serving_at(&self) -> Option<String> {
        let log = self.log();
        let (whole, _) = log.rsplit_once('\n')?;
        let serving = whole.lines().find(|line| line.contains(" serving "))?;
        let mut fields = serving.split(' ');
        let address = fields.find_map(|field| field.strip_prefix("address="))?;
        Some(format!("http://{address}"))
    }

    /// Where it listens, as `address:port`.
    pub fn address(&self) -> String {
        let address = self.base.strip_prefix("http://");
        address.expect("how it begins").to_owned()
    }

    /// A client of this process, with connections of its own.
    pub fn shop(&self) -> Shop {
        Shop::at(&self.base)
    }

    /// SIGKILL: it is gone when this returns.
    pub fn kill(&self) {
        let mut child = self.child();
        // An error means that it had ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// SIGTERM, an orderly stop; returns how it ended and how long that took.
    pub async fn stop(&self) -> (ExitStatus, Duration) {
        self.signal("TERM");
        let begun = Instant::now();
        let gone = async || self.ended().is_some();
        stack::until("the process has stopped", STOPPED_WITHIN, gone).await;
        (self.ended().expect("it has stopped"), begun.elapsed())
    }

    /// SIGTERM while the writers are held up, who go on a moment later: what was in flight before the
    /// signal is in flight when it comes.
    pub async fn stop_amid(&self, held: HeldWriters) -> (ExitStatus, Duration) {
        let go_on = async {
            tokio::time::sleep(HELD_UP_FOR).await;
            held.release().await;
        };
        tokio::join!(self.stop(), go_on).0
    }

    /// SIGSTOP: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Everything it has said.
    pub fn log(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    pub(super) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// How it ended, if it has.
    fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().expect("a child can be waited for")
    }

    /// The shell sends the signal: the standard library can only kill, and this crate forbids
    /// unsafe code.
    fn signal(&self, signal: &str) {
        assert!(self.ended().is_none(), "it has ended\n{}", self.log_tail());
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", self.pid)])
            .status();
        assert!(sent.is_ok_and(|status| status.success()), "signal {signal}");
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {} says at last\n{}", self.base, self.log_tail());
        }
    }
}

/// What a program did that was run to its end.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub code: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it complained about.
    pub err: String,
}

pub(super) async fn run(
    program: &'static str,
    arguments: &[&str],
    settings: &[(String, String)],
) -> Ran {
    let mut command = command(program, settings);
    command.args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output());
    let ran = ran.await.expect("a thread").expect("it can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        code: ran.status.code(),
        out: text(&ran.stdout),
        err: text(&ran.stderr),
    }
}

/// The program with these settings, and no others of the environment.
fn command(program: &str, settings: &[(String, String)]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL_")) {
        command.env_remove(name);
    }
    command
        .env("NO_COLOR", "1")
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    command
}

fn free_port() -> Result<u16, String> {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let port = (0..100)
        .map(|_| rand::rng().random_range(PORTS))
        .filter(|port| !used.contains(port))
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| format!("no free port in {PORTS:?}"))?;
    used.insert(port);
    Ok(port)
}

//! One server process of this machine, which a test may kill, restart or freeze.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::probe::{self, Identity, Protocol};
use super::{reaper, wait};

/// How long a server may take to answer after its start. Generous: the machine
/// may be compiling at the same time, and a killed database has to recover.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// How long a server may take to end after SIGTERM.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A server process with its own port and data folder, both kept over restarts.
/// Dropped, it is killed.
pub struct LocalServer {
    name: &'static str,
    protocol: Protocol,
    program: PathBuf,
    args: Vec<OsString>,
    folder: PathBuf,
    port: u16,
    url: String,
    /// Added to the environment of the next start.
    environment: Mutex<Vec<(String, String)>>,
    child: Mutex<Option<Child>>,
}

impl fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalServer")
            .field("name", &self.name)
            .field("port", &self.port)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// What is needed to run a server.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) protocol: Protocol,
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// The folder with everything the server writes; its command line names it.
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    pub(super) url: String,
}

impl LocalServer {
    /// A server that has not been started.
    pub(super) fn new(recipe: Recipe) -> Self {
        let Recipe {
            name,
            protocol,
            program,
            args,
            folder,
            port,
            url,
        } = recipe;
        Self {
            name,
            protocol,
            program,
            args,
            folder,
            port,
            url,
            environment: Mutex::default(),
            child: Mutex::new(None),
        }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with everything the server writes. Copy it only while the
    /// server is stopped.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process id, if the server has been started and not been killed by us.
    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether the process exists (a frozen one does).
    pub fn is_running(&self) -> bool {
        self.child()
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// SIGKILL, as when the machine loses power; returns when the process has gone.
    pub async fn kill(&self) {
        if let Some(child) = self.child().as_mut() {
            // An error means that it had ended by itself.
            let _ = child.kill();
        }
        self.wait_until_gone().await;
    }

    /// SIGTERM, an orderly stop; returns when the process has gone.
    pub async fn stop(&self) {
        self.signal("TERM");
        self.wait_until_gone().await;
    }

    /// SIGSTOP: connections stay open and nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// SIGCONT: a frozen server goes on where it was.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Starts the server on its port and data, and waits until it answers. Does
    /// nothing but wait if it is running.
    pub async fn start(&self) {
        self.try_start()
            .await
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Sets a variable of the environment for all starts to come.
    pub fn set_environment(&self, name: &str, value: &str) {
        let mut environment = self
            .environment
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        environment.push((name.to_owned(), value.to_owned()));
    }

    /// [`kill`](Self::kill) and [`start`](Self::start).
    pub async fn restart(&self) {
        self.kill().await;
        self.start().await;
    }

    /// Starts the server and returns what it says about itself.
    pub(super) async fn try_start(&self) -> Result<Identity, String> {
        if !self.is_running() {
            self.spawn()?;
        }
        let begun = Instant::now();
        loop {
            let late = begun.elapsed() >= READY_WITHIN;
            let answer = probe::ask(self.protocol, &self.url).await;
            if !self.is_running() {
                return Err(format!("{} ended at once\n{}", self.name, self.log_tail()));
            }
            match answer {
                Ok(identity) if self.is_this(&identity) => return Ok(identity),
                Ok(_) => return Err(format!("port {} belongs to another server", self.port)),
                Err(error) if late => {
                    let tail = self.log_tail();
                    return Err(format!(
                        "{} does not answer within {READY_WITHIN:?}: {error}\n{tail}",
                        self.name
                    ));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn spawn(&self) -> Result<(), String> {
        let environment = self
            .environment
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let child = Command::new(&self.program)
            .args(&self.args)
            // A database that starts deletes the temporary files of all others there.
            .env("TMPDIR", &self.folder)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        reaper::kill_at_exit(child.id(), &self.folder);
        *self.child() = Some(child);
        Ok(())
    }

    /// Another process may have taken the port between our choosing it and the
    /// server's binding it; then that one answers, with other data.
    fn is_this(&self, identity: &Identity) -> bool {
        identity
            .data_dir
            .as_ref()
            .is_some_and(|dir| dir.starts_with(&self.folder))
    }

    async fn wait_until_gone(&self) {
        let what = format!("{} has ended", self.name);
        wait::until(&what, STOPPED_WITHIN, async || !self.is_running()).await;
        *self.child() = None;
    }

    /// The shell sends the signal: the standard library can only kill, and this
    /// crate forbids unsafe code.
    fn signal(&self, signal: &str) {
        let pid = self
            .pid()
            .unwrap_or_else(|| panic!("{} has not been started", self.name));
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "signal {signal} to {}",
            self.name
        );
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_tail(&self) -> String {
        let log = std::fs::read(self.folder.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

//! Processes that belong to the benchmark and end with it.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

use crate::machine::process_cpu;

/// How long an orderly stop may take.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A process with a log. Dropped, it is killed; and so it is when the benchmark itself is killed.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl Process {
    /// Starts a program. Nothing of the environment that configures the service gets through but
    /// what is in `settings`.
    pub fn start(
        name: &'static str,
        program: &Path,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        settings: &[(&str, String)],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        // The kernel kills it when the thread is gone that started it: the benchmark's main one.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(args);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL_")) {
            command.env_remove(name);
        }
        let child = command
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} could not be started (setpriv is in util-linux)"))?;
        let pid = child.id().context("it has ended at once")?;
        Ok(Self {
            name,
            child,
            pid,
            log: log.to_owned(),
        })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// CPU time that it took so far.
    pub fn cpu(&self) -> Duration {
        process_cpu(self.pid)
    }

    /// Waits until `ready` says so; fails if the process ends before.
    pub async fn until<F: Future<Output = bool>>(
        &mut self,
        within: Duration,
        ready: impl Fn() -> F,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !ready().await {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}\n{}", self.name, self.last_words());
            }
            if begun.elapsed() > within {
                bail!(
                    "{} is not ready after {within:?}\n{}",
                    self.name,
                    self.last_words()
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// An orderly stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("TERM")?;
        match tokio::time::timeout(STOPPED_WITHIN, self.child.wait()).await {
            Ok(status) => {
                status?;
                Ok(())
            }
            Err(_) => bail!("{} does not stop\n{}", self.name, self.last_words()),
        }
    }

    /// SIGKILL; returns when it is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Stops its threads, or lets them go on.
    pub fn freeze(&self, frozen: bool) -> anyhow::Result<()> {
        self.signal(if frozen { "STOP" } else { "CONT" })
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        // The shell's own kill: there is no need for another program.
        let sent = std::process::Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", self.pid)])
            .status()?;
        if !sent.success() {
            bail!("{} cannot be sent SIG{signal}", self.name);
        }
        Ok(())
    }

    /// The end of its log.
    pub fn last_words(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

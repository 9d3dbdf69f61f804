//! Why the program ends early.

use std::fmt;
use std::process::ExitCode;

use seckill_application::Fault;

use crate::config::BadSetting;

/// Why the program ends early, with all that its user has to know to help it.
#[derive(Debug)]
pub enum Failure {
    /// A setting cannot be used.
    Setting(BadSetting),
    /// A neighbour does not answer, or cannot be used as it is.
    Neighbour {
        /// The setting that names it.
        setting: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Somebody else is at the same work; this one has done nothing.
    Busy(&'static str),
    /// Anything else.
    Other(anyhow::Error),
    /// The program was told to stop.
    Stopped,
}

impl Failure {
    /// A neighbour failed.
    pub(crate) fn neighbour(setting: &'static str, fault: &Fault) -> Self {
        Self::Neighbour {
            setting,
            problem: fault.chain(),
        }
    }

    /// 2 for a bad setting, as for a bad argument; 3 if somebody else is at it; 0 for a stop that was
    /// asked for; else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Setting(_) => ExitCode::from(2),
            Self::Busy(_) => ExitCode::from(3),
            Self::Stopped => ExitCode::SUCCESS,
            Self::Neighbour { .. } | Self::Other(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(bad) => fmt::Display::fmt(bad, f),
            Self::Neighbour { setting, problem } => write!(f, "{setting}: {problem}"),
            Self::Busy(who) => f.write_str(who),
            Self::Other(other) => write!(f, "{other:#}"),
            Self::Stopped => f.write_str("stopped before it had started"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<BadSetting> for Failure {
    fn from(bad: BadSetting) -> Self {
        Self::Setting(bad)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(other: anyhow::Error) -> Self {
        Self::Other(other)
    }
}

impl From<std::io::Error> for Failure {
    fn from(other: std::io::Error) -> Self {
        Self::Other(other.into())
    }
}

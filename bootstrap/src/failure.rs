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
    /// Gate and ledger could not be compared. Not to be taken for a difference.
    Uncompared(Box<Failure>),
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

    /// What kept gate and ledger from being compared.
    pub(crate) fn of_comparison(self) -> Self {
        match self {
            Self::Neighbour { .. } | Self::Other(_) => Self::Uncompared(Box::new(self)),
            told => told,
        }
    }

    /// 2 for a bad setting, as for a bad argument; 3 if somebody else is at it; 4 if there was no
    /// comparison; 0 for a stop that was asked for; else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Setting(_) => ExitCode::from(2),
            Self::Busy(_) => ExitCode::from(3),
            Self::Uncompared(_) => ExitCode::from(4),
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
            Self::Uncompared(why) => fmt::Display::fmt(why, f),
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

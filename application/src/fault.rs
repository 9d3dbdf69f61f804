//! The one error of every port.

use std::error::Error;
use std::fmt;

/// What a failed call may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the call was refused before it began, or rolled back.
    None,
    /// Unknown: the answer was lost. Repeat the same call to find out.
    Unknown,
}

/// A neighbour (Redis, the database, the network) failed. Expected answers are never faults: they
/// are variants of the port's reply.
///
/// Its `Display` names the port and leaves the source to [`Error::source`]; log the chain once,
/// where the fault is handled.
#[derive(Debug)]
pub struct Fault {
    port: &'static str,
    effect: Effect,
    retryable: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl Fault {
    /// The neighbour could not be asked, or refused for now; nothing changed.
    pub fn unavailable(
        port: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            port,
            effect: Effect::None,
            retryable: true,
            source: source.into(),
        }
    }

    /// The neighbour was asked and did not answer; it may have done it.
    pub fn unknown(port: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            port,
            effect: Effect::Unknown,
            retryable: true,
            source: source.into(),
        }
    }

    /// The neighbour answered something that makes no sense; asking again will not help.
    pub fn broken(port: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            port,
            effect: Effect::None,
            retryable: false,
            source: source.into(),
        }
    }

    /// Which port failed, as `port.method`.
    pub fn port(&self) -> &'static str {
        self.port
    }

    /// What the call may have changed.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// The fault and everything behind it, on one line, for a log.
    pub fn chain(&self) -> String {
        let mut line = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            line.push_str(": ");
            line.push_str(&cause.to_string());
            next = cause.source();
        }
        line
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.port)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

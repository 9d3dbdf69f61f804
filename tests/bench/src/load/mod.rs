//! The load generator.
//!
//! One thread, one `epoll`, raw HTTP/1.1 over prebuilt bytes: it shares the machine with what it
//! measures, so it has to be lean, and it reports the CPU time it took.
//!
//! With [`Pace::Open`] requests are due at fixed times whatever the answers do, and latency counts
//! from the time a request was due, so that a stall is felt by everybody who would have come
//! meanwhile. With [`Pace::Closed`] every connection asks again as soon as it is answered: for
//! capacity, never for latency.

mod answer;
mod connection;
mod crowd;
mod engine;
mod outcome;

use std::net::SocketAddr;
use std::time::Duration;

pub use crowd::{Crowd, Requests, SECRET, admin_token};
pub use engine::run;
pub use outcome::Outcome;

/// What is sent where, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Who answers.
    pub target: SocketAddr,
    /// Connections; with [`Pace::Open`] the most that may be under way at once.
    pub connections: usize,
    /// When requests are sent.
    pub pace: Pace,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// How long answers are waited for after the last request was due; then they are lost.
    pub patience: Duration,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// As soon as the answer before is there, for this long.
    Closed(Duration),
    /// At fixed times.
    Open {
        /// How many a second.
        per_s: f64,
        /// For how long.
        lasts: Duration,
    },
}

impl Plan {
    /// A closed loop over kept connections.
    pub fn closed(target: SocketAddr, connections: usize, lasts: Duration) -> Self {
        Self {
            target,
            connections,
            pace: Pace::Closed(lasts),
            keep_alive: true,
            patience: Duration::from_secs(5),
        }
    }

    /// A fixed schedule over kept connections.
    pub fn open(target: SocketAddr, connections: usize, per_s: f64, lasts: Duration) -> Self {
        Self {
            pace: Pace::Open { per_s, lasts },
            ..Self::closed(target, connections, lasts)
        }
    }

    /// The same with a connection per request.
    #[must_use]
    pub fn churning(self) -> Self {
        Self {
            keep_alive: false,
            ..self
        }
    }

    /// Most requests that will be sent, if each connection manages `per_s_max` at most in all.
    pub fn requests_max(&self, per_s_max: f64) -> usize {
        let (per_s, lasts) = match self.pace {
            Pace::Closed(lasts) => (per_s_max, lasts),
            Pace::Open { per_s, lasts } => (per_s, lasts),
        };
        let count = (per_s * lasts.as_secs_f64()).ceil().max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and far below the limit"
        )]
        let count = count as usize;
        count
    }
}

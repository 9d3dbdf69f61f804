//! How the process is told to stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A stop comes in two steps. Soft: begin nothing new, finish what was begun. Hard: end at once.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    soft: CancellationToken,
    hard: CancellationToken,
}

impl Stop {
    /// Asks everybody to finish.
    pub fn softly(&self) {
        self.soft.cancel();
    }

    /// Ends everybody.
    pub fn hard(&self) {
        self.soft.cancel();
        self.hard.cancel();
    }

    /// Whether a stop was asked for.
    pub fn is_asked_for(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Returns once a stop was asked for.
    pub async fn asked_for(&self) {
        self.soft.cancelled().await;
    }

    /// Returns once an end at once was asked for.
    pub async fn ended(&self) {
        self.hard.cancelled().await;
    }

    /// What the HTTP edge watches.
    pub(crate) fn soft_token(&self) -> CancellationToken {
        self.soft.clone()
    }
}

/// Turns SIGTERM and SIGINT into a soft stop, and the second of them into a hard one. Never returns.
pub(crate) async fn on_signals(stop: Stop) -> io::Result<std::convert::Infallible> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        if stop.is_asked_for() {
            tracing::warn!(signal = name, "again: stopping at once");
            stop.hard();
        } else {
            tracing::info!(signal = name, "stopping; once more to stop at once");
            stop.softly();
        }
    }
}

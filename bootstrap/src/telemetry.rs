//! Where log events go.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// Sends log events to standard error. Does nothing if the process has a subscriber already, as in
/// tests that start several services.
pub(crate) fn init(settings: &LogSettings) {
    let filter = EnvFilter::try_new(&settings.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let events = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // Nobody may be reading: then there is no use, and a panic, in saying so on the same pipe.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    // A second subscriber is refused, which is what is wanted.
    let _ = match settings.format {
        LogFormat::Text => events.try_init(),
        LogFormat::Json => events.json().flatten_event(true).try_init(),
    };
}

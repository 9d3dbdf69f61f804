//! Puts the service together and runs it: settings, the choice of adapters, the loops that keep it
//! going, an orderly stop, and the command line.
//!
//! This is a library so that tests can start the whole system in their own process
//! ([`Service::start`]); the program is a few lines around [`main`].
//!
//! Architecture invariant: nothing here decides anything about a sale. What is decided here is which
//! adapter stands behind a port, how often a loop runs, and when it ends.

mod adapters;
mod cli;
mod clock;
mod config;
mod demonstration;
mod engine;
mod failure;
mod gate_identity;
mod log_notifier;
mod running;
mod runtime;
mod shutdown;
mod telemetry;
mod wiring;
mod workers;

pub use adapters::Adapters;
pub use cli::main;
pub use clock::SystemClock;
pub use config::{Auth, BadSetting, Config, EngineConfig, Role, Stores};
pub use failure::Failure;
pub use running::Service;
pub use shutdown::Stop;
pub use wiring::{GateSettings, System};

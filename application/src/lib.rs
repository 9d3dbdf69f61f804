//! What the service does, as use cases over ports.
//!
//! Architecture invariant: no runtime here. Nothing spawns, sleeps or reads a clock except through
//! [`ports::Clock`], so a simulator can drive every use case with a clock of its own.

mod fault;
pub mod ports;

pub use fault::{Effect, Fault};

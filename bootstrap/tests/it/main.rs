//! The program from outside, and the whole system in this process.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod program;
mod running;
mod settings;

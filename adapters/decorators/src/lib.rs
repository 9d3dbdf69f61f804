//! Decorators of ports: what every adapter of a port needs, written once around it.
//!
//! The purchase gate is wrapped from the inside out: [`MeteredGate`] counts what the hot store
//! itself answers, [`BatchedGate`] makes one call of many attempts, and [`SoldOutGate`] answers
//! without a call what it knows the gate would.

// The simulation drives this: the order of a hash, which is new in each process, decides nothing.
#![warn(clippy::iter_over_hash_type)]

mod batched_gate;
mod forward;
mod metered_gate;
mod sold_out_gate;

pub use batched_gate::{BatchSettings, BatchTally, BatchedGate};
pub use metered_gate::{
    GATE_LATENCY_BOUNDS_US, GateMeters, GateOutcome, GateSnapshot, MeteredGate,
};
pub use sold_out_gate::{SoldOutGate, SoldOutSettings};

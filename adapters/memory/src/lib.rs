//! Every port in memory, behaving like the real one: leases expire, entries come again, rows are
//! locked, transactions roll back, and everything can be made to fail, to lose data and to lie.
//!
//! Architecture invariant: no runtime here. Nothing spawns, and nothing waits but on a lock of this
//! crate or on the [`Clock`](seckill_application::ports::Clock) it was given, so that a simulator
//! can drive it with a [`VirtualClock`]. No rule of a sale or an order is stated here: the domain
//! decides, this crate remembers.

// The simulation drives this: the order of a hash, which is new in each process, decides nothing.
#![warn(clippy::iter_over_hash_type)]

mod chaos;
mod hot_path;
mod ledger;
mod patience;
mod sandbox_payments;
mod virtual_clock;

pub use chaos::Chaos;
pub use hot_path::{HotGuard, HotPathOptions, MemoryHotPath, Piece};
pub use ledger::{LedgerGuard, MemoryLedger};
pub use sandbox_payments::SandboxPayments;
pub use virtual_clock::VirtualClock;

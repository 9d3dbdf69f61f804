//! Negative controls: every guard that matters, switched off in the production path.
//!
//! A [`Control`] runs one scenario twice, step by step, over the real adapters: with the guard,
//! where the invariants hold, and without it, where the failure that the guard is there for
//! appears. What switches a guard off is a [`Switch`] (the text of a script or of a statement, or
//! the schema of the test's own database), or a decorator of a port (`tampered`); never a copy of
//! the code under test. Behind most guards stands another one that would hide the failure: what a
//! control switches off in both runs is [`Control::behind`], and says which layer that is.
//!
//! An edit that fits nowhere any more is refused, or leaves the failure out that the control waits
//! for: a control cannot rot silently.

mod bench;
mod branch;
mod checkpoint;
mod control;
mod findings;
mod hasty_clock;
mod interludes;
mod interrupted;
mod machine_clock;
mod meanwhile;
mod switch;
mod switches;
mod tampered;

pub use bench::{Bench, PARTITIONS, Stores, memory};
pub use branch::{Branch, Offer, beside, drain};
pub use checkpoint::Checkpoint;
pub use control::{Control, Pair};
pub use findings::{Failure, Findings};
pub use hasty_clock::HastyClock;
pub use interludes::Interludes;
pub use interrupted::{Cut, Fuse, interrupted};
pub use meanwhile::Meanwhile;
pub use switch::Switch;
pub use switches::{gate, ledger};
pub use tampered::{
    AckOrder, BrokerStream, KeptUpdates, TamperedAdmissions, TamperedGate, TamperedLedger,
    TamperedLoader,
};

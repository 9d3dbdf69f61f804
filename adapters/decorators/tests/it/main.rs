//! The decorators of the purchase gate, around a gate that does as it is told.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod crowd;
mod gone_callers;
mod inner;
mod meters;
mod sold_out;
mod till;

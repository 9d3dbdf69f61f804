//! What the adapters in memory do by themselves: what they can be made to do, and what the shared
//! contract suites cannot ask of a real server without killing it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is a verdict"
)]

mod damage;
mod fixture;
mod redelivery;
mod settlement;
mod transactions;

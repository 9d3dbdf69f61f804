//! What must happen by a certain time: whole processes, in memory and on real servers.
//!
//! Only tests that wait for most of their time are in this target, since targets run one after the
//! other: the tests of `acceptance` keep a small machine so busy that a time says nothing there.

mod expiry;
mod streams;

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");

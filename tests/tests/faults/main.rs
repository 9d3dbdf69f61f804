//! The required fault cases, on real servers and with real processes.
//!
//! Each test is named after its row of the matrix, which is in
//! `seckill_tests::matrix` with the rows that other tests drive. A test asserts that its fault struck
//! while work was in flight, writes down what everybody asked and was told, and has the checker judge
//! that with what is in Redis and MySQL at the end. What was driven goes into
//! `target/test-report/faults.md`.

mod clocks;
mod database_stumbles;
mod failover;
mod full_disk;
mod matrix;
mod memory_lost;
mod network;
mod network_is_bad;
mod redis_refuses;
mod released;
mod restarts;
mod scene;
mod steps;

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");

//! What the tests of the service share: the contract of every port, and the servers they run
//! against.

pub mod contract;
pub mod controls;
pub mod harness;
pub mod matrix;
pub mod stack;

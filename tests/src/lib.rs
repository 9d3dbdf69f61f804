//! What the tests of the service share: the contract of every port, and the servers they run
//! against.

pub mod contract;
pub mod harness;
pub mod stack;

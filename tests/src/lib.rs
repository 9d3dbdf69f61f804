//! What the tests of the service share: the servers they run against.

pub mod stack;

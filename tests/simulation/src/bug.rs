//! Bugs to plant.

/// A bug that can be planted: what is taken out of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {}

//! The required fault cases, on real servers and real processes.

mod network;

//! The benchmark: real servers, pairs of runs side by side, and a table of ratios.
//!
//! A machine's absolute speed says little; what counts is the ratio of two things that were measured
//! one after the other on the same machine, again and again (A B A B …). What each row means is in
//! `docs/performance.md`. After every run it is checked that no unit was lost or sold twice: a run
//! that fails the check has no number.

pub mod book;
pub mod children;
pub mod client;
pub mod goals;
pub mod lab;
pub mod load;
pub mod machine;
pub mod published;
pub mod raw;
pub mod rows;
pub mod servers;
pub mod site;

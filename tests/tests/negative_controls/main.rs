//! Negative controls: with a guard on, the invariants hold; with it off, in the production path, the
//! failure it is there for appears. See [`seckill_tests::controls`].
//!
//! Every scenario is driven step by step: who is between reading and writing is stopped there, and
//! nothing is left to timing. The doc comment of each control names the layer that it takes away and
//! the failure that appears.

mod expiry;
mod leases;
mod limits;
mod loading;
mod reconcile;
mod repeats;
mod stock;
mod updates;
mod waitlist;
mod writers;

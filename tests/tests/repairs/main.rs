//! What breaks in the life of an order, and who mends it.
//!
//! `crash` stops a process between any two of its steps, over the ports, in memory and on servers.
//! The others start whole services on real servers and do harm to the stores from outside.

mod command;
mod crash;
mod load;
mod parked;
mod planted;
mod planted_holders;
mod planted_ledger;
mod planted_places;
mod reports;
mod retired;

use seckill_tests::harness::Site;

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");

/// One partition, so that everything passes through one stream; and no round that nobody asked for,
/// but the first.
fn quiet(site: Site) -> Site {
    site.with("SECKILL_PARTITIONS", "1")
        .with("SECKILL_RECONCILE_EVERY_S", "86400")
}

async fn own_stores() -> Option<Site> {
    Site::shared(PROGRAM).await.map(quiet)
}

/// All data of these may be lost.
async fn own_servers() -> Option<Site> {
    Site::private(PROGRAM).await.map(quiet)
}

/// Stamps scenarios into tests with stores of their own on the shared servers.
macro_rules! on_own_stores {
    ($($scenario:ident),+ $(,)?) => {
        seckill_tests::stamp!(servers, crate::own_stores(); $($scenario),+);
    };
}

/// The same with servers of their own.
macro_rules! on_own_servers {
    ($($scenario:ident),+ $(,)?) => {
        seckill_tests::stamp!(own_servers, crate::own_servers(); $($scenario),+);
    };
}
pub(crate) use {on_own_servers, on_own_stores};

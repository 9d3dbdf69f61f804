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

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");

/// Stamps scenarios into tests with stores of their own on the shared servers.
macro_rules! on_own_stores {
    ($($scenario:ident),+ $(,)?) => {
        mod servers {
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(site) = seckill_tests::harness::Site::shared(crate::PROGRAM).await {
                    // One partition, so that everything passes through one stream; and no round
                    // that nobody asked for, but the first.
                    let site = site
                        .with("SECKILL_PARTITIONS", "1")
                        .with("SECKILL_RECONCILE_EVERY_S", "86400");
                    super::$scenario(site).await;
                }
            })+
        }
    };
}

/// The same with servers of their own, of which all data may be lost.
macro_rules! on_own_servers {
    ($($scenario:ident),+ $(,)?) => {
        mod own_servers {
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(site) = seckill_tests::harness::Site::private(crate::PROGRAM).await {
                    let site = site
                        .with("SECKILL_PARTITIONS", "1")
                        .with("SECKILL_RECONCILE_EVERY_S", "86400");
                    super::$scenario(site).await;
                }
            })+
        }
    };
}
pub(crate) use {on_own_servers, on_own_stores};

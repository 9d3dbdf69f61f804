//! The service, from outside: real processes, over HTTP, on every stack.
//!
//! Each scenario runs on a process in memory and on one with real servers, which
//! `SECKILL_TEST_STACK` chooses (`local`: Redis and MariaDB or MySQL of this machine; `containers`).
//! Scenarios that leave the process alone share one per stack; those that kill it, or damage its
//! stores, have stores of their own; those that kill servers have servers of their own.

mod admin;
mod another_gate;
mod away;
mod crashes;
mod edge;
mod events;
mod expiry;
mod grants;
mod lies;
mod lists;
mod losses;
mod orders;
mod outages;
mod payments;
mod refusals;
mod repeats;
mod sold_out;
mod stock;
mod storm;
mod tokens;
mod turns;
mod waitlist;
mod waitlist_quantities;
mod wiped;
mod writers;

/// The service under test: its library's entry point, built with these tests.
const PROGRAM: &str = env!("CARGO_BIN_EXE_seckill-under-test");

/// Stamps scenarios into tests on the standing processes: one in memory, one on servers.
macro_rules! on_every_stack {
    ($($scenario:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $scenario() {
                let site = seckill_tests::harness::Site::standing_memory(crate::PROGRAM).await;
                super::$scenario(&site).await;
            })+
        }

        mod servers {
            $(#[tokio::test]
            async fn $scenario() {
                let program = crate::PROGRAM;
                if let Some(site) = seckill_tests::harness::Site::standing_shared(program).await {
                    super::$scenario(&site).await;
                }
            })+
        }
    };
}

/// Stamps scenarios into tests with stores of their own on the shared servers.
macro_rules! on_own_stores {
    ($($scenario:ident),+ $(,)?) => {
        seckill_tests::stamp!(
            servers_own_stores, seckill_tests::harness::Site::shared(crate::PROGRAM);
            $($scenario),+
        );
    };
}

/// Stamps scenarios into tests with servers of their own.
macro_rules! on_own_servers {
    ($($scenario:ident),+ $(,)?) => {
        seckill_tests::stamp!(
            own_servers, seckill_tests::harness::Site::private(crate::PROGRAM);
            $($scenario),+
        );
    };
}

pub(crate) use {on_every_stack, on_own_servers, on_own_stores};

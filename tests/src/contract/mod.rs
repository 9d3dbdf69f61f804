//! The contract suites: what the docs of the ports promise, one promise a function.
//!
//! A suite is a module of plain async functions over a harness ([`HotHarness`], [`LedgerHarness`]).
//! `promises!` lists them once and makes a macro of the suite's name, which stamps them into one
//! named test per promise. `tests/contract_*.rs` stamp every suite for every adapter and decorator.
//! Where adapters may differ, the harness says so in an argument; no promise is skipped.
//!
//! Rule: a behaviour seen only in a real adapter becomes a promise here before a fake is changed.

mod chance;
mod desk;
mod happenings;
mod harness;
mod loading;
mod opening;
mod parking;
mod passing;
mod stall;
mod stream_log;

pub mod delay_queue;
pub mod event_outbox;
pub mod gate_answers;
pub mod gate_batches;
pub mod gate_follow;
pub mod gate_holders;
pub mod gate_keys;
pub mod gate_model;
pub mod gate_promotion;
pub mod gate_reads;
pub mod gate_repairs;
pub mod gate_stock;
pub mod gate_updates;
pub mod gate_waiters;
pub mod gate_waitlist;
pub mod gate_window;
pub mod hot_bounds;
pub mod hot_model;
pub mod leases;
pub mod ledger_adjustments;
pub mod ledger_bounds;
pub mod ledger_events;
pub mod ledger_grants;
pub mod ledger_life;
pub mod ledger_limits;
pub mod ledger_model;
pub mod ledger_orders;
pub mod ledger_overdue;
pub mod ledger_parking;
pub mod ledger_positions;
pub mod ledger_races;
pub mod ledger_reads;
pub mod ledger_snapshots;
pub mod ledger_vouchers;
pub mod ledger_waitlist;
pub mod loader_contents;
pub mod loader_epochs;
pub mod loader_losses;
pub mod loader_offers;
pub mod loader_places;
pub mod loader_survivors;
pub mod loader_tokens;
pub mod money_movements;
pub mod notices;
pub mod order_ids;
pub mod parked_discards;
pub mod parked_messages;
pub mod parked_replays;
pub mod reconciliation_repairs;
pub mod reconciliation_reports;
pub mod reconciliations;
pub mod stream_reading;
pub mod stream_upkeep;

pub use harness::{BACKLOG_LIMIT, Harm, HotHarness, LedgerHarness, PARTITIONS};

/// Lists the promises of a suite, once: a function that is not listed is dead code, which the
/// lints refuse. Makes `keep`, which runs one by name, and the suite's stamp, a macro that takes
/// the path of an `async fn() -> Option<Harness>`; `None` means that this run has no such adapter,
/// which the stand itself reports.
macro_rules! promises {
    ($suite:ident over $harness:ty: $($promise:ident,)+) => {
        /// Keeps one promise of this suite, by name.
        pub async fn keep(promise: &str, harness: &$harness) {
            match promise {
                $(stringify!($promise) => $promise(harness).await,)+
                other => panic!("no promise is called {other}"),
            }
        }

        #[doc = concat!("Stamps the promises of `", stringify!($suite), "` for one adapter.")]
        #[macro_export]
        macro_rules! $suite {
            ($stand:path) => {
                $(
                    #[tokio::test]
                    async fn $promise() {
                        if let Some(harness) = $stand().await {
                            $crate::contract::$suite::keep(stringify!($promise), &harness).await;
                        }
                    }
                )+
            };
        }
    };
}
use promises;

/// Stamps suites for one adapter, each into a module of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_suites {
    ($stand:path: $($suite:ident)+) => {
        $(
            mod $suite {
                $crate::$suite!($stand);
            }
        )+
    };
}

/// Stamps every suite about admission control: what a decorator of the gate has to keep. Takes the
/// path of the stand, from the root of the crate.
#[macro_export]
macro_rules! purchase_gate_contract {
    ($stand:path) => {
        $crate::contract_suites! { $stand:
            gate_answers gate_batches gate_follow gate_keys gate_model gate_promotion gate_reads
            gate_stock gate_waitlist gate_window
        }
    };
}

/// Stamps every suite about the ports that share one hot store.
#[macro_export]
macro_rules! hot_path_contract {
    ($stand:path) => {
        $crate::purchase_gate_contract!($stand);
        $crate::contract_suites! { $stand:
            delay_queue gate_holders gate_repairs gate_waiters hot_bounds hot_model leases loader_contents
            loader_epochs loader_losses loader_offers loader_places loader_survivors loader_tokens notices
            order_ids stream_reading stream_upkeep
        }
    };
}

/// Stamps every suite about the ports that share one database.
#[macro_export]
macro_rules! ledger_contract {
    ($stand:path) => {
        $crate::contract_suites! { $stand:
            event_outbox gate_updates ledger_adjustments ledger_bounds ledger_events ledger_grants
            ledger_life ledger_limits ledger_model ledger_orders ledger_overdue ledger_parking ledger_positions
            ledger_races ledger_reads ledger_snapshots ledger_vouchers ledger_waitlist
            money_movements parked_discards parked_messages parked_replays
            reconciliation_repairs reconciliation_reports reconciliations
        }
    };
}

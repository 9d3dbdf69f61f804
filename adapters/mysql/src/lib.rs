//! The ledger in MySQL 9 or MariaDB 10.11: the record of truth.
//!
//! [`MySqlLedger`] gives the ports that share one database. What makes it safe is in the schema
//! (`migrations/`): row constraints hold even if everything above them is wrong. What makes it fast
//! is in `admissions`: one transaction of a handful of statements for a whole batch of decisions,
//! however many they are, or two at the same time for a large one.
//!
//! Architecture invariants:
//! - every time is the database's, and every session runs in UTC at `READ COMMITTED`;
//! - rows are locked in one order: partition, parked message, orders, holdings, voucher, adjustments;
//!   events, payments and refunds are written under the lock of their order. The second half of a
//!   large batch has its orders before the partition: whoever meets it gets a deadlock, and tries
//!   again;
//! - a connection that was left in the middle of a statement is closed, never reused.

mod admissions;
mod config;
mod connecting;
mod deployment;
mod events;
mod fault;
mod gate_updates;
mod json_rows;
mod ledger;
mod meters;
mod migrate;
mod money;
mod page;
mod parked;
mod reconciliations;
mod row;
mod session;
mod snapshot;
mod statement_edits;
mod store;
mod unit_of_work;
mod wire;
mod writer_sessions;

pub use config::LedgerConfig;
pub use deployment::GateOnRecord;
pub use meters::{LedgerCounts, LedgerMeters};
pub use statement_edits::StatementEdit;
pub use store::{LedgerServer, MySqlLedger};

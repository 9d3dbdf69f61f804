//! The ledger against a real server: MariaDB of this machine, or what `SECKILL_TEST_MYSQL_URL`
//! names (MySQL 9), whose user may create databases and read the performance schema.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, sleep and spawn"
)]

mod abreast;
mod batches;
mod commands;
mod contention;
mod cost;
mod events;
mod fencing;
mod fixture;
mod limits;
mod lost_answers;
mod outbox;
mod overdue;
mod reach;
mod reads;
mod refusals;
mod schema;
mod server;
mod settling;
mod snapshots;
mod swallow;
mod waitlist;

//! The adapter against a Redis of its own. Each test starts one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails, and says where"
)]

mod admit;
mod connection;
mod damage;
mod delays;
mod follow;
mod leases;
mod loading;
mod model;
mod notices;
mod offers;
mod order_ids;
mod place;
mod rebuilding;
mod scripts;
mod seats;
mod stage;
mod stream;

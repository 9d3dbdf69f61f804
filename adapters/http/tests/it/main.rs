//! The REST API over the in-memory adapters, from the request to the answer. Every answer is held
//! against the OpenAPI document: an operation, status or problem code that it does not name fails
//! the test that saw it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod admin;
mod browsing;
mod document;
mod edge;
mod events;
mod health;
mod metrics;
mod notifications;
mod orders;
mod parked;
mod purchases;
mod rates;
mod reconciliations;
mod refunds;
mod serving;
mod stand;
mod texts;
mod tokens;
mod waitlist;

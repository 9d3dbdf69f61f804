//! The REST API over the use cases: axum routes, authentication, limits, problems, OpenAPI, health
//! and metrics.
//!
//! Architecture invariant: no rule of a sale is stated here. A handler extracts, converts, makes
//! one call and answers; whatever is refused becomes one `Problem`, written in one place.
//!
//! To serve: build the [`Api`] (use cases) and [`Vitals`] (what health and metrics look at), a
//! [`TokenVerifier`], then [`HttpApp::new`] and [`serve`].

mod admin;
mod app;
mod auth;
mod command;
mod context;
mod docs;
mod extract;
mod fresh;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod metrics;
mod openapi;
mod orders;
mod payments;
mod problem;
mod rate_limit;
mod report;
mod request_id;
mod router;
mod serve;
mod settings;
mod streams;
mod vouchers;
mod waitlist;
mod wire;

pub use app::{HttpApp, PeerAddress};
pub use auth::{BadKey, Caller, NoticeKey, PublicKeyKind, Role, TokenVerifier};
pub use context::Api;
pub use health::Vitals;
pub use metrics::{MetricSheet, MetricSource};
pub use openapi::openapi_json;
pub use serve::serve;
pub use settings::{HttpSettings, Rates, Surface};

//! Requests and attempts, counted on the way out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use seckill_application::Purchase;
use utoipa::openapi::OpenApi;

use super::MetricSheet;
use super::histogram::Latency;

/// What an application counts itself.
pub(crate) struct HttpMeters {
    matcher: matchit::Router<usize>,
    /// One for each path of the document, and a last one for everything else.
    routes: Vec<RouteMeters>,
    attempts: [AtomicU64; OUTCOMES],
    connections: AtomicU64,
}

struct RouteMeters {
    path: String,
    counts: [[AtomicU64; STATUSES.len() + 1]; METHODS.len() + 1],
    latency: Latency,
}

const METHODS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
];
const STATUSES: [u16; 17] = [
    200, 201, 202, 204, 303, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 503,
];

/// What a buyer was told.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    Granted,
    Waitlisted,
    AlreadyHeld,
    LimitExceeded,
    KeyReused,
    NotOpen,
    Paused,
    Closed,
    SoldOut,
    VoucherNotFound,
    Unavailable,
}

const OUTCOMES: usize = 11;

impl Outcome {
    const ALL: [Self; OUTCOMES] = [
        Self::Granted,
        Self::Waitlisted,
        Self::AlreadyHeld,
        Self::LimitExceeded,
        Self::KeyReused,
        Self::NotOpen,
        Self::Paused,
        Self::Closed,
        Self::SoldOut,
        Self::VoucherNotFound,
        Self::Unavailable,
    ];

    pub(crate) fn of(purchase: &Purchase) -> Self {
        match purchase {
            Purchase::Granted { .. } => Self::Granted,
            Purchase::Waitlisted { .. } => Self::Waitlisted,
            Purchase::AlreadyHeld { .. } => Self::AlreadyHeld,
            Purchase::LimitExceeded { .. } => Self::LimitExceeded,
            Purchase::KeyReused => Self::KeyReused,
            Purchase::NotOpen { .. } => Self::NotOpen,
            Purchase::Paused => Self::Paused,
            Purchase::Closed => Self::Closed,
            Purchase::SoldOut => Self::SoldOut,
            Purchase::VoucherNotFound => Self::VoucherNotFound,
            Purchase::Unavailable => Self::Unavailable,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Waitlisted => "waitlisted",
            Self::AlreadyHeld => "already_held",
            Self::LimitExceeded => "limit_exceeded",
            Self::KeyReused => "key_reused",
            Self::NotOpen => "not_open",
            Self::Paused => "paused",
            Self::Closed => "closed",
            Self::SoldOut => "sold_out",
            Self::VoucherNotFound => "voucher_not_found",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Counts a connection for as long as it is open.
pub(crate) struct OpenConnection(crate::context::Ctx);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.meters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpMeters {
    /// Counts by the paths of the document; a path that is not in it counts as `other`.
    pub(crate) fn new(document: &OpenApi) -> Self {
        let mut matcher = matchit::Router::new();
        let mut routes = Vec::new();
        for path in document.paths.paths.keys() {
            if matcher.insert(path.as_str(), routes.len()).is_ok() {
                routes.push(RouteMeters::new(path));
            }
        }
        routes.push(RouteMeters::new("other"));
        Self {
            matcher,
            routes,
            attempts: Default::default(),
            connections: AtomicU64::new(0),
        }
    }

    pub(crate) fn attempt(&self, outcome: Outcome) {
        self.attempts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection(ctx: &crate::context::Ctx) -> OpenConnection {
        ctx.meters.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(ctx.clone())
    }

    pub(crate) fn request(&self, method: &Method, path: &str, status: StatusCode, took: Duration) {
        let other = self.routes.len() - 1;
        let route = self.matcher.at(path).map_or(other, |found| *found.value);
        let method = METHODS.iter().position(|known| known == method);
        let status = STATUSES.iter().position(|known| *known == status.as_u16());
        let route = &self.routes[route];
        route.counts[method.unwrap_or(METHODS.len())][status.unwrap_or(STATUSES.len())]
            .fetch_add(1, Ordering::Relaxed);
        route.latency.observe(took);
    }

    pub(super) fn write(&self, sheet: &mut MetricSheet) {
        for outcome in Outcome::ALL {
            let count = self.attempts[outcome as usize].load(Ordering::Relaxed);
            let labels = [("outcome", outcome.label())];
            sheet.counter(
                "seckill_attempts",
                "Purchases by what the buyer was told",
                &labels,
                count,
            );
        }
        for route in &self.routes {
            route.write(sheet);
        }
        let open = self.connections.load(Ordering::Relaxed);
        sheet.gauge(
            "seckill_http_connections",
            "Connections that are open",
            &[],
            open,
        );
    }
}

impl RouteMeters {
    fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            counts: Default::default(),
            latency: Latency::default(),
        }
    }

    fn write(&self, sheet: &mut MetricSheet) {
        for (by_status, method) in self.counts.iter().zip(0..) {
            let method = METHODS.get(method).map_or("other", Method::as_str);
            for (count, status) in by_status.iter().zip(0..) {
                let status = STATUSES
                    .get(status)
                    .map_or("other".to_owned(), u16::to_string);
                let labels = [
                    ("route", &*self.path),
                    ("method", method),
                    ("status", &*status),
                ];
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    sheet.counter("seckill_http_requests", "Requests answered", &labels, count);
                }
            }
        }
        let labels = [("route", &*self.path)];
        self.latency.write(
            sheet,
            "seckill_http_request_seconds",
            "Time to answer a request",
            &labels,
        );
    }
}

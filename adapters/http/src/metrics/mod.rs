//! `/metrics`, as text for Prometheus.
//!
//! Architecture invariant: no global registry. What is counted here belongs to one application;
//! everything else is asked for when the page is asked for.

mod histogram;
mod requests;
mod sample;
mod sheet;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use seckill_application::Effect;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::Ctx;
use crate::problem::Problem;

pub(crate) use requests::{HttpMeters, Outcome};
pub(crate) use sample::Samples;
pub use sheet::{MetricSheet, MetricSource};

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    OpenApiRouter::default().routes(routes!(metrics))
}

/// Counters and gauges for an operator.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations", responses(
    (status = 200, description = "In the OpenMetrics text format.", body = String,
     content_type = "application/openmetrics-text")
))]
async fn metrics(State(ctx): State<Ctx>) -> Result<Response, Problem> {
    let mut sheet = MetricSheet::default();
    ctx.meters.write(&mut sheet);
    sample::write(&ctx.health, &mut sheet).await;
    for source in &ctx.health.vitals.sources {
        source(&mut sheet);
    }
    let running = ctx.commands.len() as u64;
    sheet.gauge(
        "seckill_commands_running",
        "Commands that were begun and have not ended",
        &[],
        running,
    );
    sheet.gauge(
        "seckill_http_event_streams",
        "Event streams that are open",
        &[],
        ctx.streams.count() as u64,
    );
    let text = sheet.encode().map_err(|_| Problem::Internal {
        effect: Effect::None,
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok((
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind))],
        text,
    )
        .into_response())
}

//! Comparing gate and ledger.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seckill_application::{Effect, Fault, ReconcileScope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::Validate;

use super::report::ReportBody;
use crate::context::Ctx;
use crate::extract::{Admin, OptionalJson, PageOf};
use crate::openapi;
use crate::problem::Problem;
use crate::wire::{Cursor, PageQuery};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes =
        OpenApiRouter::default().routes(routes!(list_reconciliations, start_reconciliation));
    let problems = [
        Problem::ReconciliationRunning,
        Problem::field("dry_run", "true or false"),
        Problem::Unavailable {
            effect: Effect::Unknown,
            retryable: true,
            cause: None,
        },
    ];
    openapi::answers(&mut routes, "startReconciliation", &problems);
    openapi::without_body(&mut routes, "startReconciliation");
    let limit = Problem::field("limit", "1 to 100");
    openapi::answers(&mut routes, "listReconciliations", &[limit]);
    routes
}

/// How to reconcile.
#[derive(Debug, Default, Deserialize, Validate, ToSchema)]
#[schema(as = NewReconciliation, example = json!({"full": true, "dry_run": false}))]
#[serde(deny_unknown_fields, default)]
struct ScopeBody {
    /// Look at closed vouchers too, as long as they are not retired.
    #[schema(default = false)]
    full: bool,
    /// Only report.
    #[schema(default = false)]
    dry_run: bool,
}

/// A reconciliation that goes on.
#[derive(Serialize, ToSchema)]
struct ReconciliationStarted {
    /// `running`.
    #[schema(example = "running")]
    status: &'static str,
    /// After how many milliseconds to look at the list again.
    #[schema(example = 2_000)]
    poll_after_ms: u32,
}

/// A part of the reports, newest first.
#[derive(Serialize, ToSchema)]
struct ReconciliationList {
    items: Vec<ReportBody>,
    /// The `cursor` of the next part; null at the end.
    #[schema(value_type = Option<String>, example = "a000000000000002a", required = true)]
    next_cursor: Option<Cursor>,
}

const LIST: &str = "/v1/admin/reconciliations";

/// Compare gate and ledger now, and mend what differs.
///
/// Takes half a second for each hundred vouchers, or more. What is not done in a few seconds goes on,
/// and its report appears in the list.
#[utoipa::path(post, path = "/v1/admin/reconciliations", operation_id = "startReconciliation",
    tag = "admin", request_body(content = ScopeBody, description = "May be left out."),
    responses(
        (status = 201, description = "The report.", body = ReportBody),
        (status = 202, description = "It goes on.", body = ReconciliationStarted,
            headers(("Location" = String, description = "The list in which the report will be."))),
    ),
    security(("bearer" = [])))]
async fn start_reconciliation(
    State(ctx): State<Ctx>,
    _: Admin,
    OptionalJson(body): OptionalJson<ScopeBody>,
) -> Result<Response, Problem> {
    let scope = ReconcileScope {
        full: body.full,
        dry_run: body.dry_run,
    };
    let reconciling = ctx.clone();
    let work = ctx.finish(async move {
        let told = reconciling.stopping.cancelled();
        let report = reconciling.api.reconcile.run_until(scope, told).await?;
        if report.is_none() && reconciling.stopping.is_cancelled() {
            let stops = "the process is about to stop";
            return Err(Fault::unavailable("reconcile", stops));
        }
        Ok(report)
    });
    match tokio::time::timeout(ctx.settings.request_deadline.mul_f32(0.8), work).await {
        Ok(report) => {
            let report = report?.ok_or(Problem::ReconciliationRunning)?;
            Ok((StatusCode::CREATED, Json(ReportBody::from(report))).into_response())
        }
        Err(_elapsed) => {
            let started = ReconciliationStarted {
                status: "running",
                poll_after_ms: 2_000,
            };
            let location = [(header::LOCATION, HeaderValue::from_static(LIST))];
            Ok((StatusCode::ACCEPTED, location, Json(started)).into_response())
        }
    }
}

/// List reconciliations.
///
/// Newest first; those that run every minute, too.
#[utoipa::path(get, path = "/v1/admin/reconciliations", operation_id = "listReconciliations",
    tag = "admin", params(PageQuery),
    responses((status = 200, description = "A part of the reports.", body = ReconciliationList)),
    security(("bearer" = [])))]
async fn list_reconciliations(
    State(ctx): State<Ctx>,
    _: Admin,
    PageOf(page): PageOf,
) -> Result<Json<ReconciliationList>, Problem> {
    let before = page.cursor.map(|cursor| cursor.0);
    let found = ctx.api.reconcile.reports(before, page.limit).await?;
    Ok(Json(ReconciliationList {
        items: found.items.into_iter().map(ReportBody::from).collect(),
        next_cursor: found.next.map(Cursor),
    }))
}

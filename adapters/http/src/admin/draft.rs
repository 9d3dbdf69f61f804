//! Preparing a voucher.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seckill_application::ports::NewVoucher;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::settings::NewVoucherBody;
use crate::context::Ctx;
use crate::extract::{self, Admin, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;
use crate::vouchers::VoucherBody;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(create_voucher))
        .routes(routes!(get_any_voucher));
    let invalid = Problem::field("closes_at", "later than opens_at");
    openapi::answers(&mut routes, "createVoucher", &[invalid]);
    openapi::answers(&mut routes, "getAnyVoucher", &[Problem::VoucherNotFound]);
    routes
}

/// Create a voucher.
///
/// As a draft, which buyers cannot see until it is published. Not repeatable: each call creates one,
/// and an `Idempotency-Key` is not looked at.
#[utoipa::path(post, path = "/v1/admin/vouchers", operation_id = "createVoucher", tag = "admin",
    request_body = NewVoucherBody,
    responses((status = 201, description = "The draft.", body = VoucherBody,
        headers(("Location" = String, description = "The voucher, for administrators.")))),
    security(("bearer" = [])))]
async fn create_voucher(
    State(ctx): State<Ctx>,
    _: Admin,
    extract::LongJson(body): extract::LongJson<NewVoucherBody>,
) -> Result<Response, Problem> {
    let new = NewVoucher::try_from(body)?;
    let drafting = ctx.clone();
    let drafted = ctx
        .finish(async move { drafting.api.draft.run(&new).await })
        .await?;
    let voucher = drafted?;
    let location = format!("/v1/admin/vouchers/{}", voucher.id);
    let body = super::view(&ctx, voucher).await?;
    let mut response = (StatusCode::CREATED, body).into_response();
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Look any voucher up, drafts included.
#[utoipa::path(get, path = "/v1/admin/vouchers/{voucher_id}", operation_id = "getAnyVoucher",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The voucher.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn get_any_voucher(
    State(ctx): State<Ctx>,
    _: Admin,
    VoucherPath(id): VoucherPath,
) -> Result<Json<VoucherBody>, Problem> {
    let found = ctx.api.browse.find_any(id).await?;
    let view = found.ok_or(Problem::VoucherNotFound)?;
    Ok(Json(VoucherBody::of(view, ctx.api.clock.now())))
}

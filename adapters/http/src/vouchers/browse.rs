//! What is on sale.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::VoucherBody;
use crate::context::Ctx;
use crate::extract::{PageOf, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;
use crate::wire::{Cursor, PageQuery};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(list_vouchers))
        .routes(routes!(get_voucher));
    openapi::answers(
        &mut routes,
        "listVouchers",
        &[openapi::bad_field("limit", "1 to 100")],
    );
    openapi::answers(&mut routes, "getVoucher", &[Problem::VoucherNotFound]);
    routes
}

/// A part of the vouchers, newest first.
#[derive(Serialize, ToSchema)]
struct VoucherList {
    items: Vec<VoucherBody>,
    /// The `cursor` of the next part; null at the end.
    #[schema(value_type = Option<String>, example = "a000000000000002a", required = true)]
    next_cursor: Option<Cursor>,
}

/// List the vouchers on sale.
///
/// Published, paused and closed ones, newest first.
#[utoipa::path(get, path = "/v1/vouchers", operation_id = "listVouchers", tag = "vouchers",
    params(PageQuery),
    responses((status = 200, description = "A part of the vouchers.", body = VoucherList)))]
async fn list_vouchers(
    State(ctx): State<Ctx>,
    PageOf(page): PageOf,
) -> Result<Json<VoucherList>, Problem> {
    let before = page.cursor.map(Cursor::voucher);
    let found = ctx.api.browse.list(before, page.limit).await?;
    let now = ctx.api.clock.now();
    Ok(Json(VoucherList {
        items: found
            .items
            .into_iter()
            .map(|view| VoucherBody::of(view, now))
            .collect(),
        next_cursor: found.next.map(Cursor),
    }))
}

/// Look a voucher up.
#[utoipa::path(get, path = "/v1/vouchers/{voucher_id}", operation_id = "getVoucher", tag = "vouchers",
    params(VoucherParam),
    responses((status = 200, description = "The voucher.", body = VoucherBody)))]
async fn get_voucher(
    State(ctx): State<Ctx>,
    VoucherPath(id): VoucherPath,
) -> Result<Json<VoucherBody>, Problem> {
    let found = ctx.api.browse.find(id).await?;
    let view = found.ok_or(Problem::VoucherNotFound)?;
    Ok(Json(VoucherBody::of(view, ctx.api.clock.now())))
}

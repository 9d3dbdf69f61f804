//! Running sales. Every route here takes [`Admin`](crate::extract::Admin) first.

mod balance;
mod draft;
mod parked;
mod reconciliations;
mod refunds;
mod report;
mod settings;
mod steer;
mod stock;

use axum::Json;
use seckill_domain::Voucher;
use utoipa_axum::router::OpenApiRouter;

use crate::context::{Context, Ctx};
use crate::problem::Problem;
use crate::vouchers::VoucherBody;

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    OpenApiRouter::default()
        .merge(draft::routes())
        .merge(steer::routes())
        .merge(stock::routes())
        .merge(balance::routes())
        .merge(refunds::routes())
        .merge(reconciliations::routes())
        .merge(parked::routes())
}

/// A voucher that was just changed, with what the gate says about it.
async fn view(ctx: &Context, voucher: Voucher) -> Result<Json<VoucherBody>, Problem> {
    let view = ctx.api.browse.view(voucher).await?;
    Ok(Json(VoucherBody::of(view, ctx.api.clock.now())))
}

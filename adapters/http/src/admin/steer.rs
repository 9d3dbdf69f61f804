//! Publishing, pausing, resuming, closing, and changing settings. Each is answered once the gate
//! has applied it.

use axum::Json;
use axum::extract::State;
use seckill_application::{Effect, SteerCommand, SteerReply};
use seckill_domain::{Amendment, SaleStatus, VoucherId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::settings::AmendmentBody;
use crate::context::Ctx;
use crate::extract::{self, Admin, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;
use crate::vouchers::VoucherBody;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(amend_voucher))
        .routes(routes!(publish_voucher))
        .routes(routes!(pause_voucher))
        .routes(routes!(resume_voucher))
        .routes(routes!(close_voucher));
    let gate_lags = Problem::Unavailable {
        effect: Effect::Unknown,
        retryable: true,
        cause: None,
    };
    let common = [
        gate_lags,
        Problem::VoucherNotFound,
        Problem::WrongStatus(SaleStatus::Closed),
    ];
    for id in [
        "amendVoucher",
        "publishVoucher",
        "pauseVoucher",
        "resumeVoucher",
        "closeVoucher",
    ] {
        openapi::answers(&mut routes, id, &common);
    }
    let past = Problem::field("closes_at", "in the future when the voucher is published");
    openapi::answers(&mut routes, "publishVoucher", &[past]);
    let frozen = Problem::FrozenAfterPublish(vec!["price_minor"]);
    let invalid = Problem::field("closes_at", "later than opens_at");
    openapi::answers(&mut routes, "amendVoucher", &[frozen, invalid]);
    routes
}

type Steered = Result<Json<VoucherBody>, Problem>;

async fn steer(ctx: Ctx, id: VoucherId, command: SteerCommand) -> Steered {
    let steering = ctx.clone();
    let reply = ctx
        .finish(async move { steering.api.steer.run(id, command).await })
        .await?;
    match reply {
        SteerReply::Done(voucher) => super::view(&ctx, voucher).await,
        SteerReply::NotFound => Err(Problem::VoucherNotFound),
        SteerReply::Refused(why) => Err(why.into()),
    }
}

/// Change a voucher's settings.
#[utoipa::path(patch, path = "/v1/admin/vouchers/{voucher_id}", operation_id = "amendVoucher",
    tag = "admin", params(VoucherParam), request_body = AmendmentBody,
    responses((status = 200, description = "The voucher, changed at the gate as well.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn amend_voucher(
    State(ctx): State<Ctx>,
    _: Admin,
    VoucherPath(id): VoucherPath,
    extract::LongJson(body): extract::LongJson<AmendmentBody>,
) -> Steered {
    let change = Amendment::from(body);
    change.check_at(ctx.api.clock.now())?;
    steer(ctx, id, SteerCommand::Amend(change)).await
}

/// Put a draft on sale.
#[utoipa::path(post, path = "/v1/admin/vouchers/{voucher_id}/publish", operation_id = "publishVoucher",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The voucher, loaded into the gate.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn publish_voucher(
    State(ctx): State<Ctx>,
    _: Admin,
    VoucherPath(id): VoucherPath,
) -> Steered {
    steer(ctx, id, SteerCommand::Publish).await
}

/// Stop purchases, joining and promotions for now.
///
/// Paying, cancelling and expiry go on.
#[utoipa::path(post, path = "/v1/admin/vouchers/{voucher_id}/pause", operation_id = "pauseVoucher",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The voucher, paused.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn pause_voucher(State(ctx): State<Ctx>, _: Admin, VoucherPath(id): VoucherPath) -> Steered {
    steer(ctx, id, SteerCommand::Pause).await
}

/// Go on after a pause.
#[utoipa::path(post, path = "/v1/admin/vouchers/{voucher_id}/resume", operation_id = "resumeVoucher",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The voucher, on sale.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn resume_voucher(State(ctx): State<Ctx>, _: Admin, VoucherPath(id): VoucherPath) -> Steered {
    steer(ctx, id, SteerCommand::Resume).await
}

/// End the sale for good.
///
/// Unpaid orders keep their payment window; the waitlist is drained and told.
#[utoipa::path(post, path = "/v1/admin/vouchers/{voucher_id}/close", operation_id = "closeVoucher",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The voucher, closed.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn close_voucher(State(ctx): State<Ctx>, _: Admin, VoucherPath(id): VoucherPath) -> Steered {
    steer(ctx, id, SteerCommand::Close).await
}

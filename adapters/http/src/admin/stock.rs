//! Adding units to a sale, and taking free ones out.

use axum::Json;
use axum::extract::State;
use seckill_application::ports::NewAdjustment;
use seckill_application::{AdjustStockReply, Effect};
use seckill_domain::SaleStatus;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::{Validate, ValidationError};

use crate::context::Ctx;
use crate::extract::{self, Admin, Key, KeyHeader, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;
use crate::vouchers::VoucherBody;
use crate::wire::text;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(adjust_stock));
    let problems = [
        Problem::VoucherNotFound,
        Problem::NotEnoughFree,
        Problem::WrongStatus(SaleStatus::Draft),
        Problem::IdempotencyKeyReused,
        Problem::field("delta", DELTA),
        Problem::Unavailable {
            effect: Effect::Unknown,
            retryable: true,
            cause: None,
        },
    ];
    openapi::answers(&mut routes, "adjustStock", &problems);
    routes
}

/// A change of a voucher's stock.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = StockAdjustment)]
#[serde(deny_unknown_fields)]
struct AdjustmentBody {
    /// Units to add (positive) or to take out (negative); not 0.
    #[serde(deserialize_with = "extract::whole")]
    #[validate(custom(function = "not_zero"))]
    #[schema(minimum = -100_000_000, maximum = 100_000_000, example = 20)]
    delta: i32,
    #[validate(custom(function = "in_words"))]
    #[schema(schema_with = text::reason)]
    reason: String,
}

/// A reason is a line that shows what it says.
pub(super) fn in_words(reason: &str) -> Result<(), ValidationError> {
    let chars = reason.trim().chars().count();
    if (1..=200).contains(&chars) && seckill_domain::is_plain_line(reason) {
        Ok(())
    } else {
        Err(ValidationError::new("reason").with_message(REASON.into()))
    }
}

pub(super) const REASON: &str = "1 to 200 characters in one line, no control characters, and none that override the direction of text";
const DELTA: &str = "-100000000 to 100000000, and not 0";
const ROOM: &str = "so many that the voucher has at most 100000000 units in all";

fn not_zero(delta: i32) -> Result<(), ValidationError> {
    if delta != 0 && (-100_000_000..=100_000_000).contains(&delta) {
        Ok(())
    } else {
        Err(ValidationError::new("delta").with_message(DELTA.into()))
    }
}

/// Add units to a sale, or take free ones out, while it runs.
///
/// Repeatable with an `Idempotency-Key`; without one, each call adjusts. A repeat is answered as the
/// first call was, also if that was refused: what was refused with 409 `not_enough_free` stays
/// refused for its key, whatever is free by now. Try again with a new key.
#[utoipa::path(post, path = "/v1/admin/vouchers/{voucher_id}/stock-adjustments",
    operation_id = "adjustStock", tag = "admin", params(VoucherParam, KeyHeader),
    request_body = AdjustmentBody,
    responses((status = 200, description = "The voucher, adjusted at the gate as well.", body = VoucherBody)),
    security(("bearer" = [])))]
async fn adjust_stock(
    State(ctx): State<Ctx>,
    _: Admin,
    VoucherPath(voucher): VoucherPath,
    Key(key): Key,
    extract::Json(body): extract::Json<AdjustmentBody>,
) -> Result<Json<VoucherBody>, Problem> {
    let wish = NewAdjustment {
        voucher,
        delta: body.delta,
        reason: body.reason,
        key,
    };
    let adjusting = ctx.clone();
    let reply = ctx
        .finish(async move { adjusting.api.adjust.run(&wish).await })
        .await?;
    match reply {
        AdjustStockReply::Done(voucher) => super::view(&ctx, voucher).await,
        AdjustStockReply::NotFound => Err(Problem::VoucherNotFound),
        AdjustStockReply::WrongStatus(status) => Err(Problem::WrongStatus(status)),
        AdjustStockReply::NotEnoughFree => Err(Problem::NotEnoughFree),
        AdjustStockReply::TooMany => Err(Problem::field("delta", ROOM)),
        AdjustStockReply::KeyReused => Err(Problem::IdempotencyKeyReused),
    }
}

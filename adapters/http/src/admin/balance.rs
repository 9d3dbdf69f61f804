//! Where every unit of a voucher is.

use axum::Json;
use axum::extract::State;
use seckill_application::Balance;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::Ctx;
use crate::extract::{Admin, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(get_balance));
    openapi::answers(&mut routes, "getBalance", &[Problem::VoucherNotFound]);
    routes
}

/// A voucher's units: `total = free + in_flight + parked + awaiting_payment + paid`.
#[derive(Serialize, ToSchema)]
#[schema(as = Balance, example = json!({"total": 100, "free": 42, "in_flight": 3, "parked": 0,
    "awaiting_payment": 30, "paid": 25, "holds": true, "stock_drift": 0, "watermark": 58}))]
struct BalanceBody {
    /// Units the sale has in all.
    total: i64,
    /// Units nobody has.
    free: i64,
    /// Units that the gate has decided about and the ledger does not know of yet, and the other way
    /// round.
    in_flight: i64,
    /// Units of parked messages.
    parked: i64,
    /// Units of orders that wait for payment.
    awaiting_payment: i64,
    /// Units of paid orders.
    paid: i64,
    /// Whether the sum is right, nothing moved while it was read, and `stock_drift` is 0.
    holds: bool,
    /// Units by which the ledger's stock is off from what its own total and orders leave.
    stock_drift: i64,
    /// The last decision of the voucher's partition that the ledger had applied.
    watermark: u64,
}

impl From<Balance> for BalanceBody {
    fn from(balance: Balance) -> Self {
        let tally = balance.tally;
        Self {
            total: tally.total,
            free: tally.free,
            in_flight: tally.in_flight,
            parked: tally.parked,
            awaiting_payment: tally.awaiting_payment,
            paid: tally.paid,
            holds: balance.holds,
            stock_drift: balance.stock_drift,
            watermark: balance.watermark.get(),
        }
    }
}

/// See where every unit of a voucher is.
#[utoipa::path(get, path = "/v1/admin/vouchers/{voucher_id}/balance", operation_id = "getBalance",
    tag = "admin", params(VoucherParam),
    responses((status = 200, description = "The balance.", body = BalanceBody)),
    security(("bearer" = [])))]
async fn get_balance(
    State(ctx): State<Ctx>,
    _: Admin,
    VoucherPath(voucher): VoucherPath,
) -> Result<Json<BalanceBody>, Problem> {
    let balance = ctx.api.balance.run(voucher).await?;
    Ok(Json(balance.ok_or(Problem::VoucherNotFound)?.into()))
}

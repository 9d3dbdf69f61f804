//! A buyer's place while a voucher is sold out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use seckill_application::ports::Place;
use seckill_application::{FindPlace, LeavePlace};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::Ctx;
use crate::extract::{Buyer, VoucherParam, VoucherPath};
use crate::openapi;
use crate::problem::Problem;
use crate::wire::Id;

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(get_place, leave_place));
    openapi::answers(
        &mut routes,
        "getWaitlistPlace",
        &[Problem::NotWaiting, Problem::VoucherNotFound],
    );
    openapi::answers(
        &mut routes,
        "leaveWaitlist",
        &[Problem::VoucherNotFound, openapi::already_promoted()],
    );
    routes
}

/// A place on the waitlist.
#[derive(Serialize, ToSchema)]
#[schema(as = WaitlistPlace)]
struct PlaceBody {
    /// The order that waits, or that was given its units.
    order_id: Id,
    status: PlaceStatus,
    /// The place, counted from 1; null once promoted.
    #[schema(required = true, example = 3)]
    position: Option<u32>,
    /// How many wait.
    #[schema(example = 12)]
    length: u32,
}

/// Whether a place still waits.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PlaceStatus {
    Waiting,
    Promoted,
}

impl From<Place> for PlaceBody {
    fn from(place: Place) -> Self {
        match place {
            Place::Waiting {
                order,
                position,
                length,
            } => Self {
                order_id: order.into(),
                status: PlaceStatus::Waiting,
                position: Some(position),
                length,
            },
            Place::Promoted { order, length } => Self {
                order_id: order.into(),
                status: PlaceStatus::Promoted,
                position: None,
                length,
            },
        }
    }
}

/// Look your place up.
#[utoipa::path(get, path = "/v1/vouchers/{voucher_id}/waitlist/me", operation_id = "getWaitlistPlace",
    tag = "waitlist", params(VoucherParam),
    responses((status = 200, description = "Your place, or the order you were given.", body = PlaceBody)),
    security(("bearer" = [])))]
async fn get_place(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    VoucherPath(voucher): VoucherPath,
) -> Result<Json<PlaceBody>, Problem> {
    match ctx.api.place.find(voucher, caller.id).await? {
        FindPlace::At(place) => Ok(Json(place.into())),
        FindPlace::NotWaiting => Err(Problem::NotWaiting),
        FindPlace::VoucherNotFound => Err(Problem::VoucherNotFound),
    }
}

/// Give your place up.
///
/// Repeatable: also answered like this when you do not wait.
#[utoipa::path(delete, path = "/v1/vouchers/{voucher_id}/waitlist/me", operation_id = "leaveWaitlist",
    tag = "waitlist", params(VoucherParam),
    responses((status = 204, description = "You do not wait.")),
    security(("bearer" = [])))]
async fn leave_place(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    VoucherPath(voucher): VoucherPath,
) -> Result<StatusCode, Problem> {
    let leaving = ctx.clone();
    let left = ctx
        .finish(async move { leaving.api.place.leave(voucher, caller.id).await })
        .await;
    match left? {
        LeavePlace::NotWaiting => Ok(StatusCode::NO_CONTENT),
        LeavePlace::AlreadyPromoted(order) => Err(Problem::AlreadyPromoted { order }),
        LeavePlace::VoucherNotFound => Err(Problem::VoucherNotFound),
    }
}

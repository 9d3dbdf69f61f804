//! Giving an order up.

use axum::Json;
use axum::extract::State;
use seckill_application::CancelReply;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::view::OrderBody;
use crate::context::Ctx;
use crate::extract::{Buyer, OrderParam, OrderPath};
use crate::openapi;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(cancel_order));
    let problems = [
        Problem::OrderNotFound,
        Problem::OrderQueued,
        Problem::OrderPaid,
        Problem::OrderExpired,
        Problem::OrderRejected,
        Problem::OrderRefunded,
    ];
    openapi::answers(&mut routes, "cancelOrder", &problems);
    routes
}

/// Give an order up before paying.
///
/// Repeatable. An order that waits leaves the waitlist. While the order is queued, waits up to two
/// seconds for it.
#[utoipa::path(post, path = "/v1/orders/{order_id}/cancellation", operation_id = "cancelOrder",
    tag = "orders", params(OrderParam),
    responses((status = 200, description = "The order, given up.", body = OrderBody)),
    security(("bearer" = [])))]
async fn cancel_order(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    OrderPath(id): OrderPath,
) -> Result<Json<OrderBody>, Problem> {
    let cancelling = ctx.clone();
    let reply = ctx
        .finish(async move { cancelling.api.cancel.run(id, caller.id).await })
        .await?;
    match reply {
        CancelReply::Cancelled(order) => Ok(Json(order.into())),
        CancelReply::NotFound => Err(Problem::OrderNotFound),
        CancelReply::Refused(why) => Err(why.into()),
    }
}

//! Paying.

use axum::Json;
use axum::extract::State;
use seckill_application::PayReply;
use seckill_domain::PaymentId;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::Validate;

use super::view::OrderBody;
use crate::context::Ctx;
use crate::extract::{self, Buyer, OrderParam, OrderPath};
use crate::openapi;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(pay_order));
    let problems = [
        Problem::OrderNotFound,
        Problem::OrderQueued,
        Problem::OrderExpired,
        Problem::OrderCancelled,
        Problem::OrderPaid,
        Problem::OrderWaiting,
        Problem::OrderRejected,
        Problem::OrderRefunded,
        openapi::payment_declined(),
        Problem::PaymentUsed,
        Problem::field("payment_id", PAYMENT_ID),
    ];
    openapi::answers(&mut routes, "payOrder", &problems);
    routes
}

/// A payment.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = Payment)]
struct PaymentBody {
    /// The provider's id of the payment; the same id may be sent again.
    #[validate(length(
        min = 1,
        max = 64,
        message = "1 to 64 visible ASCII characters without spaces"
    ))]
    #[schema(
        example = "pay_7f3c9a52",
        min_length = 1,
        max_length = 64,
        pattern = r"^[\x21-\x7E]+$"
    )]
    payment_id: String,
}

const PAYMENT_ID: &str = "1 to 64 visible ASCII characters without spaces";

/// Pay an order.
///
/// Before it expires. Repeatable with the same payment. While the order is queued, that is, has its
/// units and no row yet, waits up to two seconds for it, then answers 409 `order_queued`. One that
/// waits for units is answered 409 `order_waiting` at once.
#[utoipa::path(post, path = "/v1/orders/{order_id}/payments", operation_id = "payOrder", tag = "orders",
    params(OrderParam), request_body = PaymentBody,
    responses((status = 200, description = "The order, paid.", body = OrderBody)),
    security(("bearer" = [])))]
async fn pay_order(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    OrderPath(id): OrderPath,
    extract::Json(body): extract::Json<PaymentBody>,
) -> Result<Json<OrderBody>, Problem> {
    let payment: PaymentId = body
        .payment_id
        .parse()
        .map_err(|_| Problem::field("payment_id", PAYMENT_ID))?;
    let paying = ctx.clone();
    let reply = ctx
        .finish(async move { paying.api.pay.run(id, caller.id, &payment).await })
        .await?;
    match reply {
        PayReply::Paid(order) => Ok(Json(order.into())),
        PayReply::NotFound => Err(Problem::OrderNotFound),
        PayReply::Refused(why) => Err(why.into()),
        PayReply::Declined(why) => Err(Problem::PaymentDeclined(why)),
        PayReply::PaymentUsed => Err(Problem::PaymentUsed),
    }
}

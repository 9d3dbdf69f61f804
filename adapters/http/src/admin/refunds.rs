//! Money that goes back.

use axum::Json;
use axum::extract::State;
use seckill_application::RefundReply;
use seckill_domain::Refund;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::context::Ctx;
use crate::extract::{Admin, OrderParam, OrderPath, PageOf};
use crate::openapi;
use crate::orders::OrderBody;
use crate::problem::Problem;
use crate::wire::{Cursor, Id, Instant, PageQuery, RefundReasonWord};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(refund_order))
        .routes(routes!(list_refunds));
    let problems = [
        Problem::OrderNotFound,
        Problem::OrderNotPaid,
        Problem::OrderQueued,
        Problem::OrderWaiting,
        Problem::OrderExpired,
        Problem::OrderCancelled,
        Problem::OrderRejected,
    ];
    openapi::answers(&mut routes, "refundOrder", &problems);
    let limit = Problem::field("limit", "1 to 100");
    openapi::answers(&mut routes, "listRefunds", &[limit]);
    routes
}

/// A refund record.
#[derive(Serialize, ToSchema)]
#[schema(as = Refund)]
struct RefundBody {
    id: Id,
    /// For which order the money came; with `unknown_order` there is no such order.
    order_id: Id,
    /// The provider's id of the payment.
    #[schema(example = "pay_7f3c9a52")]
    payment_id: String,
    /// How much goes back, in minor units.
    #[schema(example = 8_000)]
    amount_minor: u64,
    /// ISO 4217.
    #[schema(example = "CNY", pattern = "^[A-Z]{3}$")]
    currency: String,
    reason: RefundReasonWord,
    /// Whether the provider has been told to send it back.
    sent: bool,
    /// When it was recorded.
    created_at: Instant,
}

impl From<Refund> for RefundBody {
    fn from(refund: Refund) -> Self {
        Self {
            id: Id::numbered(refund.id),
            order_id: refund.order.into(),
            payment_id: refund.payment.to_string(),
            amount_minor: refund.amount.minor,
            currency: refund.amount.currency.to_string(),
            reason: refund.reason.into(),
            sent: refund.sent,
            created_at: Instant(refund.created_at),
        }
    }
}

/// A part of the refund records, newest first.
#[derive(Serialize, ToSchema)]
struct RefundList {
    items: Vec<RefundBody>,
    /// The `cursor` of the next part; null at the end.
    #[schema(value_type = Option<String>, example = "a000000000000002a", required = true)]
    next_cursor: Option<Cursor>,
}

/// Refund a paid order.
///
/// Money and units go back in one step. Repeatable.
#[utoipa::path(post, path = "/v1/admin/orders/{order_id}/refunds", operation_id = "refundOrder",
    tag = "admin", params(OrderParam),
    responses((status = 200, description = "The order, refunded.", body = OrderBody)),
    security(("bearer" = [])))]
async fn refund_order(
    State(ctx): State<Ctx>,
    _: Admin,
    OrderPath(id): OrderPath,
) -> Result<Json<OrderBody>, Problem> {
    let refunding = ctx.clone();
    let reply = ctx
        .finish(async move { refunding.api.refund.run(id).await })
        .await?;
    match reply {
        RefundReply::Refunded(order) => Ok(Json(order.into())),
        RefundReply::NotFound => Err(Problem::OrderNotFound),
        RefundReply::Refused(why) => Err(why.into()),
    }
}

/// List money that goes back.
///
/// Newest first: refunds of orders, and payments that could not stay.
#[utoipa::path(get, path = "/v1/admin/refunds", operation_id = "listRefunds", tag = "admin",
    params(PageQuery),
    responses((status = 200, description = "A part of the refund records.", body = RefundList)),
    security(("bearer" = [])))]
async fn list_refunds(
    State(ctx): State<Ctx>,
    _: Admin,
    PageOf(page): PageOf,
) -> Result<Json<RefundList>, Problem> {
    let before = page.cursor.map(|cursor| cursor.0);
    let found = ctx.api.money.refunds(before, page.limit).await?;
    Ok(Json(RefundList {
        items: found.items.into_iter().map(RefundBody::from).collect(),
        next_cursor: found.next.map(Cursor),
    }))
}

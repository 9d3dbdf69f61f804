//! Looking orders up.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::view::OrderBody;
use crate::context::Ctx;
use crate::extract::{Buyer, OrderParam, OrderPath, PageOf};
use crate::openapi;
use crate::problem::Problem;
use crate::wire::{Cursor, PageQuery};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default()
        .routes(routes!(list_orders))
        .routes(routes!(get_order));
    openapi::answers(
        &mut routes,
        "listOrders",
        &[openapi::bad_field("limit", "1 to 100")],
    );
    openapi::answers(&mut routes, "getOrder", &[Problem::OrderNotFound]);
    routes
}

/// A part of a buyer's orders, newest first.
#[derive(Serialize, ToSchema)]
struct OrderList {
    items: Vec<OrderBody>,
    /// The `cursor` of the next part; null at the end.
    #[schema(value_type = Option<String>, example = "a0876a1b2c3d4e5f6", required = true)]
    next_cursor: Option<Cursor>,
}

/// List your orders.
///
/// Newest first. An order that was granted a moment ago appears once it is written down; look it up
/// by its id until then.
#[utoipa::path(get, path = "/v1/orders", operation_id = "listOrders", tag = "orders",
    params(PageQuery),
    responses((status = 200, description = "A part of your orders.", body = OrderList)),
    security(("bearer" = [])))]
async fn list_orders(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    PageOf(page): PageOf,
) -> Result<Json<OrderList>, Problem> {
    let before = page.cursor.map(Cursor::order);
    let found = ctx.api.orders.list(caller.id, before, page.limit).await?;
    Ok(Json(OrderList {
        items: found.items.into_iter().map(OrderBody::from).collect(),
        next_cursor: found.next.map(Cursor),
    }))
}

/// Look an order of yours up.
///
/// Readable from the moment it was granted.
#[utoipa::path(get, path = "/v1/orders/{order_id}", operation_id = "getOrder", tag = "orders",
    params(OrderParam),
    responses((status = 200, description = "The order.", body = OrderBody)),
    security(("bearer" = [])))]
async fn get_order(
    State(ctx): State<Ctx>,
    Buyer(caller): Buyer,
    OrderPath(id): OrderPath,
) -> Result<Json<OrderBody>, Problem> {
    let found = ctx.api.orders.find(id, caller.id).await?;
    Ok(Json(found.ok_or(Problem::OrderNotFound)?.into()))
}

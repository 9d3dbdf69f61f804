//! Buying: one call, no database.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seckill_application::{Effect, Purchase, PurchaseRequest};
use seckill_domain::{OrderId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::Validate;

use crate::context::Ctx;
use crate::extract::{Key, KeyHeader, OptionalJson, Purchaser, VoucherParam, VoucherPath, whole};
use crate::metrics::Outcome;
use crate::openapi;
use crate::problem::{Problem, whole_seconds};
use crate::wire::{Id, OrderStatusWord};

pub(super) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(purchase_voucher));
    let problems = [
        Problem::VoucherNotFound,
        Problem::SoldOut,
        openapi::not_open(),
        Problem::Paused,
        Problem::LimitExceeded { remaining: 1 },
        Problem::Closed,
        Problem::field("quantity", QUANTITY),
        Problem::IdempotencyKeyReused,
    ];
    openapi::answers(&mut routes, "purchaseVoucher", &problems);
    openapi::without_body(&mut routes, "purchaseVoucher");
    routes
}

/// What to buy. Unknown fields are ignored.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = Purchase, example = json!({"quantity": 1}))]
struct PurchaseBody {
    /// How many units: all or none.
    #[serde(default = "one", deserialize_with = "whole")]
    #[validate(range(min = 1, max = 1_000_000, message = "1 to 1000000"))]
    #[schema(minimum = 1, maximum = 1_000_000, default = 1)]
    quantity: u32,
}

/// What `quantity` may be. The buyer's limit is the sale's to judge.
const QUANTITY: &str = "1 to 1000000";

fn one() -> u32 {
    1
}

impl Default for PurchaseBody {
    fn default() -> Self {
        Self { quantity: one() }
    }
}

/// What became of a purchase.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PurchaseOutcome)]
struct PurchaseAnswer {
    /// `granted`: the units are yours; pay before the order expires. `waitlisted`: you wait.
    /// `already_held`: you have as many as you may.
    outcome: OutcomeWord,
    /// The order; of several that you hold, the first.
    order_id: Id,
    /// With `already_held`: every order that holds units for you.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_ids: Option<Vec<Id>>,
    /// Where the order is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<OrderStatusWord>,
    /// With `waitlisted`: the place, counted from 1, while the order waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    position: Option<u32>,
    /// After how many milliseconds to look at the order again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    poll_after_ms: Option<u32>,
}

/// What a buyer got.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Outcome)]
#[serde(rename_all = "snake_case")]
enum OutcomeWord {
    Granted,
    Waitlisted,
    AlreadyHeld,
}

/// Buy a voucher.
///
/// Decided at once and in order of arrival. Repeating a purchase with the same `Idempotency-Key`
/// gives the same outcome and order; without a key, each call below your limit is a new purchase.
#[utoipa::path(post, path = "/v1/vouchers/{voucher_id}/purchases", operation_id = "purchaseVoucher",
    tag = "vouchers",
    params(VoucherParam, KeyHeader),
    request_body(content = PurchaseBody, description = "May be left out: one unit."),
    responses(
        (status = 202, description = "Granted, or a new place on the waitlist.", body = PurchaseAnswer,
         headers(("Location" = String, description = "The order.")),
         examples(
            ("granted" = (value = json!({"outcome": "granted", "order_id": "609848294759202817",
                "status": "queued", "poll_after_ms": 200}))),
            ("waitlisted" = (value = json!({"outcome": "waitlisted", "order_id": "609848294759202818",
                "status": "waiting", "position": 3, "poll_after_ms": 2000}))))),
        (status = 200, description = "Already at the limit, or already waiting.", body = PurchaseAnswer,
         examples(
            ("already_held" = (value = json!({"outcome": "already_held",
                "order_id": "609848294759202817", "order_ids": ["609848294759202817"]}))),
            ("waitlisted" = (value = json!({"outcome": "waitlisted", "order_id": "609848294759202818",
                "status": "waiting", "position": 3, "poll_after_ms": 2000}))))),
    ),
    security(("bearer" = [])))]
async fn purchase_voucher(
    State(ctx): State<Ctx>,
    Purchaser(caller): Purchaser,
    VoucherPath(voucher): VoucherPath,
    Key(key): Key,
    OptionalJson(body): OptionalJson<PurchaseBody>,
) -> Result<Response, Problem> {
    let request = PurchaseRequest {
        voucher,
        buyer: caller.id,
        quantity: body.quantity,
        key,
    };
    let buying = ctx.clone();
    let told = ctx
        .finish(async move { buying.api.purchase.run(request).await })
        .await;
    let purchase = told.inspect_err(|_| ctx.meters.attempt(Outcome::Unavailable))?;
    ctx.meters.attempt(Outcome::of(&purchase));
    answer(purchase, ctx.api.clock.now())
}

fn answer(purchase: Purchase, now: Timestamp) -> Result<Response, Problem> {
    Err(match purchase {
        Purchase::Granted { order, status } => {
            let status = OrderStatusWord::from(status);
            let body = PurchaseAnswer::of(OutcomeWord::Granted, order, status, None);
            return Ok(accepted(order, body));
        }
        Purchase::Waitlisted {
            order,
            position,
            status,
            joined,
        } => {
            let status = OrderStatusWord::from(status);
            let position = (position > 0).then_some(position);
            let body = PurchaseAnswer::of(OutcomeWord::Waitlisted, order, status, position);
            return Ok(if joined {
                accepted(order, body)
            } else {
                Json(body).into_response()
            });
        }
        Purchase::AlreadyHeld { orders } => return already_held(&orders),
        Purchase::LimitExceeded { remaining } => Problem::LimitExceeded { remaining },
        Purchase::KeyReused => Problem::IdempotencyKeyReused,
        Purchase::NotOpen { opens_at } => Problem::NotOpen {
            opens_at,
            retry_after_s: whole_seconds(now.until(opens_at)),
        },
        Purchase::Paused => Problem::Paused,
        Purchase::Closed => Problem::Closed,
        Purchase::SoldOut => Problem::SoldOut,
        Purchase::VoucherNotFound => Problem::VoucherNotFound,
        Purchase::Unavailable => Problem::Unavailable {
            effect: Effect::None,
            retryable: true,
            cause: None,
        },
    })
}

impl PurchaseAnswer {
    fn of(
        outcome: OutcomeWord,
        order: OrderId,
        status: OrderStatusWord,
        position: Option<u32>,
    ) -> Self {
        Self {
            outcome,
            order_id: order.into(),
            order_ids: None,
            status: Some(status),
            position,
            poll_after_ms: status.poll_after_ms(),
        }
    }
}

fn accepted(order: OrderId, body: PurchaseAnswer) -> Response {
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    if let Ok(location) = HeaderValue::try_from(format!("/v1/orders/{order}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn already_held(orders: &[OrderId]) -> Result<Response, Problem> {
    // The gate says this only of somebody who holds something.
    let first = orders.first().ok_or(Problem::Internal {
        effect: Effect::None,
    })?;
    let body = PurchaseAnswer {
        outcome: OutcomeWord::AlreadyHeld,
        order_id: Id::from(*first),
        order_ids: Some(orders.iter().copied().map(Id::from).collect()),
        status: None,
        position: None,
        poll_after_ms: None,
    };
    Ok(Json(body).into_response())
}

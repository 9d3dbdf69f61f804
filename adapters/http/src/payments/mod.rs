//! What the payment provider says.

use axum::Json;
use axum::extract::State;
use seckill_application::ports::PaymentOutcome;
use seckill_application::{HearReply, PaymentNotice};
use seckill_domain::{Currency, Money, OrderId, PaymentId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use validator::Validate;

use crate::context::Ctx;
use crate::extract::{SignatureHeaders, Signed, whole};
use crate::openapi;
use crate::problem::{FieldError, Problem};
use crate::wire::{Id, RefundReasonWord};

pub(crate) fn routes() -> OpenApiRouter<Ctx> {
    let mut routes = OpenApiRouter::default().routes(routes!(hear_payment));
    let problems = [
        openapi::bad_signature(),
        Problem::OrderQueued,
        Problem::PaymentUsed,
        Problem::field("payment_id", PAYMENT_ID),
    ];
    openapi::answers(&mut routes, "hearPayment", &problems);
    routes
}

/// Money that moved. Unknown fields are ignored.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[schema(as = PaymentNotification, example = json!({"payment_id": "pay_7f3c9a52",
    "order_id": "609848294759202817", "amount_minor": 8_000, "currency": "CNY"}))]
struct NoticeBody {
    /// The provider's id of the payment: the same id is the same payment, however often it comes.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[\x21-\x7E]+$")]
    payment_id: String,
    /// For which order.
    #[schema(value_type = Id)]
    order_id: String,
    /// How much came, in minor units.
    #[serde(deserialize_with = "whole")]
    #[validate(range(
        max = 9_223_372_036_854_775_807_u64,
        message = "0 to 9223372036854775807"
    ))]
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807_i64)]
    amount_minor: u64,
    /// ISO 4217.
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: String,
}

const PAYMENT_ID: &str = "1 to 64 visible ASCII characters without spaces";

impl TryFrom<NoticeBody> for PaymentNotice {
    type Error = Problem;

    fn try_from(body: NoticeBody) -> Result<Self, Problem> {
        let payment = body.payment_id.parse::<PaymentId>();
        let order = body.order_id.parse::<OrderId>();
        let currency = body.currency.parse::<Currency>();
        match (payment, order, currency) {
            (Ok(payment), Ok(order), Ok(currency)) => Ok(Self {
                payment,
                order,
                amount: Money {
                    minor: body.amount_minor,
                    currency,
                },
            }),
            (payment, order, currency) => {
                let misfits = [
                    (payment.is_err(), "payment_id", PAYMENT_ID),
                    (
                        order.is_err(),
                        "order_id",
                        "an id in decimal digits, as text",
                    ),
                    (
                        currency.is_err(),
                        "currency",
                        "three upper-case letters, as in ISO 4217",
                    ),
                ];
                let misfits = misfits.into_iter().filter(|(is, ..)| *is);
                Err(Problem::ValidationFailed(
                    misfits
                        .map(|(_, field, allowed)| FieldError::invalid(field, allowed))
                        .collect(),
                ))
            }
        }
    }
}

/// What became of a payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentSettlement)]
struct SettlementBody {
    #[schema(example = "pay_7f3c9a52")]
    payment_id: String,
    outcome: OutcomeWord,
    /// With `refunded`: why it goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<RefundReasonWord>,
}

/// Whether a payment stays.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PaymentOutcome)]
#[serde(rename_all = "snake_case")]
enum OutcomeWord {
    Paid,
    Refunded,
}

impl SettlementBody {
    fn of(payment: &PaymentId, outcome: PaymentOutcome) -> Self {
        let reason = match outcome {
            PaymentOutcome::Paid => None,
            PaymentOutcome::RefundedTooLate => Some(RefundReasonWord::TooLate),
            PaymentOutcome::RefundedTooEarly => Some(RefundReasonWord::TooEarly),
            PaymentOutcome::RefundedSecond => Some(RefundReasonWord::SecondPayment),
            PaymentOutcome::RefundedWrongAmount => Some(RefundReasonWord::WrongAmount),
            PaymentOutcome::RefundedUnknownOrder => Some(RefundReasonWord::UnknownOrder),
        };
        Self {
            payment_id: payment.to_string(),
            outcome: if reason.is_some() {
                OutcomeWord::Refunded
            } else {
                OutcomeWord::Paid
            },
            reason,
        }
    }
}

/// Hear that money moved.
///
/// For the payment provider. Money pays its order, or a refund record is left: also for an order
/// that does not exist, that is over or paid by another payment, and for a wrong amount; all of
/// that is 200, because there is nothing to send again. Repeatable by `payment_id`: a repeat is
/// answered as the first was, and a notice of the same payment for another order or
/// amount is refused.
#[utoipa::path(post, path = "/v1/payments/notifications", operation_id = "hearPayment", tag = "payments",
    params(SignatureHeaders), request_body = NoticeBody,
    responses((status = 200, description = "Written down: what became of the payment.", body = SettlementBody,
        examples(
            ("paid" = (value = json!({"payment_id": "pay_7f3c9a52", "outcome": "paid"}))),
            ("refunded" = (value = json!({"payment_id": "pay_7f3c9a52", "outcome": "refunded",
                "reason": "too_late"})))))))]
async fn hear_payment(
    State(ctx): State<Ctx>,
    Signed(body): Signed<NoticeBody>,
) -> Result<Json<SettlementBody>, Problem> {
    let notice = PaymentNotice::try_from(body)?;
    let payment = notice.payment.clone();
    let hearing = ctx.clone();
    let heard = ctx
        .finish(async move { hearing.api.hear.run(&notice).await })
        .await?;
    match heard {
        HearReply::Settled(outcome) => Ok(Json(SettlementBody::of(&payment, outcome))),
        HearReply::OrderQueued => Err(Problem::OrderQueued),
        HearReply::Contradicted => Err(Problem::PaymentUsed),
    }
}

//! Every answer that is not a success: RFC 9457 `application/problem+json`.

mod body;
mod from;

use axum::http::StatusCode;
use seckill_application::Effect;
use seckill_domain::{OrderId, SaleStatus, Timestamp};

use crate::health::Readiness;

pub(crate) use body::{PROBLEM_JSON, ProblemBody};
pub(crate) use from::whole_seconds;

/// One field that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// Its name on the wire; empty for the body as a whole.
    pub(crate) field: String,
    /// `invalid`, `required` or `unknown`.
    pub(crate) code: &'static str,
    /// What is allowed.
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            code: "invalid",
            message: message.into(),
        }
    }
}

/// Why a request is not answered with what it asked for. Its body is written in one place, where
/// the request's id and path are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Unauthenticated(&'static str),
    Forbidden,
    RouteNotFound,
    MethodNotAllowed,
    RequestTimeout,
    PayloadTooLarge {
        bytes_max: usize,
    },
    UnsupportedMediaType,
    MalformedRequest,
    UriTooLong,
    HeadTooLarge,
    ValidationFailed(Vec<FieldError>),
    RateLimited {
        retry_after_s: u64,
    },
    Overloaded,
    Unavailable {
        effect: Effect,
        retryable: bool,
        cause: Option<String>,
    },
    Internal {
        effect: Effect,
    },
    NotReady(Box<Readiness>),

    VoucherNotFound,
    SoldOut,
    NotOpen {
        opens_at: Timestamp,
        retry_after_s: u64,
    },
    Paused,
    Closed,
    LimitExceeded {
        remaining: u32,
    },
    IdempotencyKeyReused,

    OrderNotFound,
    OrderQueued,
    OrderWaiting,
    OrderExpired,
    OrderCancelled,
    OrderPaid,
    OrderNotPaid,
    OrderRejected,
    OrderRefunded,
    PaymentDeclined(String),
    PaymentUsed,
    BadSignature(&'static str),

    NotWaiting,
    AlreadyPromoted {
        order: OrderId,
    },

    WrongStatus(SaleStatus),
    FrozenAfterPublish(Vec<&'static str>),
    NotEnoughFree,

    ReconciliationRunning,
    ParkedNotFound,
    ParkedSettled,
    ParkedUnfit(&'static str),
}

impl Problem {
    /// One field that does not fit.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        Self::ValidationFailed(vec![FieldError::invalid(field, message)])
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthenticated(_) | Self::BadSignature(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::RouteNotFound
            | Self::VoucherNotFound
            | Self::OrderNotFound
            | Self::NotWaiting
            | Self::ParkedNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::MalformedRequest => StatusCode::BAD_REQUEST,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::ValidationFailed(_) | Self::IdempotencyKeyReused => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Overloaded | Self::Unavailable { .. } | Self::NotReady(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Closed => StatusCode::GONE,
            Self::SoldOut
            | Self::NotOpen { .. }
            | Self::Paused
            | Self::LimitExceeded { .. }
            | Self::OrderQueued
            | Self::OrderWaiting
            | Self::OrderExpired
            | Self::OrderCancelled
            | Self::OrderPaid
            | Self::OrderNotPaid
            | Self::OrderRejected
            | Self::OrderRefunded
            | Self::AlreadyPromoted { .. }
            | Self::WrongStatus(_)
            | Self::FrozenAfterPublish(_)
            | Self::PaymentDeclined(_)
            | Self::PaymentUsed
            | Self::NotEnoughFree
            | Self::ReconciliationRunning
            | Self::ParkedSettled
            | Self::ParkedUnfit(_) => StatusCode::CONFLICT,
        }
    }

    /// What a program goes by.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::RouteNotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::MalformedRequest => "malformed_request",
            Self::UriTooLong => "uri_too_long",
            Self::HeadTooLarge => "head_too_large",
            Self::ValidationFailed(_) => "validation_failed",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Unavailable { .. } => "unavailable",
            Self::Internal { .. } => "internal",
            Self::NotReady(_) => "not_ready",
            Self::VoucherNotFound => "voucher_not_found",
            Self::SoldOut => "sold_out",
            Self::NotOpen { .. } => "not_open",
            Self::Paused => "paused",
            Self::Closed => "closed",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::OrderNotFound => "order_not_found",
            Self::OrderQueued => "order_queued",
            Self::OrderWaiting => "order_waiting",
            Self::OrderExpired => "order_expired",
            Self::OrderCancelled => "order_cancelled",
            Self::OrderPaid => "order_paid",
            Self::OrderNotPaid => "order_not_paid",
            Self::OrderRejected => "order_rejected",
            Self::OrderRefunded => "order_refunded",
            Self::NotWaiting => "not_waiting",
            Self::AlreadyPromoted { .. } => "already_promoted",
            Self::WrongStatus(_) => "wrong_status",
            Self::FrozenAfterPublish(_) => "frozen_after_publish",
            Self::NotEnoughFree => "not_enough_free",
            Self::PaymentDeclined(_) => "payment_declined",
            Self::PaymentUsed => "payment_used",
            Self::BadSignature(_) => "invalid_signature",
            Self::ReconciliationRunning => "reconciliation_running",
            Self::ParkedNotFound => "parked_message_not_found",
            Self::ParkedSettled => "parked_message_settled",
            Self::ParkedUnfit(_) => "parked_message_unfit",
        }
    }

    /// What a person reads; the same for every occurrence.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "A valid bearer token is needed",
            Self::Forbidden => "The token's role does not allow this",
            Self::RouteNotFound => "There is nothing at this path",
            Self::MethodNotAllowed => "The path does not know this method",
            Self::RequestTimeout => "The request took too long to arrive",
            Self::PayloadTooLarge { .. } => "The request body is too large",
            Self::UnsupportedMediaType => "The request body must be application/json",
            Self::MalformedRequest => "This is not a request as in HTTP/1.1",
            Self::UriTooLong => "The request's target is too long",
            Self::HeadTooLarge => "The request's head is too large",
            Self::ValidationFailed(_) => "The request does not fit",
            Self::RateLimited { .. } => "Too many calls",
            Self::Overloaded => "The service is busy",
            Self::Unavailable { .. } => "The service cannot answer right now",
            Self::Internal { .. } => "Something went wrong here",
            Self::NotReady(_) => "The service is not ready",
            Self::VoucherNotFound => "There is no such voucher",
            Self::SoldOut => "Sold out",
            Self::NotOpen { .. } => "The sale has not opened",
            Self::Paused => "The sale is paused",
            Self::Closed => "The sale is over",
            Self::LimitExceeded { .. } => "More than this buyer may still have",
            Self::IdempotencyKeyReused => "The idempotency key was used for another request",
            Self::OrderNotFound => "There is no such order",
            Self::OrderQueued => "The order is being written down",
            Self::OrderWaiting => "The order waits for units",
            Self::OrderExpired => "The order's payment window has ended",
            Self::OrderCancelled => "The order was cancelled",
            Self::OrderPaid => "The order is paid",
            Self::OrderNotPaid => "The order is not paid",
            Self::OrderRejected => "The order was rejected",
            Self::OrderRefunded => "The order was refunded",
            Self::NotWaiting => "The buyer has no place on the waitlist",
            Self::AlreadyPromoted { .. } => "The waiting order has been given its units",
            Self::WrongStatus(_) => "Not possible in the voucher's status",
            Self::FrozenAfterPublish(_) => "Settings that are frozen after publishing",
            Self::NotEnoughFree => "Fewer units are free",
            Self::PaymentDeclined(_) => "The provider does not vouch for the payment",
            Self::PaymentUsed => "The payment belongs to another order, or is on its way back",
            Self::BadSignature(_) => "The notification is not signed as it should be",
            Self::ReconciliationRunning => "Another reconciliation is running",
            Self::ParkedNotFound => "There is no such parked message",
            Self::ParkedSettled => "The message was settled the other way",
            Self::ParkedUnfit(_) => "The message still cannot be applied",
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn retryable(&self) -> bool {
        match self {
            Self::Unavailable { retryable, .. } => *retryable,
            Self::RequestTimeout
            | Self::RateLimited { .. }
            | Self::Overloaded
            | Self::NotReady(_)
            | Self::NotOpen { .. }
            | Self::Paused
            | Self::OrderQueued
            | Self::OrderWaiting
            | Self::ReconciliationRunning => true,
            Self::Unauthenticated(_)
            | Self::Forbidden
            | Self::RouteNotFound
            | Self::MethodNotAllowed
            | Self::PayloadTooLarge { .. }
            | Self::UnsupportedMediaType
            | Self::MalformedRequest
            | Self::UriTooLong
            | Self::HeadTooLarge
            | Self::ValidationFailed(_)
            | Self::Internal { .. }
            | Self::VoucherNotFound
            | Self::SoldOut
            | Self::Closed
            | Self::LimitExceeded { .. }
            | Self::IdempotencyKeyReused
            | Self::OrderNotFound
            | Self::OrderExpired
            | Self::OrderCancelled
            | Self::OrderPaid
            | Self::OrderNotPaid
            | Self::OrderRejected
            | Self::OrderRefunded
            | Self::NotWaiting
            | Self::AlreadyPromoted { .. }
            | Self::WrongStatus(_)
            | Self::FrozenAfterPublish(_)
            | Self::NotEnoughFree
            | Self::PaymentDeclined(_)
            | Self::PaymentUsed
            | Self::BadSignature(_)
            | Self::ParkedNotFound
            | Self::ParkedSettled
            | Self::ParkedUnfit(_) => false,
        }
    }

    /// What the request may have changed: nothing, unless its outcome was lost.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Unavailable { effect, .. } | Self::Internal { effect } => *effect,
            _ => Effect::None,
        }
    }

    /// After how many seconds to try again, where that is known.
    pub(crate) fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::NotOpen { retry_after_s, .. } | Self::RateLimited { retry_after_s } => {
                Some(*retry_after_s)
            }
            Self::Unavailable { retryable, .. } => retryable.then_some(1),
            Self::Overloaded | Self::NotReady(_) | Self::OrderQueued => Some(1),
            Self::OrderWaiting | Self::ReconciliationRunning => Some(2),
            _ => None,
        }
    }

    /// What is particular to this occurrence.
    pub(crate) fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Unauthenticated(why) | Self::BadSignature(why) | Self::ParkedUnfit(why) => {
                (*why).to_owned()
            }
            Self::PaymentDeclined(why) => why.clone(),
            Self::PayloadTooLarge { bytes_max } => format!("at most {bytes_max} bytes"),
            Self::ValidationFailed(errors) => match errors.as_slice() {
                [only] if only.field.is_empty() => only.message.clone(),
                [only] => format!("{}: {}", only.field, only.message),
                many => format!("{} fields do not fit", many.len()),
            },
            Self::LimitExceeded { remaining } => match remaining {
                0 => "no further unit is possible".to_owned(),
                1 => "1 further unit is possible".to_owned(),
                more => format!("{more} further units are possible"),
            },
            Self::Unavailable {
                effect: Effect::Unknown,
                ..
            } => "it may have been done; repeat the same request to find out".to_owned(),
            Self::FrozenAfterPublish(fields) => fields.join(", "),
            _ => return None,
        })
    }
}

//! The problem on the wire.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use seckill_application::Effect;
use serde::Serialize;
use utoipa::ToSchema;

use super::{FieldError, Problem};
use crate::health::Readiness;
use crate::wire::{Id, Instant, SaleStatusWord};

/// The media type of every problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error, as in RFC 9457. `code` tells the kinds apart and never changes its meaning.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// A page about this kind of problem.
    #[schema(value_type = String, example = "/problems#sold_out", format = "uri-reference")]
    r#type: TypeUri,
    /// The kind, for people.
    #[schema(example = "Sold out")]
    title: &'static str,
    /// The status code.
    #[schema(example = 409)]
    status: u16,
    /// What is particular to this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<String>,
    /// The path that was asked.
    #[schema(example = "/v1/vouchers/1/purchases", format = "uri-reference")]
    instance: &'a str,
    /// The kind, for programs.
    #[schema(example = "sold_out")]
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// What the request may have changed: `unknown` means that its outcome was lost; repeat it to
    /// find out.
    effect: EffectWord,
    /// The request's id, as in the `x-request-id` header and in the logs.
    #[schema(example = "f3a1c8d2-1b")]
    request_id: &'a str,
    /// With `validation_failed` and `frozen_after_publish`: the fields that do not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<ErrorBody<'a>>,
    /// With `not_open`: when the sale opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    opens_at: Option<Instant>,
    /// With `limit_exceeded`: how many units the buyer may still have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining: Option<u32>,
    /// With `already_promoted`: the order that has its units.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_id: Option<Id>,
    /// With `wrong_status`: the voucher's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    voucher_status: Option<SaleStatusWord>,
    /// With `not_ready`: what is and what is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    readiness: Option<&'a Readiness>,
}

#[derive(Debug)]
struct TypeUri(&'static str);

impl Serialize for TypeUri {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("/problems#{}", self.0))
    }
}

/// What a request may have changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Effect)]
#[serde(rename_all = "snake_case")]
enum EffectWord {
    None,
    Unknown,
}

/// A field that does not fit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FieldError)]
struct ErrorBody<'a> {
    /// Its name; empty for the body as a whole.
    #[schema(example = "quantity")]
    field: &'a str,
    /// `invalid`, `required`, `unknown` or `frozen`.
    #[schema(example = "invalid")]
    code: &'static str,
    /// What is allowed.
    #[schema(example = "1 to 1000000")]
    message: &'a str,
}

impl Problem {
    /// The body that says it.
    pub(crate) fn body<'a>(&'a self, instance: &'a str, request_id: &'a str) -> ProblemBody<'a> {
        ProblemBody {
            r#type: TypeUri(self.code()),
            title: self.title(),
            status: self.status().as_u16(),
            detail: self.detail(),
            instance,
            code: self.code(),
            retryable: self.retryable(),
            effect: match self.effect() {
                Effect::None => EffectWord::None,
                Effect::Unknown => EffectWord::Unknown,
            },
            request_id,
            errors: self.errors(),
            opens_at: match self {
                Self::NotOpen { opens_at, .. } => Some(Instant(*opens_at)),
                _ => None,
            },
            remaining: match self {
                Self::LimitExceeded { remaining } => Some(*remaining),
                _ => None,
            },
            order_id: match self {
                Self::AlreadyPromoted { order } => Some(Id::from(*order)),
                _ => None,
            },
            voucher_status: match self {
                Self::WrongStatus(status) => Some(SaleStatusWord::from(*status)),
                _ => None,
            },
            readiness: match self {
                Self::NotReady(readiness) => Some(readiness),
                _ => None,
            },
        }
    }

    fn errors(&self) -> Vec<ErrorBody<'_>> {
        match self {
            Self::ValidationFailed(errors) => errors.iter().map(ErrorBody::of).collect(),
            Self::FrozenAfterPublish(fields) => fields
                .iter()
                .map(|field| ErrorBody {
                    field,
                    code: "frozen",
                    message: "cannot change after publishing",
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Writes body and headers of a response that carries this problem; `Allow` and the like stay.
    pub(crate) fn write(&self, into: &mut Response<Body>, instance: &str, request_id: &str) {
        let body = serde_json::to_vec(&self.body(instance, request_id)).unwrap_or_default();
        *into.status_mut() = self.status();
        let headers = into.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if matches!(self, Self::Unauthenticated(_)) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(self, Self::BadSignature(_)) {
            let scheme = HeaderValue::from_static("Payment-Signature");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        *into.body_mut() = Body::from(body);
    }
}

impl<'a> ErrorBody<'a> {
    fn of(error: &'a FieldError) -> Self {
        Self {
            field: &error.field,
            code: error.code,
            message: &error.message,
        }
    }
}

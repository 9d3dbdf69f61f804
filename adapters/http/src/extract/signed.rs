//! Bodies that the payment provider signed.

use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use seckill_application::Effect;
use serde::de::DeserializeOwned;
use utoipa::{IntoParams, PartialSchema};
use validator::Validate;

use super::body;
use crate::context::Ctx;
use crate::problem::Problem;

/// A body whose signature was verified before it was read.
pub(crate) struct Signed<T>(pub(crate) T);

/// How the headers are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes Signed, which is read without it")]
pub(crate) struct SignatureHeaders {
    /// When it was sent, in whole seconds since 1970. May be five minutes off, unless
    /// the service is set otherwise.
    #[param(
        rename = "Payment-Timestamp",
        example = "1893456000",
        pattern = "^[0-9]{1,12}$"
    )]
    payment_timestamp: String,
    /// HMAC-SHA256 with the shared secret over the timestamp as it was sent, a full stop, and the
    /// body byte by byte; in hexadecimal digits.
    #[param(
        rename = "Payment-Signature",
        example = "87f28fd24027b3e75bd16672fdb613b52ebdf533fd7fc05f40636babd9133add",
        pattern = "^[0-9A-Fa-f]{64}$"
    )]
    payment_signature: String,
}

const TIMESTAMP: &str = "payment-timestamp";
const SIGNATURE: &str = "payment-signature";

impl<T: DeserializeOwned + Validate + PartialSchema> FromRequest<Ctx> for Signed<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, ctx: &Ctx) -> Result<Self, Problem> {
        let Some(key) = &ctx.notices else {
            // Whoever runs this has to set one; until then the provider goes on trying.
            return Err(Problem::Unavailable {
                effect: Effect::None,
                retryable: true,
                cause: Some("no secret for the payment provider is set".to_owned()),
            });
        };
        let (parts, body) = request.into_parts();
        let timestamp = only(&parts.headers, TIMESTAMP)
            .ok_or(Problem::BadSignature("send one header Payment-Timestamp"))?;
        let signature = only(&parts.headers, SIGNATURE)
            .ok_or(Problem::BadSignature("send one header Payment-Signature"))?;
        let bytes = body::read(
            &parts.headers,
            body,
            &ctx.settings,
            ctx.settings.body_bytes_max,
        )
        .await?;
        let now = ctx.api.clock.now();
        let tolerance = ctx.settings.notice_tolerance;
        key.verify(timestamp, signature, &bytes, now, tolerance)
            .map_err(Problem::BadSignature)?;
        body::parse(&parts.headers, &bytes)
            .inspect_err(|problem| {
                // Money moved, and nobody here can tell for what.
                tracing::error!(?problem, "a signed payment notification does not fit");
            })
            .map(Self)
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

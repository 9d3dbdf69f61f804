//! JSON bodies.
//!
//! Everything that is wrong with a body is 422 `validation_failed`, from a missing brace to a
//! number out of range, so that a client has one case to handle. The exceptions are 413 (too
//! large), 415 (says that it is something else) and 408 (does not arrive).

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use utoipa::PartialSchema;
use validator::{Validate, ValidationErrors};

use super::{range, wording};
use crate::context::Ctx;
use crate::problem::{FieldError, Problem};
use crate::settings::HttpSettings;

/// A body that has to be there.
pub(crate) struct Json<T>(pub(crate) T);

/// A body that has to be there, and may have long texts.
pub(crate) struct LongJson<T>(pub(crate) T);

/// A body that may be left out.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Validate + PartialSchema> FromRequest<Ctx> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, ctx: &Ctx) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(
            &parts.headers,
            body,
            &ctx.settings,
            ctx.settings.body_bytes_max,
        )
        .await?;
        parse(&parts.headers, &bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Validate + PartialSchema> FromRequest<Ctx> for LongJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, ctx: &Ctx) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes_max = ctx
            .settings
            .body_bytes_max
            .max(ctx.settings.long_body_bytes_max);
        let bytes = read(&parts.headers, body, &ctx.settings, bytes_max).await?;
        parse(&parts.headers, &bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Validate + PartialSchema + Default> FromRequest<Ctx>
    for OptionalJson<T>
{
    type Rejection = Problem;

    async fn from_request(request: Request, ctx: &Ctx) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(
            &parts.headers,
            body,
            &ctx.settings,
            ctx.settings.body_bytes_max,
        )
        .await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        parse(&parts.headers, &bytes).map(Self)
    }
}

pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    settings: &HttpSettings,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bytes_max as u64) {
        return Err(Problem::PayloadTooLarge { bytes_max });
    }
    let whole = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(settings.body_timeout, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(failed)) if failed.is::<LengthLimitError>() => {
            Err(Problem::PayloadTooLarge { bytes_max })
        }
        Ok(Err(_broken)) => Err(whole_body("the body broke off")),
        Err(_elapsed) => Err(Problem::RequestTimeout),
    }
}

pub(super) fn parse<T: DeserializeOwned + Validate + PartialSchema>(
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<T, Problem> {
    if !says_json(headers) {
        return Err(Problem::UnsupportedMediaType);
    }
    // serde would read a list as the fields in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(whole_body("a JSON object is needed"));
    }
    let value: T = serde_json::from_slice(bytes).map_err(|_| explain::<T>(bytes))?;
    value.validate().map_err(|errors| refused(&errors))?;
    Ok(value)
}

/// A body that does not say what it is counts as JSON.
fn says_json(headers: &HeaderMap) -> bool {
    let Some(said) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let essence = said.to_str().unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Parses once more, slower, to find out what does not fit.
fn explain<T: DeserializeOwned + PartialSchema>(bytes: &[u8]) -> Problem {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let Err(failed) = serde_path_to_error::deserialize::<_, T>(&mut json) else {
        return whole_body("nothing may follow the JSON object");
    };
    let mut path = failed.path().to_string();
    let inner = failed.into_inner();
    if !inner.is_data() {
        return whole_body(inner.to_string());
    }
    let misfit = wording::misfit(&inner.to_string());
    if let Some(name) = misfit.field {
        path = name;
    }
    let message = match misfit.is_number.then(|| range::of(&T::schema(), &path)) {
        Some(Some(allowed)) => allowed,
        _ => misfit.message,
    };
    Problem::ValidationFailed(vec![FieldError {
        field: if path == "." { String::new() } else { path },
        code: misfit.code,
        message,
    }])
}

fn whole_body(message: impl Into<String>) -> Problem {
    Problem::field("", message)
}

fn refused(errors: &ValidationErrors) -> Problem {
    let mut fields: Vec<FieldError> = errors
        .field_errors()
        .into_iter()
        .flat_map(|(field, errors)| {
            errors.iter().map(move |error| {
                let message = error.message.as_deref().unwrap_or("does not fit");
                FieldError::invalid(&field, message)
            })
        })
        .collect();
    fields.sort_by(|a, b| a.field.cmp(&b.field));
    Problem::ValidationFailed(fields)
}

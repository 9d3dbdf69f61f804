//! The `Idempotency-Key` header.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use seckill_domain::IdempotencyKey;
use utoipa::IntoParams;

use crate::context::Ctx;
use crate::problem::Problem;

/// The client's key for a request, if he sent one.
pub(crate) struct Key(pub(crate) Option<IdempotencyKey>);

/// How the header is described.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes Key, which is read without it")]
pub(crate) struct KeyHeader {
    /// Makes the request repeatable: the same key and the same request get the same outcome. 1 to
    /// 64 visible ASCII characters, bare or in double quotes.
    #[param(
        rename = "Idempotency-Key",
        example = "7f3c9a52",
        min_length = 1,
        max_length = 66,
        pattern = r"^[\x21-\x7E]+$",
        required = false,
        nullable = false
    )]
    idempotency_key: Option<String>,
}

const NAME: &str = "idempotency-key";
const ALLOWED: &str = "1 to 64 visible ASCII characters, bare or in double quotes";

impl FromRequestParts<Ctx> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _ctx: &Ctx) -> Result<Self, Problem> {
        match read(&parts.headers) {
            Ok(key) => Ok(Self(key)),
            Err(Misfit) => Err(Problem::field("Idempotency-Key", ALLOWED)),
        }
    }
}

/// A key that does not fit.
#[derive(Debug, PartialEq, Eq)]
struct Misfit;

fn read(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Misfit> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Misfit);
    }
    let text = value.to_str().map_err(|_| Misfit)?;
    let key = match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted).ok_or(Misfit)?.parse(),
        None => text.parse(),
    };
    key.map(Some).map_err(|_| Misfit)
}

/// The text of a structured field string (RFC 9651) after its opening quote.
fn unquote(quoted: &str) -> Option<String> {
    let inner = quoted.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return None,
            '\\' => text.push(letters.next().filter(|next| matches!(next, '"' | '\\'))?),
            plain => text.push(plain),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn key(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_str(value).unwrap());
        read(&headers).ok().map(|key| key.unwrap().to_string())
    }

    #[test]
    fn quoted_and_bare_are_the_same_key() {
        assert_eq!(key("k-1").as_deref(), Some("k-1"));
        assert_eq!(key("\"k-1\"").as_deref(), Some("k-1"));
        assert_eq!(key(r#""a\"b\\c""#).as_deref(), Some(r#"a"b\c"#));
        assert_eq!(key(&"k".repeat(64)).map(|key| key.len()), Some(64));
        assert_eq!(
            key(&format!("\"{}\"", "k".repeat(64))).map(|key| key.len()),
            Some(64)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for bad in [
            "",
            "\"\"",
            "a b",
            "\"a b\"",
            "\"a",
            "\"a\"b\"",
            r#""a\""#,
            r#""a\nb""#,
            "\"",
            "schlüssel",
        ] {
            assert_eq!(key(bad), None, "{bad:?}");
        }
        assert_eq!(key(&"k".repeat(65)), None);
    }

    #[test]
    fn two_keys_are_refused_and_none_is_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(read(&headers), Ok(None));
        headers.append(NAME, HeaderValue::from_static("a"));
        headers.append(NAME, HeaderValue::from_static("a"));
        assert_eq!(read(&headers), Err(Misfit));
    }
}

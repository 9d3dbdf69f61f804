//! What came back.

use axum::http::response::Parts;
use axum::http::{HeaderMap, Method};
use serde_json::Value;

use super::document;

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Null if it is not JSON.
    pub(crate) body: Value,
    pub(crate) raw: String,
}

impl Answer {
    pub(super) fn new(parts: Parts, bytes: &[u8]) -> Self {
        let kind = parts.headers.get("content-type");
        let is_json = kind.is_some_and(|kind| kind.to_str().unwrap().contains("json"));
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: if is_json && !bytes.is_empty() {
                serde_json::from_slice(bytes).unwrap()
            } else {
                Value::Null
            },
            raw: String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// Everything an answer has, and what the document says about it.
    pub(super) fn check(&self, method: &Method, path: &str) {
        assert!(self.headers.contains_key("x-request-id"), "{self:?}");
        assert!(self.headers.contains_key("cache-control"), "{self:?}");
        if self.status >= 400 && method != Method::HEAD {
            self.check_problem(path);
        }
        document::check(method, path, self);
    }

    fn check_problem(&self, path: &str) {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = &self.body;
        assert_eq!(body["status"], self.status, "{self:?}");
        assert_eq!(body["instance"], path, "{self:?}");
        assert_eq!(body["request_id"], self.header("x-request-id"), "{self:?}");
        assert_eq!(body["type"], format!("/problems#{}", self.code()));
        assert!(body["title"].is_string(), "{self:?}");
        assert!(body["retryable"].is_boolean(), "{self:?}");
        assert!(["none", "unknown"].contains(&body["effect"].as_str().unwrap()));
        if self.status == 401 {
            let scheme = match self.code() {
                "invalid_signature" => "Payment-Signature",
                _ => "Bearer",
            };
            assert_eq!(self.header("www-authenticate"), scheme);
        }
        if [429, 503].contains(&self.status) {
            assert!(self.header("retry-after").parse::<u64>().unwrap() >= 1);
        }
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code()), (status, code), "{self:?}");
    }

    /// Refused with 422 because of these fields, in this order.
    #[track_caller]
    pub(crate) fn misfits(&self, fields: &[&str]) {
        self.refused(422, "validation_failed");
        let errors = self.body["errors"].as_array().unwrap();
        let named: Vec<&str> = errors
            .iter()
            .map(|error| error["field"].as_str().unwrap())
            .collect();
        assert_eq!(named, fields, "{self:?}");
    }

    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn text(&self, field: &str) -> String {
        self.body[field]
            .as_str()
            .unwrap_or_else(|| panic!("no {field} in {self:?}"))
            .to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

//! A name for each request, for its answer, its problem and the logs.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Names requests that come without a name of their own.
pub(crate) struct RequestIds {
    /// Different in every process.
    process: u32,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        let [a, b, c, d, ..] = RandomState::new().hash_one(0_u8).to_le_bytes();
        Self {
            process: u32::from_le_bytes([a, b, c, d]),
            count: AtomicU64::new(0),
        }
    }

    /// The client's id if it is fit for a log (1 to 64 visible ASCII characters), else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(&REQUEST_ID) {
            Some(sent) if is_fit(sent.as_bytes()) => sent.clone(),
            _ => self.next(),
        }
    }

    /// A new one.
    pub(crate) fn next(&self) -> HeaderValue {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let text = format!("{:08x}-{count:x}", self.process);
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
    }
}

fn is_fit(sent: &[u8]) -> bool {
    (1..=64).contains(&sent.len()) && sent.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_visible_id_is_taken_over() {
        let ids = RequestIds::new();
        let of = |sent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(sent).unwrap());
            ids.of(&headers)
        };
        assert_eq!(of("abc-1"), "abc-1");
        for bad in ["", "a b", &"x".repeat(65)] {
            assert_ne!(of(bad), bad);
        }
        assert_ne!(ids.of(&HeaderMap::new()), ids.of(&HeaderMap::new()));
    }
}

//! What others write, read: entry points for fuzzing. Each takes any bytes, and panics if something
//! does not hold of what was read. Not part of the API.

use jsonwebtoken::{EncodingKey, Header};
use seckill_domain::Timestamp;
use serde_json::Value;

use crate::auth::{Role, TokenVerifier};
use crate::wire::PageQuery;

const SECRET: &[u8] = b"a secret of fuzz tests, known to all who read";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// A bearer token: as it is, which nobody can have signed; and, if it is JSON, as claims that were.
///
/// # Panics
/// If what was not signed holds, or what was says something else than it is taken for.
pub fn token(bytes: &[u8]) {
    let (Ok(verifier), Ok(key)) = (
        TokenVerifier::hs256(SECRET),
        EncodingKey::from_secret(SECRET),
    ) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    assert!(verifier.verify(text, NOW).is_err(), "nobody signed it");
    let Ok(claims) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let Ok(signed) = jsonwebtoken::encode(&Header::default(), &claims, &key) else {
        return;
    };
    let first = verifier.verify(&signed, NOW);
    assert_eq!(verifier.verify(&signed, NOW), first, "from the cache");
    let Ok(caller) = first else {
        return;
    };
    assert_eq!(claims["sub"], Value::from(caller.id.to_string()));
    assert!(claims["exp"].as_f64().is_some_and(|s| s > 1_799_999_994.0));
    let role = claims.get("role").and_then(Value::as_str);
    assert_eq!(caller.role == Role::Admin, role == Some("admin"));
}

/// The query of a list, with its cursor.
///
/// # Panics
/// If a limit is out of range, or a cursor is read as another one than was written.
pub fn page(bytes: &[u8]) {
    let Ok(query) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(page) = PageQuery::parse(query) else {
        return;
    };
    assert!((1..=100).contains(&page.limit));
    if let Some(cursor) = page.cursor {
        let written = serde_json::to_value(cursor).unwrap_or_default();
        let written = written.as_str().unwrap_or_default();
        assert!(
            query
                .split('&')
                .any(|it| it.strip_prefix("cursor=") == Some(written))
        );
    }
}

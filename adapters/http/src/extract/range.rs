//! Which numbers a field may have: what the document says of it, and not what its type could hold.

use utoipa::Number;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Object, RefOr};

/// The range of a body's field in words; `None` if the document gives none.
pub(super) fn of(body: &RefOr<Schema>, field: &str) -> Option<String> {
    let RefOr::T(Schema::Object(body)) = body else {
        return None;
    };
    let RefOr::T(Schema::Object(Object {
        minimum, maximum, ..
    })) = body.properties.get(field)?
    else {
        return None;
    };
    let (min, max) = (minimum.as_ref()?, maximum.as_ref()?);
    Some(format!(
        "a whole number from {} to {}",
        Shown(min),
        Shown(max)
    ))
}

struct Shown<'a>(&'a Number);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Number::Int(number) => number.fmt(f),
            Number::UInt(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

//! Points in time as RFC 3339.

use std::borrow::Cow;
use std::fmt;

use seckill_domain::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// A point in time. Read with any offset; written in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant(pub(crate) Timestamp);

/// What the ledger can store.
const MILLIS_MIN: i64 = 0;
const MILLIS_MAX: i64 = 253_370_764_800_000; // the start of the year 9999
const ALLOWED: &str = "a time as in RFC 3339, such as 2030-01-01T08:00:00+08:00, from 1970 to 9998";

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis().clamp(MILLIS_MIN, MILLIS_MAX);
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
            .map_err(|_| fmt::Error)?;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Instant;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ALLOWED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Instant, E> {
                parse(text).ok_or_else(|| E::custom(ALLOWED))
            }
        }

        from.deserialize_str(Text)
    }
}

fn parse(text: &str) -> Option<Instant> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let millis = i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?;
    (MILLIS_MIN..MILLIS_MAX)
        .contains(&millis)
        .then(|| Instant(Timestamp::from_millis(millis)))
}

impl PartialSchema for Instant {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some(
                "A point in time as in RFC 3339: any offset is read, UTC with milliseconds is written.",
            ))
            .examples(["2030-01-01T00:00:00.000Z"])
            .into()
    }
}

impl ToSchema for Instant {
    fn name() -> Cow<'static, str> {
        "Instant".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        parse(text).map(|at| at.to_string())
    }

    #[test]
    fn any_offset_is_read_and_utc_is_written() {
        for (text, utc) in [
            ("2030-01-01T08:00:00+08:00", "2030-01-01T00:00:00.000Z"),
            ("2029-12-31T19:30:00.1239-04:30", "2030-01-01T00:00:00.123Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("9998-12-31T23:59:59.999Z", "9998-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(utc), "{text}");
        }
    }

    #[test]
    fn what_is_no_such_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "2030-01-01",
            "2030-01-01T00:00:00",
            "2030-02-30T00:00:00Z",
            "2030-01-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "9999-01-01T00:00:00Z",
            "9999-12-31T23:59:59-23:59",
            "1893456000",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

//! Whole numbers as JSON has them: `1.0` is one, as it is for whoever writes numbers without a type
//! for whole ones, and as JSON Schema says.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A type that holds whole numbers.
pub(crate) trait Whole: TryFrom<i128> {
    /// Its name, as the parser says it.
    const NAME: &'static str;
}

impl Whole for u32 {
    const NAME: &'static str = "u32";
}

impl Whole for u64 {
    const NAME: &'static str = "u64";
}

impl Whole for i32 {
    const NAME: &'static str = "i32";
}

/// A field that has to be there.
pub(crate) fn whole<'de, T: Whole, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Number(PhantomData))
}

/// A field that may be left out, and has a value if it is there.
pub(crate) fn whole_if_given<'de, T: Whole, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    whole(from).map(Some)
}

struct Number<T>(PhantomData<T>);

impl<T: Whole> Number<T> {
    fn fit<E: Error>(number: i128, seen: Unexpected<'_>) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(seen, &T::NAME))
    }
}

/// Beyond these a float is not a number of its own.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl<T: Whole> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NAME)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        Self::fit(number.into(), Unexpected::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Self::fit(number.into(), Unexpected::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        let seen = Unexpected::Float(number);
        if number.fract() != 0.0 || number.abs() > EXACT_MAX {
            return Err(E::invalid_value(seen, &T::NAME));
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole, and far from what does not fit"
        )]
        Self::fit(number as i128, seen)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Body {
        #[serde(deserialize_with = "whole")]
        units: u32,
    }

    fn units(number: &str) -> Option<u32> {
        let body = format!(r#"{{"units":{number}}}"#);
        let read = serde_json::from_str::<Body>(&body);
        read.ok().map(|body| body.units)
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
        for (text, number) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("7e2", Some(700)),
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("4294967295.0", Some(u32::MAX)),
            ("4294967296", None),
            ("4294967296.0", None),
            ("1e300", None),
            ("7.5", None),
            ("-1", None),
            ("-1.0", None),
            ("\"7\"", None),
            ("null", None),
            ("true", None),
        ] {
            assert_eq!(units(text), number, "{text}");
        }
    }
}

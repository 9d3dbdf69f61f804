//! What is wrong with a field, in words of the API: the parser speaks of its own language's types.

/// A field that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Its name, where the parser says it.
    pub(super) field: Option<String>,
    pub(super) code: &'static str,
    /// What is allowed.
    pub(super) message: String,
    /// A whole number is wanted; `message` says which its type can hold.
    pub(super) is_number: bool,
}

/// Reads what the parser said.
pub(super) fn misfit(said: &str) -> Misfit {
    // The position within the body is no help to whoever sent a field that does not fit.
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    let named = |start: &str| {
        let rest = said.strip_prefix(start)?;
        rest.split_once('`')
    };
    if let Some((name, rest)) = named("unknown field `") {
        return Misfit {
            field: Some(name.to_owned()),
            code: "unknown",
            message: unknown(rest),
            is_number: false,
        };
    }
    if let Some((name, _)) = named("missing field `") {
        return Misfit {
            field: Some(name.to_owned()),
            code: "required",
            message: "is required".to_owned(),
            is_number: false,
        };
    }
    if let Some((name, _)) = named("duplicate field `") {
        return Misfit {
            field: Some(name.to_owned()),
            code: "invalid",
            message: "is given twice".to_owned(),
            is_number: false,
        };
    }
    let wanted = said.rsplit_once(", expected ").map(|(_, wanted)| wanted);
    Misfit {
        field: None,
        code: "invalid",
        message: wanted.map_or_else(|| said.to_owned(), kind),
        is_number: wanted.is_some_and(|wanted| whole(wanted).is_some()),
    }
}

/// The names stand between backticks in the rest of what was said, if there are any.
fn unknown(rest: &str) -> String {
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    if known.is_empty() {
        "is no field here".to_owned()
    } else {
        format!("is no field here; there are {}", known.join(", "))
    }
}

/// What a type of whole numbers can hold.
fn whole(wanted: &str) -> Option<(i128, i128)> {
    Some(match wanted {
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

fn kind(wanted: &str) -> String {
    if let Some((min, max)) = whole(wanted) {
        return format!("a whole number from {min} to {max}");
    }
    match wanted {
        "a string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        of_type if of_type.starts_with("struct ") => "a JSON object".to_owned(),
        words => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what does not fit is looked at")]
    struct Body {
        units: u32,
        #[serde(default)]
        delta: i32,
        #[serde(default)]
        title: String,
        #[serde(default)]
        full: bool,
    }

    fn said(body: &str) -> (Option<String>, &'static str, String) {
        let failed = serde_json::from_str::<Body>(body).unwrap_err();
        let misfit = misfit(&failed.to_string());
        (misfit.field, misfit.code, misfit.message)
    }

    #[test]
    fn nothing_is_said_in_the_words_of_the_parser() {
        let u32 = "a whole number from 0 to 4294967295";
        let i32 = "a whole number from -2147483648 to 2147483647";
        for (body, message) in [
            (r#"{"units":"x, expected u32"}"#, u32),
            (r#"{"units":-1}"#, u32),
            (r#"{"units":1.5}"#, u32),
            (r#"{"units":4294967296}"#, u32),
            (r#"{"units":null}"#, u32),
            (r#"{"units":1,"delta":3000000000}"#, i32),
            (r#"{"units":1,"title":7}"#, "text"),
            (r#"{"units":1,"full":"yes"}"#, "true or false"),
        ] {
            assert_eq!(said(body), (None, "invalid", message.to_owned()), "{body}");
        }
    }

    #[test]
    fn a_field_that_is_wrong_as_such_is_named() {
        let of = |body| {
            let (field, code, message) = said(body);
            (field.unwrap(), code, message)
        };
        let (field, code, message) = of(r#"{"unit":1}"#);
        assert_eq!((&*field, code), ("unit", "unknown"));
        assert_eq!(
            message,
            "is no field here; there are units, delta, title, full"
        );
        assert_eq!(
            of("{}"),
            ("units".to_owned(), "required", "is required".to_owned())
        );
        let twice = of(r#"{"units":1,"units":2}"#);
        assert_eq!(
            twice,
            ("units".to_owned(), "invalid", "is given twice".to_owned())
        );
    }
}

//! Parts of a list.

use seckill_domain::{OrderId, VoucherId};
use serde::{Serialize, Serializer};
use utoipa::IntoParams;

use crate::problem::{FieldError, Problem};

/// Where the next part of a list starts; opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) u64);

/// Says which form of cursor it is, so that another form can follow one day.
const FORM: char = 'a';

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{FORM}{:016x}", self.0))
    }
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(FORM)?;
        let canonical = digits.len() == 16
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !canonical {
            return None;
        }
        u64::from_str_radix(digits, 16).ok().map(Self)
    }

    /// The last voucher of the part before.
    pub(crate) fn voucher(self) -> VoucherId {
        VoucherId::new(self.0)
    }

    /// The last order of the part before.
    pub(crate) fn order(self) -> OrderId {
        OrderId::new(self.0)
    }
}

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Most items of the answer.
    #[param(minimum = 1, maximum = 100, default = 20, required = false)]
    pub(crate) limit: usize,
    /// `next_cursor` of the part before.
    #[param(value_type = String, required = false, nullable = false, pattern = "^a[0-9a-f]{16}$")]
    pub(crate) cursor: Option<Cursor>,
}

const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 100;

impl PageQuery {
    /// Reads the query; parameters that are not known are ignored.
    pub(crate) fn parse(query: &str) -> Result<Self, Problem> {
        let mut page = Self {
            limit: LIMIT_DEFAULT,
            cursor: None,
        };
        let mut errors = Vec::new();
        let mut given = Vec::new();
        for pair in query.split('&') {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            if ["limit", "cursor"].contains(&name) {
                // Whichever of the two were taken, a proxy on the way may have taken the other.
                if given.contains(&name) {
                    errors.push(FieldError::invalid(name, "is given twice"));
                    continue;
                }
                given.push(name);
            }
            match (name, text) {
                ("limit", text) => match parse_limit(text) {
                    Some(limit) => page.limit = limit,
                    None => errors.push(FieldError::invalid("limit", "1 to 100")),
                },
                ("cursor", text) => match Cursor::parse(text) {
                    Some(cursor) => page.cursor = Some(cursor),
                    None => {
                        errors.push(FieldError::invalid("cursor", "a next_cursor of this list"));
                    }
                },
                _ => {}
            }
        }
        if errors.is_empty() {
            Ok(page)
        } else {
            Err(Problem::ValidationFailed(errors))
        }
    }
}

fn parse_limit(text: &str) -> Option<usize> {
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse()
        .ok()
        .filter(|limit| canonical && (1..=LIMIT_MAX).contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(limit: usize, cursor: Option<u64>) -> PageQuery {
        PageQuery {
            limit,
            cursor: cursor.map(Cursor),
        }
    }

    #[test]
    fn a_cursor_reads_as_it_was_written() {
        let written = serde_json::to_string(&Cursor(u64::MAX)).unwrap();
        assert_eq!(
            Cursor::parse(written.trim_matches('"')),
            Some(Cursor(u64::MAX))
        );
        for bad in [
            "",
            "a",
            "b0000000000000001",
            "a000000000000000G",
            "a00",
            "a+000000000000001",
        ] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_query_says_which_part() {
        assert_eq!(PageQuery::parse(""), Ok(page(20, None)));
        assert_eq!(PageQuery::parse("x=1&limit=7"), Ok(page(7, None)));
        assert_eq!(
            PageQuery::parse("cursor=a000000000000002a"),
            Ok(page(20, Some(42)))
        );
        for bad in [
            "limit=0",
            "limit=101",
            "limit=",
            "limit=+1",
            "limit=x",
            "cursor=",
            "cursor=7",
            "limit=1&limit=2",
            "limit=1&x=2&limit=1",
            "cursor=a000000000000002a&cursor=a000000000000002b",
        ] {
            assert!(PageQuery::parse(bad).is_err(), "{bad}");
        }
    }
}

//! Short texts chosen by clients.

use std::fmt;
use std::str::FromStr;

/// A text that does not fit; holds what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {0}")]
pub struct BadText(pub &'static str);

/// Whether a line shows what it says: no control characters, no breaks, and nothing that overrides
/// the direction of the text around it. Marks of direction, which only concern their neighbours, are
/// part of languages.
pub fn is_plain_line(text: &str) -> bool {
    !text.chars().any(is_treacherous)
}

/// [`is_plain_line`] for several lines: line feeds, carriage returns and tabs are allowed.
pub fn is_plain_text(text: &str) -> bool {
    !text
        .chars()
        .any(|letter| !matches!(letter, '\n' | '\r' | '\t') && is_treacherous(letter))
}

fn is_treacherous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

macro_rules! visible_ascii {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadText;

            fn from_str(text: &str) -> Result<Self, BadText> {
                let fits = (1..=64).contains(&text.len())
                    && text.bytes().all(|b| b.is_ascii_graphic());
                if fits { Ok(Self(text.into())) } else {
                    Err(BadText("1 to 64 visible ASCII characters without spaces"))
                }
            }
        }
    };
}

visible_ascii!(
    /// The `Idempotency-Key` of a purchase, scoped to buyer and voucher.
    IdempotencyKey
);
visible_ascii!(
    /// The payment provider's id of a payment; the key that makes paying repeatable.
    PaymentId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_shows_what_it_says() {
        for plain in [
            "",
            "Dinner for two",
            "双人晚餐 🍜",
            "עשר ₪\u{200F}",
            "a\u{200D}b",
        ] {
            assert!(is_plain_line(plain) && is_plain_text(plain), "{plain:?}");
        }
        for treacherous in [
            "a\0b",
            "\u{1b}[31m",
            "\u{7f}",
            "\u{85}",
            "10\u{202E}001",
            "\u{202A}",
            "\u{2066}",
            "a\u{2069}",
            "a\u{2028}b",
        ] {
            assert!(!is_plain_line(treacherous), "{treacherous:?}");
            assert!(!is_plain_text(treacherous), "{treacherous:?}");
        }
        for lines in ["a\nb", "a\r\nb", "a\tb"] {
            assert!(is_plain_text(lines) && !is_plain_line(lines), "{lines:?}");
        }
    }
}

//! What a script answered: words.

use std::str::FromStr;

use redis::Value;
use seckill_application::Fault;

/// An answer that makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("an answer that makes no sense: {0}")]
pub(crate) struct Malformed(pub(crate) String);

/// The words of an answer; the first says what it is.
#[derive(Debug)]
pub(crate) struct Reply {
    port: &'static str,
    words: Vec<String>,
}

impl Reply {
    pub(crate) fn read(port: &'static str, value: Value) -> Result<Self, Fault> {
        let items = match value {
            Value::Array(items) if !items.is_empty() => items,
            other => return Err(malformed(port, format!("{other:?}"))),
        };
        let words = items.into_iter().map(word).collect::<Option<_>>();
        match words {
            Some(words) => Ok(Self { port, words }),
            None => Err(malformed(port, "not text")),
        }
    }

    /// What it is.
    pub(crate) fn kind(&self) -> &str {
        &self.words[0]
    }

    /// The words after the first.
    pub(crate) fn rest(&self) -> &[String] {
        &self.words[1..]
    }

    /// A word, counted from 1 after the first.
    pub(crate) fn text(&self, at: usize) -> Result<&str, Fault> {
        let word = self.words.get(at).map(String::as_str);
        word.ok_or_else(|| self.senseless())
    }

    /// A number, or anything else that is written as text.
    pub(crate) fn parsed<T: FromStr>(&self, at: usize) -> Result<T, Fault> {
        self.text(at)?.parse().map_err(|_| self.senseless())
    }

    /// The fault of an answer that makes no sense.
    pub(crate) fn senseless(&self) -> Fault {
        malformed(self.port, self.words.join(" "))
    }
}

/// The fault of an answer that makes no sense.
pub(crate) fn malformed(port: &'static str, answer: impl Into<String>) -> Fault {
    let mut answer = answer.into();
    answer.truncate(answer.floor_char_boundary(400));
    Fault::broken(port, Malformed(answer))
}

fn word(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        Value::Int(number) => Some(number.to_string()),
        Value::Okay => Some("OK".to_owned()),
        _ => None,
    }
}

//! Rows as one parameter of a statement: a JSON list, which the statement reads with `JSON_TABLE`.
//! One text, prepared once per connection, writes or finds any number of rows.
//!
//! Each row is a list, too, and its columns are told by position, so the tuple of a row stands next
//! to the statement that reads it. A column at the end that is null may be missing.

use serde::Serialize;

use crate::fault::Trouble;

/// Bytes of one parameter. What is longer leaves the client as several TLS records, and the last of
/// them waits for the server to acknowledge the others: the client library does not switch Nagle's
/// algorithm off. A second statement is cheaper.
const BYTES_MAX: usize = 16_000;

/// Some rows, for one statement.
#[derive(Debug)]
pub(crate) struct JsonRows {
    pub(crate) text: String,
    pub(crate) count: u64,
}

/// Rows in as many parts as they need; none for no rows.
pub(crate) fn json_parts<T: Serialize>(
    rows: impl Iterator<Item = T>,
) -> Result<Vec<JsonRows>, Trouble> {
    let mut parts: Vec<JsonRows> = Vec::new();
    let mut text = Vec::new();
    let mut count = 0;
    for row in rows {
        // Not before there is a row: most batches have none for most statements.
        if text.is_empty() {
            text.reserve(BYTES_MAX);
        }
        let end = text.len();
        text.push(if count == 0 { b'[' } else { b',' });
        append(&mut text, &row)?;
        if count > 0 && text.len() > BYTES_MAX {
            let mut next = Vec::with_capacity(BYTES_MAX);
            next.push(b'[');
            next.extend_from_slice(&text[end + 1..]);
            text.truncate(end);
            parts.push(JsonRows::of(text, count)?);
            (text, count) = (next, 0);
        }
        count += 1;
    }
    if count > 0 {
        parts.push(JsonRows::of(text, count)?);
    }
    Ok(parts)
}

impl JsonRows {
    fn of(mut text: Vec<u8>, count: u64) -> Result<Self, Trouble> {
        text.push(b']');
        let text = String::from_utf8(text).map_err(|error| Trouble::Broken(Box::new(error)))?;
        Ok(Self { text, count })
    }
}

/// Appends a row without the nulls at its end.
fn append<T: Serialize>(text: &mut Vec<u8>, row: &T) -> Result<(), Trouble> {
    const NULL_AT_THE_END: &[u8] = b",null]";
    serde_json::to_writer(&mut *text, row).map_err(|error| Trouble::Broken(Box::new(error)))?;
    while text.ends_with(NULL_AT_THE_END) {
        text.truncate(text.len() - NULL_AT_THE_END.len());
        text.push(b']');
    }
    Ok(())
}

/// Rows as one parameter, however long.
pub(crate) fn json_rows<T: Serialize>(rows: impl Iterator<Item = T>) -> Result<String, Trouble> {
    json(&rows.collect::<Vec<T>>())
}

fn json<T: Serialize>(value: &T) -> Result<String, Trouble> {
    serde_json::to_string(value).map_err(|error| Trouble::Broken(Box::new(error)))
}

/// Ids, for `wanted_ids`.
pub(crate) fn json_ids(ids: impl Iterator<Item = u64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}

/// Ids of a statement's first parameter as the table `wanted`. A derived table, because MySQL does
/// not lock rows that are joined to a table function directly.
macro_rules! wanted_ids {
    () => {
        "(SELECT listed.id \
           FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT UNSIGNED PATH '$')) listed) wanted "
    };
}
pub(crate) use wanted_ids;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_at_the_end_are_left_out_and_others_are_not() {
        let row = (1, None::<u8>, "a,null]", None::<u8>, None::<u8>);
        let parts = json_parts([row, row].into_iter()).expect("rows");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].count, 2);
        assert_eq!(parts[0].text, r#"[[1,null,"a,null]"],[1,null,"a,null]"]]"#);
    }

    #[test]
    fn rows_are_parted_by_length_and_a_long_row_goes_alone() {
        let long = "x".repeat(BYTES_MAX);
        let rows = [("a", 1), (long.as_str(), 2), ("b", 3), ("c", 4)];
        let parts = json_parts(rows.into_iter()).expect("rows");
        let counts: Vec<u64> = parts.iter().map(|part| part.count).collect();
        assert_eq!(counts, [1, 1, 2]);
        assert_eq!(parts[2].text, r#"[["b",3],["c",4]]"#);
        assert!(
            json_parts(std::iter::empty::<u8>())
                .expect("rows")
                .is_empty()
        );
        let many = json_parts((0..1_000).map(|n| (n, "0123456789"))).expect("rows");
        assert!(many.iter().all(|part| part.text.len() <= BYTES_MAX + 1));
        assert_eq!(many.iter().map(|part| part.count).sum::<u64>(), 1_000);
    }
}

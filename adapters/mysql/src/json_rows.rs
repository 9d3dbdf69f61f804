//! Rows as one parameter of a statement: a JSON list, which the statement reads with `JSON_TABLE`.
//! One text, prepared once per connection, writes or finds any number of rows.
//!
//! Each row is a list, too, and its columns are told by position: MySQL finds the members of an
//! object three times slower. So the tuple of a row stands next to the statement that reads it.

use serde::Serialize;

use crate::fault::Trouble;

/// Rows, for a statement.
pub(crate) fn json_rows<T: Serialize>(rows: impl Iterator<Item = T>) -> Result<String, Trouble> {
    let rows: Vec<T> = rows.collect();
    serde_json::to_string(&rows).map_err(|error| Trouble::Broken(Box::new(error)))
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

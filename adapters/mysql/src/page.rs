//! Lists, page by page: rows newest first, of which one more is read than asked for.

use seckill_application::Fault;
use seckill_application::ports::Page;
use sqlx::mysql::MySqlRow;

use crate::fault::Trouble;

/// The highest id of a page that starts before an id.
pub(crate) fn highest(before: Option<u64>) -> u64 {
    before.map_or(u64::MAX, |id| id.saturating_sub(1))
}

/// Reads a page from rows of which one more than `limit` was asked for.
pub(crate) fn page<T>(
    port: &'static str,
    rows: &[MySqlRow],
    limit: usize,
    read: impl Fn(&MySqlRow) -> Result<T, Trouble>,
    id: impl Fn(&T) -> u64,
) -> Result<Page<T>, Fault> {
    let items = all(port, rows.iter().take(limit), read)?;
    let more = rows.len() > limit;
    let next = items.last().filter(|_| more).map(id);
    Ok(Page { items, next })
}

/// Reads every row.
pub(crate) fn all<'r, T>(
    port: &'static str,
    rows: impl IntoIterator<Item = &'r MySqlRow>,
    read: impl Fn(&MySqlRow) -> Result<T, Trouble>,
) -> Result<Vec<T>, Fault> {
    rows.into_iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|trouble| trouble.before_commit(port))
}

/// Reads the row that is there, if it is.
pub(crate) fn one<T>(
    port: &'static str,
    row: Option<&MySqlRow>,
    read: impl Fn(&MySqlRow) -> Result<T, Trouble>,
) -> Result<Option<T>, Fault> {
    row.map(read)
        .transpose()
        .map_err(|trouble| trouble.before_commit(port))
}

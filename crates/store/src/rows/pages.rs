//! Pages of a list: how many rows one may have, and where the next one begins.

use everbell_core::Invalid;
use everbell_core::store::{Cursor, Page, StoreError, StoreResult};

use super::readable;
use crate::micros::Micros;

/// Refuses a page without rows, and one with too many.
pub(crate) fn check_limit(limit: u32) -> StoreResult<()> {
    if (1..=1_000).contains(&limit) {
        return Ok(());
    }
    Err(Invalid::new("limit", format!("must be from 1 to 1000, not {limit}")).into())
}

/// Refuses a count that has no end.
pub(crate) fn check_cap(cap: u32) -> StoreResult<()> {
    if (1..=10_000).contains(&cap) {
        return Ok(());
    }
    Err(Invalid::new("cap", format!("must be from 1 to 10000, not {cap}")).into())
}

/// A cursor that makes no sense.
pub(crate) fn bad_cursor() -> StoreError {
    Invalid::new("cursor", "is not a cursor returned by a previous page").into()
}

/// The time of a cursor in a list by time.
pub(crate) fn cursor_time(after: Option<&Cursor>) -> StoreResult<Option<Micros>> {
    after.map(|cursor| cursor.value.parse().map(Micros)).transpose().map_err(|_| bad_cursor())
}

/// Removes the row behind the page, which the statement reads to know whether there is one, and returns the cursor of the
/// next page.
pub(crate) fn cut<R>(rows: &mut Vec<R>, limit: u32, cursor: impl Fn(&R) -> Cursor) -> Option<Cursor> {
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.last().filter(|_| more).map(cursor)
}

/// A page from its rows and the one behind it. Rows that cannot be read are left out and named.
pub(crate) fn page_of<R, T, I: ToString>(
    mut rows: Vec<R>,
    limit: u32,
    cursor: impl Fn(&R) -> Cursor,
    id: impl Fn(&R) -> I,
    read: impl Fn(R) -> StoreResult<T>,
) -> Page<T> {
    let next = cut(&mut rows, limit, cursor);
    let (items, unreadable) = readable(rows, id, read);
    Page::new(items, next, unreadable)
}

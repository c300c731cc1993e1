//! Keyset pages: a page begins behind a sort value and an id, so rows that come and go neither repeat nor hide others.

use everbell_core::Invalid;
use everbell_core::store::{Cursor, Page, PageRequest, StoreResult};
use jiff::Timestamp;
use uuid::Uuid;

/// The most rows of a page.
const MAX_LIMIT: u32 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

pub(super) fn by_text<T>(
    rows: Vec<T>,
    page: &PageRequest,
    direction: Direction,
    key: impl Fn(&T) -> (String, Uuid),
) -> Page<T> {
    let after = page.after.as_ref().map(|cursor| (cursor.value.clone(), cursor.id));
    cut(rows, page.limit, after.as_ref(), direction, key, Clone::clone)
}

pub(super) fn by_time<T>(
    rows: Vec<T>,
    page: &PageRequest,
    direction: Direction,
    key: impl Fn(&T) -> (Timestamp, Uuid),
) -> StoreResult<Page<T>> {
    let after = match &page.after {
        None => None,
        Some(cursor) => {
            let micros = cursor.value.parse().ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
            let at = micros.ok_or_else(|| Invalid::new("cursor", "is not a cursor returned by a previous page"))?;
            Some((at, cursor.id))
        }
    };
    let value = |at: &Timestamp| at.as_microsecond().to_string();
    Ok(cut(rows, page.limit, after.as_ref(), direction, key, value))
}

fn cut<T, V: Ord>(
    rows: Vec<T>,
    limit: u32,
    after: Option<&(V, Uuid)>,
    direction: Direction,
    key: impl Fn(&T) -> (V, Uuid),
    value: impl Fn(&V) -> String,
) -> Page<T> {
    let is_behind =
        |row: &(V, Uuid)| after.is_none_or(|after| if direction == Direction::Up { row > after } else { row < after });
    let mut keyed: Vec<((V, Uuid), T)> = rows.into_iter().map(|row| (key(&row), row)).collect();
    keyed.retain(|(key, _)| is_behind(key));
    keyed.sort_by(|(a, _), (b, _)| if direction == Direction::Up { a.cmp(b) } else { b.cmp(a) });
    let limit = limit.clamp(1, MAX_LIMIT) as usize;
    let more = keyed.len() > limit;
    keyed.truncate(limit);
    let last = keyed.last().filter(|_| more);
    let next = last.map(|((at, id), _)| Cursor { value: value(at), id: *id });
    Page::new(keyed.into_iter().map(|(_, row)| row).collect(), next, Vec::new())
}

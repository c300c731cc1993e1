//! [`Page`]: a part of a list.

use super::requests::Cursor;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
    /// Ids of rows that could not be read and were left out, as texts: those of orgs are.
    pub unreadable: Vec<String>,
}

impl<T> Page<T> {
    /// A part of a list, with the cursor of the next one.
    pub fn new(items: Vec<T>, next: Option<Cursor>, unreadable: Vec<String>) -> Page<T> {
        Page { items, next, unreadable }
    }
}

//! The mark of a database that was copied elsewhere.

use everbell_core::store::StoreResult;

use super::connect::on;
use super::statement::{Backend, Statement};
use crate::micros::Micros;
use crate::moved::MovedMark;

const READING: &str = "reading the database";

/// Reads it, if there is one.
pub(super) async fn read_mark(backend: impl Backend) -> StoreResult<Option<MovedMark>> {
    let query = sqlx::query_as(include_str!("sql/moved.sql"));
    let found: Option<MarkColumns> = on(READING, query.fetch_optional_on(backend)).await?;
    Ok(found.map(mark))
}

/// Its columns.
pub(super) type MarkColumns = (String, String, bool, Micros);

pub(super) fn mark((to, target, is_done, at): MarkColumns) -> MovedMark {
    MovedMark { to, target, is_done, at: at.into() }
}

//! The mark of a database that was copied elsewhere.

use everbell_core::store::StoreResult;
use sqlx::SqliteConnection;

use super::errors;
use crate::micros::Micros;
use crate::moved::MovedMark;

const READING: &str = "reading the database";

/// Reads it, if there is one.
pub(super) async fn read_mark(connection: &mut SqliteConnection) -> StoreResult<Option<MovedMark>> {
    let query = sqlx::query_as(include_str!("sql/moved.sql"));
    let found: Option<(String, String, bool, Micros)> =
        query.fetch_optional(connection).await.map_err(|error| errors::from_sqlx(READING, error))?;
    Ok(found.map(|(to, target, is_done, at)| MovedMark { to, target, is_done, at: at.into() }))
}

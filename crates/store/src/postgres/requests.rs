//! Requests that may be sent again: what they did, and how they were answered.

use everbell_core::store::{AuditEntry, Deed, REQUEST_KEPT, Remembered, RequestKey, StoreError, StoreResult};
use jiff::Timestamp;

use super::PostgresStore;
use super::connect::{Conn, on};
use crate::micros::Micros;
use crate::rows::{RequestRow, deed_text, remembered};

impl PostgresStore {
    pub(super) async fn read_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        let query = sqlx::query_as(include_str!("sql/read_request.sql"))
            .bind(request.key.clone())
            .bind(Micros::earlier(now, REQUEST_KEPT));
        let row: Option<RequestRow> = self.within("looking for a request", query.fetch_optional(&self.pool)).await?;
        remembered(request, row)
    }

    pub(super) async fn write_answer(
        &self,
        request: &RequestKey,
        (status, body): (u16, &str),
        now: Timestamp,
    ) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/remember_answer.sql"))
            .bind(request.key.clone())
            .bind(request.fingerprint.to_vec())
            .bind(Micros::from(now))
            .bind(i32::from(status))
            .bind(body.to_owned())
            .bind(Micros::earlier(now, REQUEST_KEPT));
        self.alone("remembering an answer", query.execute(&self.pool)).await.map(drop)
    }
}

/// Writes down what a request did, unless it did so before. Waits for another transaction that is about to do the same.
pub(super) async fn insert_deed(
    conn: Conn<'_, '_>,
    request: &RequestKey,
    audit: &AuditEntry,
    deed: Deed,
) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/insert_deed.sql"))
        .bind(request.key.clone())
        .bind(request.fingerprint.to_vec())
        .bind(Micros::from(audit.at))
        .bind(deed_text(&Deed { entry: audit.id, ..deed }))
        .bind(Micros::earlier(audit.at, REQUEST_KEPT));
    match on("remembering a request", query.execute(&mut *conn)).await?.rows_affected() {
        0 => Err(StoreError::Conflict { what: "this request was carried out already".to_owned() }),
        _ => Ok(()),
    }
}

//! Requests that may be sent again: what they did, and how they were answered.

use everbell_core::store::{AuditEntry, Deed, REQUEST_KEPT, Remembered, RequestKey, StoreError, StoreResult};
use jiff::Timestamp;

use super::SqliteStore;
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::{RequestRow, deed_text, remembered};

impl SqliteStore {
    pub(super) async fn read_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        let mut held = self.reader("looking for a request").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/read_request.sql"))
            .bind(request.key.clone())
            .bind(Micros::earlier(now, REQUEST_KEPT));
        let row: Option<RequestRow> = tx.first(query).await?;
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
            .bind(status)
            .bind(body.to_owned())
            .bind(Micros::earlier(now, REQUEST_KEPT));
        self.write("remembering an answer", query).await.map(drop)
    }
}

/// Writes down what a request did, unless it did so before.
pub(super) async fn insert_deed(
    tx: &mut Tx<'_>,
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
    match tx.run(query).await? {
        0 => Err(StoreError::Conflict { what: "this request was carried out already".to_owned() }),
        _ => Ok(()),
    }
}

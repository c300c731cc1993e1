//! Audit entries, and what the requests behind them did.

use everbell_core::store::{AuditEntry, Deed, REQUEST_RETENTION, RequestKey, StoreError, StoreResult};

use super::connect::{Conn, on};
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::binds::bind_audit;
use crate::rows::deed_text;

/// Writes an entry, and that its request was carried out, if it names one.
pub(super) async fn insert_audit(conn: Conn<'_, '_>, audit: &AuditEntry) -> StoreResult<()> {
    insert_audit_of(conn, audit, Deed::default).await
}

/// Like `insert_audit`, for a request whose answer is about a row that it created.
pub(super) async fn insert_audit_of(
    conn: Conn<'_, '_>,
    audit: &AuditEntry,
    deed: impl FnOnce() -> Deed,
) -> StoreResult<()> {
    let query = bind_audit!(sqlx::query(include_str!("sql/insert_audit.sql")), audit);
    on("writing the audit trail", query.execute_on(&mut *conn)).await?;
    match &audit.request {
        Some(request) => insert_deed(conn, request, audit, deed()).await,
        None => Ok(()),
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
        .bind(Micros::earlier(audit.at, REQUEST_RETENTION));
    match on("remembering a request", query.execute_on(&mut *conn)).await?.rows_affected() {
        0 => Err(StoreError::Conflict { what: "this request was already carried out".to_owned() }),
        _ => Ok(()),
    }
}

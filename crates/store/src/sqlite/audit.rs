//! Audit entries, and what the requests behind them did.

use everbell_core::store::{AuditEntry, Deed, REQUEST_RETENTION, RequestKey, StoreError, StoreResult};

use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::binds::bind_audit;
use crate::rows::deed_text;

/// Writes an entry, and that its request was carried out, if it names one.
pub(super) async fn insert_audit(tx: &mut Tx<'_>, audit: &AuditEntry) -> StoreResult<()> {
    insert_audit_of(tx, audit, Deed::default).await
}

/// Like `insert_audit`, for a request whose answer is about a row that it created.
pub(super) async fn insert_audit_of(
    tx: &mut Tx<'_>,
    audit: &AuditEntry,
    deed: impl FnOnce() -> Deed,
) -> StoreResult<()> {
    let query = bind_audit!(sqlx::query(include_str!("sql/insert_audit.sql")), audit);
    tx.run(query).await?;
    match &audit.request {
        Some(request) => insert_deed(tx, request, audit, deed()).await,
        None => Ok(()),
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
        .bind(Micros::earlier(audit.at, REQUEST_RETENTION));
    match tx.run(query).await? {
        0 => Err(StoreError::Conflict { what: "this request was already carried out".to_owned() }),
        _ => Ok(()),
    }
}

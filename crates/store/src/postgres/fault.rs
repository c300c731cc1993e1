//! What PostgreSQL says when something is wrong, in words that a caller can act on.
//!
//! Classified by kind first: after a restart or a terminated backend the error carries no code at all.

use everbell_core::store::StoreError;
use everbell_core::{Invalid, storable_text};
use sqlx::error::ErrorKind;

/// A statement failed. Nothing of its transaction has happened.
pub(super) fn from_sqlx(what: &str, error: sqlx::Error) -> StoreError {
    let Some(said) = error.as_database_error() else { return unavailable(what, error) };
    match (said.kind(), said.code().as_deref().unwrap_or("")) {
        (ErrorKind::UniqueViolation, _) => StoreError::Conflict { what: conflict(what, said.constraint()) },
        (ErrorKind::CheckViolation | ErrorKind::NotNullViolation | ErrorKind::ForeignKeyViolation, _) => {
            let constraint = said.constraint().unwrap_or("a constraint").to_owned();
            StoreError::Corrupt { what: format!("{what}: the schema refuses it ({constraint})") }
        }
        // Characters that no text can hold; refused before, so only a defect gets here.
        (_, "22021" | "22P05") => StoreError::Invalid(Invalid::new("text", "must not contain NUL characters")),
        _ => unavailable(what, error),
    }
}

/// The database cannot do it now.
pub(super) fn unavailable(what: &str, error: sqlx::Error) -> StoreError {
    let hint = match error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() {
        Some("26000" | "42P05" | "08P01") => {
            "; behind a pooler in transaction mode, add `pooler=transaction` to the address"
        }
        Some("28P01" | "28000") => "; check user and password",
        Some("3D000") => "; create the database first",
        Some("42501") => "; the role lacks a right",
        Some("25006") => "; this server is read-only: connect to the primary",
        Some("53100") => "; the server's disk is full",
        Some("53300") => "; the server has no connection left",
        Some("57P01" | "57P02" | "57P03") => "; the server is starting or stopping",
        Some("40001" | "40P01") => "; another transaction was in the way, trying again helps",
        _ => "",
    };
    let said = match &error {
        sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
        // Addresses in configuration errors may carry a password.
        sqlx::Error::Configuration(_) => {
            "the address cannot be read; it looks like postgres://user:password@host/database".to_owned()
        }
        sqlx::Error::Database(said) => said.message().to_owned(),
        other => other.to_string(),
    };
    let source = match error {
        sqlx::Error::Configuration(_) => None,
        other => Some(Box::new(other) as Box<dyn std::error::Error + Send + Sync>),
    };
    StoreError::Unavailable { what: storable_text(&format!("{what}: {said}{hint}"), 2_000), maybe_done: false, source }
}

/// Whether the transaction was sent away because two waited for each other. Nothing of it has happened.
pub(super) fn is_deadlock(error: &StoreError) -> bool {
    let StoreError::Unavailable { source: Some(source), maybe_done: false, .. } = error else { return false };
    let said = source.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    said.and_then(sqlx::error::DatabaseError::code).as_deref() == Some("40P01")
}

/// A commit failed. If the server said so, nothing has happened, nor if it was never asked; if it said nothing, nobody knows.
pub(super) fn commit(what: &str, error: sqlx::Error) -> StoreError {
    let answered = matches!(error, sqlx::Error::Database(_) | sqlx::Error::PoolTimedOut);
    match from_sqlx(what, error) {
        StoreError::Unavailable { what, source, .. } => StoreError::Unavailable { what, maybe_done: !answered, source },
        other => other,
    }
}

/// No answer within the deadline.
pub(super) fn too_late(what: &str, maybe_done: bool) -> StoreError {
    let what = format!("{what}: no answer within {} s", super::DEADLINE.as_secs());
    StoreError::Unavailable { what, maybe_done, source: None }
}

fn conflict(what: &str, constraint: Option<&str>) -> String {
    match constraint {
        Some("jobs_living") => format!("{what}: a job of this key is living already"),
        Some("jobs_job_key_version_key") => format!("{what}: this version of the job exists already"),
        Some("tokens_pkey" | "tokens_hash_key") => format!("{what}: a token of this name exists already"),
        Some(constraint) => format!("{what}: it exists already ({constraint})"),
        None => format!("{what}: it exists already"),
    }
}

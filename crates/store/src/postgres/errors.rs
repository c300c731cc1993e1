//! Errors of PostgreSQL, translated into errors that a caller can act on.
//!
//! Classified by kind first: after a restart or a terminated backend the error carries no code at all.

use everbell_core::store::{NeedsOperator, StoreError, UnavailableReason};
use everbell_core::{Invalid, storable_text};
use sqlx::error::ErrorKind;

use super::hosts::{Refusal, code};
use crate::deadline::{Late, Stage};

/// A statement failed. Nothing of its transaction has happened.
pub(super) fn from_sqlx(what: &str, error: sqlx::Error) -> StoreError {
    let Some(said) = error.as_database_error() else { return unavailable(what, error) };
    match (said.kind(), said.code().as_deref().unwrap_or("")) {
        (ErrorKind::UniqueViolation, _) => StoreError::Conflict { what: conflict(what, said.constraint()) },
        (ErrorKind::ForeignKeyViolation, _) if said.constraint() == Some("jobs_supersedes_job_id_fkey") => {
            StoreError::Conflict {
                what: format!("{what}: the version before it was deleted at this moment; try again"),
            }
        }
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
    let refusal = Refusal::find_in(&error).and_then(|refusal| refusal.code.clone());
    let code = refusal.or_else(|| code(&error).map(Into::into));
    let (reason, hint) = explain(code.as_deref().unwrap_or(""), &error);
    let is_moved = code.as_deref() == Some(MOVED);
    let said = match &error {
        // Addresses in configuration errors may carry a password.
        sqlx::Error::Configuration(_) => {
            "the address cannot be read; it looks like postgres://user:password@host/database".to_owned()
        }
        sqlx::Error::Database(said) => said.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    let source: Option<Box<dyn std::error::Error + Send + Sync>> = match error {
        sqlx::Error::Configuration(_) => None,
        _ if matches!(reason, UnavailableReason::Schema | UnavailableReason::Permission) || is_moved => {
            Some(Box::new(NeedsOperator { reason: storable_text(&format!("{said}{hint}"), 2_000) }))
        }
        other => Some(Box::new(other)),
    };
    let what = storable_text(&format!("{what}: {said}{hint}"), 2_000);
    StoreError::Unavailable { what, reason, maybe_done: false, source }
}

/// Advice about a missing table or column: another release has migrated the database, or none has.
pub(super) const OTHER_SCHEMA: &str = "; the database belongs to another release, or its tables were moved or removed: stop all \
                            instances, start the newest release, or restore a backup";

/// The code of a write into a database whose rows were copied to another one.
const MOVED: &str = "EB001";

/// Returns the reason of an error, and advice.
fn explain(code: &str, error: &sqlx::Error) -> (UnavailableReason, &'static str) {
    if let Some(late) = Late::find_in(error) {
        return (UnavailableReason::TimedOut(late.after), "");
    }
    if let sqlx::Error::ColumnNotFound(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } = error {
        return (UnavailableReason::Schema, OTHER_SCHEMA);
    }
    match code {
        // Only a statement that is looked for on another connection says so.
        "26000" | "42P05" | "08P01" => (
            UnavailableReason::Unreachable,
            "; behind a pooler in transaction mode, add `pooler=transaction` to the address",
        ),
        "28P01" | "28000" => (UnavailableReason::Unreachable, "; check user and password"),
        "3D000" => (UnavailableReason::Unreachable, "; create the database first"),
        "42501" => (UnavailableReason::Permission, "; grant it to the role, or connect as the owner of the schema"),
        "42P01" | "42703" | "3F000" => (UnavailableReason::Schema, OTHER_SCHEMA),
        "42P06" | "42P07" | "42701" | "42710" => (
            UnavailableReason::Schema,
            "; an object of this name is there already, and everbell did not create it: rename it, or restore a backup",
        ),
        "25006" => (UnavailableReason::ReadOnly, "; this server is read-only: connect to the primary"),
        MOVED => (UnavailableReason::ReadOnly, "; use that one, or allow this one again with `everbell db reopen`"),
        "53100" => (UnavailableReason::DiskFull, "; the server's disk is full"),
        "53300" => (UnavailableReason::TooManyConnections, "; the server has no connection left"),
        "55P03" => (UnavailableReason::Locked, "; retry when the other session has ended"),
        "57P01" | "57P02" | "57P03" => (UnavailableReason::Unreachable, "; the server is starting or stopping"),
        "40001" | "40P01" => (UnavailableReason::Locked, "; conflict with another transaction, try again"),
        _ => (UnavailableReason::Unreachable, ""),
    }
}

/// Whether the server has no connection left, or is starting: both pass.
pub(super) fn is_full(error: &StoreError) -> bool {
    let StoreError::Unavailable { reason, source, .. } = error else { return false };
    let driver = source.as_ref().and_then(|source| source.downcast_ref::<sqlx::Error>());
    let refusal = driver.and_then(Refusal::find_in).and_then(|refusal| refusal.code.as_deref());
    *reason == UnavailableReason::TooManyConnections
        || refusal == Some("57P03")
        || driver.and_then(code).as_deref() == Some("57P03")
}

/// Makes a missing table one that another instance is moving at this moment: a retry finds it in its new place.
pub(super) fn passing(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable { what, reason: UnavailableReason::Schema, maybe_done, source } => {
            StoreError::Unavailable { what, reason: UnavailableReason::Locked, maybe_done, source }
        }
        other => other,
    }
}

/// Whether the transaction was sent away because two waited for each other. Nothing of it has happened.
pub(super) fn is_deadlock(error: &StoreError) -> bool {
    let StoreError::Unavailable { source: Some(source), maybe_done: false, .. } = error else { return false };
    source.downcast_ref::<sqlx::Error>().and_then(code).as_deref() == Some("40P01")
}

/// The error of a commit. If the server reported it, or was never asked, nothing was committed; otherwise the effect is
/// in doubt.
pub(super) fn commit(what: &str, error: sqlx::Error) -> StoreError {
    let never_asked =
        Late::find_in(&error).is_some_and(|late| late.stage != Stage::Sent) || Refusal::find_in(&error).is_some();
    let answered = never_asked || matches!(error, sqlx::Error::Database(_));
    match from_sqlx(what, error) {
        StoreError::Unavailable { what, reason, source, .. } => {
            StoreError::Unavailable { what, reason, maybe_done: !answered, source }
        }
        other => other,
    }
}

fn conflict(what: &str, constraint: Option<&str>) -> String {
    match constraint {
        Some("jobs_living") => format!("{what}: a current job has this key"),
        Some("jobs_job_key_version_key") => format!("{what}: this version of the job already exists"),
        Some("tokens_pkey" | "tokens_hash_key") => format!("{what}: a token of this name already exists"),
        Some(constraint) => format!("{what}: it already exists ({constraint})"),
        None => format!("{what}: it already exists"),
    }
}

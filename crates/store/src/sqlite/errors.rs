//! Errors of SQLite, translated into errors that a caller can act on.

use std::error::Error;

use everbell_core::store::{NeedsOperator, StoreError, UnavailableReason};
use everbell_core::{Invalid, storable_text};
use sqlx::error::ErrorKind;

/// The primary result codes of SQLite (<https://www.sqlite.org/rescode.html>); the extended ones keep them in their last byte.
mod code {
    pub(super) const ERROR: u32 = 1;
    pub(super) const PERM: u32 = 3;
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const READONLY: u32 = 8;
    pub(super) const IOERR: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const CANTOPEN: u32 = 14;
    pub(super) const CONSTRAINT: u32 = 19;
    pub(super) const NOTADB: u32 = 26;
}

/// A statement failed. Nothing of its transaction has happened.
pub(super) fn from_sqlx(what: &str, error: sqlx::Error) -> StoreError {
    let corrupt = |what: String| StoreError::Corrupt { what: storable_text(&what, 2_000) };
    let said = match &error {
        sqlx::Error::Database(said) => said,
        // The columns of a row are not what the schema says.
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => return corrupt(format!("{what}: {error}")),
        _ => return unavailable(what, error),
    };
    match (said.kind(), primary(&error)) {
        (ErrorKind::UniqueViolation, _) => StoreError::Conflict { what: conflict(what, said.message()) },
        (ErrorKind::CheckViolation | ErrorKind::NotNullViolation | ErrorKind::ForeignKeyViolation, _) => {
            corrupt(format!("{what}: the schema refuses it ({})", said.message()))
        }
        (_, Some(code::NOTADB)) => corrupt(format!("{what}: the file is not an SQLite database; name another file")),
        (_, Some(code::CORRUPT)) => {
            corrupt(format!("{what}: {}; restore a backup, or save what can be with `.recover`", said.message()))
        }
        _ => unavailable(what, error),
    }
}

/// Advice about tables that are not those of this release.
pub(super) const OTHER_SCHEMA: &str = "; the database belongs to another release, or its tables were changed: stop all \
                                       instances, start the newest release, or restore a backup";

/// The database cannot do it now.
pub(super) fn unavailable(what: &str, error: sqlx::Error) -> StoreError {
    let hint = match primary(&error) {
        Some(code::BUSY | code::LOCKED) => "; another process holds the database, try again",
        Some(code::READONLY) => "; the file or its folder cannot be written: check their owner and rights",
        Some(code::PERM | code::CANTOPEN) => "; check that the folder exists and who may use it",
        Some(code::FULL) => "; make room on the disk",
        _ if is_schema(&error) => OTHER_SCHEMA,
        Some(code::IOERR) => {
            "; check the disk and the file system (SQLite does not work reliably on network file systems)"
        }
        _ => "",
    };
    let said = match &error {
        sqlx::Error::Database(said) => said.message().to_owned(),
        sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
        other => other.to_string(),
    };
    let kind = match primary(&error) {
        Some(code::BUSY | code::LOCKED) => UnavailableReason::Locked,
        Some(code::READONLY) => UnavailableReason::ReadOnly,
        Some(code::FULL) => UnavailableReason::DiskFull,
        _ if is_schema(&error) => UnavailableReason::Schema,
        _ => UnavailableReason::Unreachable,
    };
    let lasts = needs_an_operator(&error) || kind == UnavailableReason::Schema;
    let reason = storable_text(&format!("{said}{hint}"), 2_000);
    let what = storable_text(&format!("{what}: {reason}"), 2_000);
    let source: Box<dyn Error + Send + Sync> = if lasts { Box::new(NeedsOperator { reason }) } else { Box::new(error) };
    StoreError::Unavailable { what, reason: kind, maybe_done: false, source: Some(source) }
}

/// A commit failed. While another process is in the way nothing was written; otherwise frames of it may have reached the
/// disk, and the next one to open the file may find them whole.
pub(super) fn commit(what: &str, error: sqlx::Error) -> StoreError {
    let untouched = is_busy(&error);
    match from_sqlx(what, error) {
        StoreError::Unavailable { what, reason, source, .. } => {
            StoreError::Unavailable { what, reason, maybe_done: !untouched, source }
        }
        other => other,
    }
}

/// Another process is in the way.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary(error), Some(code::BUSY | code::LOCKED))
}

/// Whether the connection that said this should not be used again. After a refusal it should: nothing happened.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match primary(error) {
        Some(primary) => !matches!(primary, code::BUSY | code::LOCKED | code::READONLY | code::CONSTRAINT),
        None => !matches!(error, sqlx::Error::RowNotFound | sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)),
    }
}

/// Whether writing fails until someone does something: makes room, gives rights, repairs the disk or the file.
pub(super) fn needs_an_operator(error: &sqlx::Error) -> bool {
    const LASTING: [u32; 7] =
        [code::PERM, code::READONLY, code::IOERR, code::CORRUPT, code::FULL, code::CANTOPEN, code::NOTADB];
    primary(error).is_some_and(|code| LASTING.contains(&code))
}

/// Whether a table or a column is missing. SQLite has one code for all errors of a statement, so the message decides.
fn is_schema(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::ColumnNotFound(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } => true,
        sqlx::Error::Database(said) if primary(error) == Some(code::ERROR) => {
            ["no such table: ", "no such column: "].iter().any(|missing| said.message().starts_with(missing))
                || said.message().contains(" has no column named ")
        }
        _ => false,
    }
}

/// A refusal that names the database itself.
pub(super) fn refused(reason: String) -> StoreError {
    Invalid::new("database", reason).into()
}

fn primary(error: &sqlx::Error) -> Option<u32> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// SQLite names the columns: `UNIQUE constraint failed: everbell_jobs.job_key`.
fn conflict(what: &str, said: &str) -> String {
    match said.rsplit(": ").next().unwrap_or(said) {
        "everbell_jobs.job_key" => format!("{what}: a current job has this key"),
        "everbell_jobs.job_key, everbell_jobs.version" => format!("{what}: this version of the job already exists"),
        "everbell_tokens.name" | "everbell_tokens.hash" => format!("{what}: a token of this name already exists"),
        columns => format!("{what}: it already exists ({columns})"),
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions, SqliteConnection};

    use super::*;

    async fn in_memory(setup: &'static str) -> SqliteConnection {
        let mut connection = SqliteConnectOptions::new().in_memory(true).connect().await.unwrap();
        sqlx::raw_sql(setup).execute(&mut connection).await.unwrap();
        connection
    }

    async fn errors_of(setup: &'static str, sql: &'static str) -> (StoreError, StoreError) {
        let mut connection = in_memory(setup).await;
        let mut failed = async || sqlx::raw_sql(sql).execute(&mut connection).await.unwrap_err();
        (from_sqlx("ringing", failed().await), commit("ringing", failed().await))
    }

    #[tokio::test]
    async fn a_full_disk_is_said_and_a_commit_may_have_happened() {
        let setup = "create table bells (sound blob); pragma max_page_count = 10";
        let (statement, committed) = errors_of(setup, "insert into bells values (zeroblob(1000000))").await;
        assert_eq!(
            statement.to_string(),
            "the disk of the database is full: ringing: database or disk is full; make room on the disk"
        );
        assert!(matches!(committed, StoreError::Unavailable { maybe_done: true, .. }), "{committed:?}");
    }

    #[tokio::test]
    async fn what_cannot_be_written_says_why() {
        let setup = "create table bells (sound text); pragma query_only = on";
        let (error, _) = errors_of(setup, "insert into bells values ('ding')").await;
        let text = error.to_string();
        assert!(error.is_transient() && text.contains("readonly") && text.contains("owner and rights"), "{text}");
    }

    #[tokio::test]
    async fn constraints_are_conflicts_or_damage() {
        let setup = "create table everbell_jobs (job_key text unique check (job_key <> 'x')); insert into everbell_jobs values ('a')";
        let (error, committed) = errors_of(setup, "insert into everbell_jobs values ('a')").await;
        for error in [error, committed] {
            assert_eq!(error.to_string(), "conflict: ringing: a current job has this key");
        }
        let (error, _) = errors_of(setup, "insert into everbell_jobs values ('x')").await;
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn somebody_in_the_way_has_let_nothing_happen() {
        let path = std::env::temp_dir().join(format!("everbell-busy-{}.db", std::process::id()));
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let options = options.busy_timeout(std::time::Duration::ZERO);
        let (mut one, mut other) = (options.connect().await.unwrap(), options.connect().await.unwrap());
        sqlx::raw_sql("begin immediate").execute(&mut one).await.unwrap();
        let error = sqlx::raw_sql("begin immediate").execute(&mut other).await.unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(is_busy(&error) && !is_broken(&error));
        let error = commit("ringing", error);
        assert!(matches!(error, StoreError::Unavailable { maybe_done: false, .. }), "{error:?}");
        assert!(error.to_string().ends_with("try again"), "{error}");
    }
}

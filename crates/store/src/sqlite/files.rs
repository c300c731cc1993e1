//! The files of a database while it is open: whether they are still the ones that were opened, and how much of the
//! database is only in the write-ahead log.
//!
//! SQLite keeps working on files that were removed or replaced: it writes to inodes that have no name, and everything is
//! gone when the process ends. So the store compares device and inode of each path with what it opened, before each
//! transaction and after each commit. It only asks for metadata: opening and closing one of these files would release
//! the locks that SQLite holds on it in this process.
//!
//! One connection, the anchor, stays open as long as the store. While it does, SQLite never removes the write-ahead log, so
//! a log that is missing was removed by someone else. The anchor also writes the log back into the database from time to
//! time, so that a copy of the one file is never far behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use everbell_core::store::{NeedsOperator, StoreError, StoreResult, UnavailableReason};
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::connect::clock;
use super::errors;
use super::marker::sidecar;

/// The time between two checkpoints, however little was written.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(30);
/// A log that is larger than this is cut to nothing after a checkpoint.
const MAX_KEPT_LOG_BYTES: u64 = 4 << 20;
/// How long a checkpoint that cuts the log may wait for others, and keep them waiting.
const ANCHOR_BUSY_TIMEOUT: Duration = Duration::from_millis(200);

/// The anchor of an open database: see the module's documentation.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    options: SqliteConnectOptions,
    anchor: tokio::sync::Mutex<Option<SqliteConnection>>,
    opened: OnceLock<[(PathBuf, FileId); 3]>,
    is_closed: AtomicBool,
    /// When all files were last seen in place, in microseconds.
    in_place_at: AtomicI64,
    /// Why the last write failed, until one succeeds.
    write_failure: Mutex<Option<String>>,
    checkpoint_failure: Mutex<Option<String>>,
}

/// The identity of a file: its device and inode.
type FileId = (u64, u64);

impl Files {
    pub(super) fn new(path: &Path, options: SqliteConnectOptions) -> Files {
        Files {
            path: path.to_owned(),
            options: options.busy_timeout(ANCHOR_BUSY_TIMEOUT),
            anchor: tokio::sync::Mutex::new(None),
            opened: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            in_place_at: AtomicI64::new(clock().as_microsecond()),
            write_failure: Mutex::new(None),
            checkpoint_failure: Mutex::new(None),
        }
    }

    /// Opens the anchor, remembers which files there are, and writes the log back into the database.
    pub(super) async fn drop_anchor(self: &Arc<Files>) -> StoreResult<()> {
        let what = format!("opening {}", self.path.display());
        let mut connection = self.options.connect().await.map_err(|error| errors::from_sqlx(&what, error))?;
        // The first read opens the log.
        let read = sqlx::query("select count(*) from sqlite_schema").execute(&mut connection).await;
        read.map_err(|error| errors::from_sqlx(&what, error))?;
        let names = [self.path.clone(), sidecar(&self.path, "-wal"), sidecar(&self.path, "-shm")];
        let mut files = Vec::new();
        for name in names {
            let found = fs::metadata(&name).map_err(|error| moved(&name, &error.to_string(), clock()))?;
            files.push((name, file_id(&found)));
        }
        if let Ok(files) = files.try_into() {
            let _ = self.opened.set(files);
        }
        *self.anchor.lock().await = Some(connection);
        self.checkpoint().await;
        tokio::spawn(keep_checkpointing(Arc::downgrade(self)));
        Ok(())
    }

    /// Fails unless the files are still those that were opened.
    pub(super) fn check(&self) -> StoreResult<()> {
        if self.is_closed.load(Ordering::Acquire) {
            let what = format!("{} is closed, because the server is stopping", self.path.display());
            let reason = UnavailableReason::Unreachable;
            return Err(StoreError::Unavailable { what, reason, maybe_done: false, source: None });
        }
        let Some(opened) = self.opened.get() else { return Ok(()) };
        for (name, id) in opened {
            self.check_one(name, *id).map_err(|why| moved(name, &why, self.in_place_at()))?;
        }
        self.in_place_at.store(clock().as_microsecond(), Ordering::Relaxed);
        Ok(())
    }

    fn check_one(&self, name: &Path, id: FileId) -> Result<(), String> {
        match fs::metadata(name) {
            Ok(found) if file_id(&found) != id => Err("was replaced by another file".to_owned()),
            // A database has a first page. What is cut elsewhere is found by SQLite, which says that it is damaged.
            Ok(found) if name == self.path && found.len() == 0 => Err("was cut to nothing".to_owned()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err("was removed".to_owned()),
            Err(error) => Err(format!("can no longer be found ({error})")),
        }
    }

    /// The error of a commit that was made to files which were not in place any more.
    pub(super) fn check_committed(&self) -> StoreResult<()> {
        self.check().map_err(|error| match error {
            StoreError::Unavailable { what, reason, source, .. } => {
                StoreError::Unavailable { what, reason, maybe_done: true, source }
            }
            other => other,
        })
    }

    fn in_place_at(&self) -> Timestamp {
        Timestamp::from_microsecond(self.in_place_at.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Remembers how the last write ended.
    pub(super) fn note_write(&self, failure: Option<&StoreError>) {
        let mut noted = self.write_failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            None if noted.is_none() => {}
            _ => *noted = failure.map(ToString::to_string),
        }
    }

    /// Why nothing can be written, if the last write failed.
    pub(super) fn write_failure(&self) -> Option<String> {
        self.write_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn checkpoint_failure(&self) -> Option<String> {
        self.checkpoint_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the log back into the database without keeping anyone waiting; a large log is then cut, if that takes no
    /// wait worth mentioning.
    async fn checkpoint(&self) {
        let mut anchor = self.anchor.lock().await;
        let Some(connection) = anchor.as_mut() else { return };
        if self.check().is_err() {
            return;
        }
        let log = sidecar(&self.path, "-wal");
        let mut done = checkpoint(connection, "pragma wal_checkpoint(passive)").await;
        if matches!(done, Ok(true)) && fs::metadata(&log).is_ok_and(|found| found.len() > MAX_KEPT_LOG_BYTES) {
            done = checkpoint(connection, "pragma wal_checkpoint(truncate)").await;
        }
        let failure = done.err().map(|error| format!("the write-ahead log cannot be written back: {error}"));
        *self.checkpoint_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Writes the whole log back and closes the anchor. Everything is in the database file then, unless another process
    /// reads or writes it at this moment.
    pub(super) async fn weigh_anchor(&self, in_place: StoreResult<()>) -> StoreResult<()> {
        let Some(mut connection) = self.anchor.lock().await.take() else { return in_place };
        let what = format!("writing the log back into {}", self.path.display());
        let failed = |error| errors::from_sqlx(&what, error);
        in_place?;
        checkpoint(&mut connection, "pragma wal_checkpoint(truncate)").await.map_err(failed)?;
        connection.close().await.map_err(failed)
    }

    /// Makes every check fail from now on, and returns whether this is new.
    pub(super) fn refuse_all(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }
}

/// Whether everything that is in the log is in the database too.
async fn checkpoint(connection: &mut SqliteConnection, statement: &'static str) -> Result<bool, sqlx::Error> {
    let (busy, logged, written): (i64, i64, i64) = sqlx::query_as(statement).fetch_one(connection).await?;
    Ok(busy == 0 && logged == written)
}

async fn keep_checkpointing(files: std::sync::Weak<Files>) {
    loop {
        tokio::time::sleep(CHECKPOINT_INTERVAL).await;
        let Some(files) = files.upgrade() else { return };
        if files.is_closed.load(Ordering::Acquire) {
            return;
        }
        files.checkpoint().await;
    }
}

pub(super) fn file_id(found: &fs::Metadata) -> FileId {
    #[cfg(unix)]
    return (std::os::unix::fs::MetadataExt::dev(found), std::os::unix::fs::MetadataExt::ino(found));
    #[cfg(not(unix))]
    return (0, 0);
}

fn moved(name: &Path, why: &str, in_place_at: Timestamp) -> StoreError {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let reason = format!(
        "`{file}` {why} while the server was using it; nothing more is written, and changes made after {} may be \
         lost; put the same file back, or stop the server, restore a backup and start again",
        in_place_at.strftime("%Y-%m-%d %H:%M:%S UTC"),
    );
    let what = format!("{reason} (in {})", name.parent().unwrap_or(Path::new("")).display());
    let source = Some(NeedsOperator { reason }.into());
    StoreError::Unavailable { what, reason: UnavailableReason::Unreachable, maybe_done: false, source }
}

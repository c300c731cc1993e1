//! Connections: one that writes, a few that read.
//!
//! A write starts with `begin immediate`: it waits before it has read anything, so it never has to start over at the
//! end. A database in memory lives in its one connection, which then does everything.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{StoreError, StoreResult, UnavailableReason};
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions, FromRow, SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, Notify};

use super::awaited_commits::AwaitedCommits;
use super::fault_injection::Faults;
use super::files::Files;
use super::transaction::{Line, SqliteLine, Statement};
use super::{SqliteStore, errors, marker, migrate, moved};
use crate::micros::Micros;
use crate::rows::Definitions;

/// How long a process waits for another one to end its transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_READERS: u32 = 4;

/// Checkpoints of 80 MB: with the default of 4 MB the hot path spends a third of its time in them.
const PAGES_BETWEEN_CHECKPOINTS: &str = "20000";

/// At most 32 MiB of pages, in kibibytes: the indexes of a million timers do not fit into the default of 2.
const WRITER_CACHE: &str = "-32768";

/// Rows that a connection hands over at once, so that its thread does not wait for the reader of each.
const ROW_BUFFER_ROWS: usize = 1_000;

impl SqliteStore {
    /// One statement, alone in its transaction.
    pub(super) async fn write(&self, what: &str, statement: Statement) -> StoreResult<u64> {
        let mut held = self.writer(what).await?;
        let mut tx = held.begin().await?;
        let written = tx.run(statement).await?;
        if written > 0 {
            tx.commit().await?;
        }
        Ok(written)
    }

    /// Reads all rows of a statement.
    pub(super) async fn read<T>(&self, what: impl Into<String>, statement: Statement) -> StoreResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        self.reader(what).await?.begin().await?.all(statement).await
    }

    /// Reads the first row of a statement.
    pub(super) async fn read_first<T>(&self, what: impl Into<String>, statement: Statement) -> StoreResult<Option<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        self.reader(what).await?.begin().await?.first(statement).await
    }

    /// Opens or creates the database in this file, and brings its schema up to date. A new file and a new folder belong
    /// to their owner alone.
    pub async fn open(path: &Path) -> StoreResult<SqliteStore> {
        marker::check(path)?;
        create(path).map_err(|error| cannot_create(path, &error))?;
        let options = options().filename(path).create_if_missing(false);
        let readers = SqlitePoolOptions::new()
            .max_connections(MAX_READERS)
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_lazy_with(options.clone().pragma("query_only", "on"));
        let writing = options
            .clone()
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("wal_autocheckpoint", PAGES_BETWEEN_CHECKPOINTS)
            .pragma("cache_size", WRITER_CACHE);
        let files = Arc::new(Files::new(path, options));
        let store = SqliteStore::new(writing, Some(readers), Some((path.to_owned(), Arc::clone(&files))));
        store.prepare().await?;
        files.drop_anchor().await?;
        marker::write(path)?;
        Ok(store)
    }

    /// A new database that is gone with this value.
    pub async fn in_memory() -> StoreResult<SqliteStore> {
        let store = SqliteStore::new(options().in_memory(true), None, None);
        store.prepare().await?;
        Ok(store)
    }

    pub(super) fn new(
        options: SqliteConnectOptions,
        readers: Option<SqlitePool>,
        file: Option<(PathBuf, Arc<Files>)>,
    ) -> SqliteStore {
        let (path, files) = file.unzip();
        let wake = Arc::new(Notify::new());
        let awaited = Arc::new(AwaitedCommits::new(readers.clone(), Arc::clone(&wake)));
        SqliteStore {
            options,
            writer: Mutex::new(None),
            readers,
            path,
            files,
            known: Definitions::default(),
            wake,
            awaited,
            faults: Faults::default(),
        }
    }

    async fn prepare(&self) -> StoreResult<()> {
        let mut writer = self.writer.lock().await;
        let connection = self.connected(&mut writer).await?;
        migrate::run(connection, clock()).await?;
        moved::read_mark(connection).await?.map_or(Ok(()), |moved| Err(moved.refuse()))
    }

    /// The connection, opened when there is none or the last one broke.
    async fn connected<'a>(&self, writer: &'a mut Option<SqliteConnection>) -> StoreResult<&'a mut SqliteConnection> {
        let connection = match writer.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(writer.insert(connection))
    }

    /// Turning on the write-ahead log needs the file alone and does not wait for it, so this tries again.
    async fn connect(&self) -> StoreResult<SqliteConnection> {
        let what = format!("opening {}", self.display_name());
        let pause = Duration::from_millis(20);
        let mut waited = Duration::ZERO;
        loop {
            match self.options.connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) if errors::is_busy(&error) && waited < BUSY_TIMEOUT => {
                    tokio::time::sleep(pause).await;
                    waited += pause;
                }
                Err(error) => return Err(errors::from_sqlx(&what, error)),
            }
        }
    }

    pub(crate) fn display_name(&self) -> String {
        self.path.as_ref().map_or("a database in memory".to_owned(), |path| path.display().to_string())
    }

    /// The right to write, until it is dropped. `what` is said when something goes wrong.
    pub(super) async fn writer(&self, what: impl Into<String>) -> StoreResult<SqliteLine<'_>> {
        let mut writer = self.writer.lock().await;
        self.check_files()?;
        self.connected(&mut writer).await?;
        Ok(SqliteLine::new(self, Line::Writer(writer), what.into()))
    }

    /// A connection to read with, until it is dropped.
    pub(super) async fn reader(&self, what: impl Into<String>) -> StoreResult<SqliteLine<'_>> {
        let what = what.into();
        let Some(pool) = &self.readers else { return self.writer(what).await };
        self.check_files()?;
        let line = pool.acquire().await.map_err(|error| errors::from_sqlx(&what, error))?;
        Ok(SqliteLine::new(self, Line::Reader(line), what))
    }

    /// Fails unless the files of the database are in place.
    fn check_files(&self) -> StoreResult<()> {
        self.files.as_ref().map_or(Ok(()), |files| files.check())
    }
}

/// Returns the options that both kinds of connections share.
pub(super) fn options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .row_buffer_size(ROW_BUFFER_ROWS)
        .pragma("temp_store", "memory")
        .disable_statement_logging()
}

/// Creates the file, and its folder, for their owner alone. The files beside it get the rights of this one from SQLite.
fn create(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(folder)?;
    }
    let mut file = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file.write(true).create(true).truncate(false).open(path)?;
    Ok(())
}

fn cannot_create(path: &Path, error: &io::Error) -> StoreError {
    let what = format!("creating {}: {error}; check that the folder exists and who may use it", path.display());
    StoreError::Unavailable { what, reason: UnavailableReason::Unreachable, maybe_done: false, source: None }
}

/// The host's clock: a database in a file has no other.
#[expect(clippy::disallowed_methods, reason = "it is what ClusterStore::now answers with SQLite")]
pub(super) fn clock() -> Timestamp {
    Micros::from(Timestamp::now()).into()
}

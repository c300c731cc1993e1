//! One transaction: every statement of the store passes here, and so does every fault that a test wants.

use std::sync::atomic::{AtomicBool, Ordering};

use everbell_core::store::{StoreError, StoreResult};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{FromRow, Sqlite, SqliteConnection};
use tokio::sync::MutexGuard;

use super::fault_injection::Call;
use super::{SqliteStore, errors};
use crate::part::Part;

/// A statement with its values.
pub(super) type Statement = Query<'static, Sqlite, SqliteArguments>;

/// A connection and its purpose, for error messages.
pub(super) struct SqliteLine<'a> {
    store: &'a SqliteStore,
    line: Line<'a>,
    what: String,
    /// It said something after which it is not to be trusted.
    broken: AtomicBool,
}

pub(super) enum Line<'a> {
    /// Open, because [`SqliteStore::writer`] saw to it.
    Writer(MutexGuard<'a, Option<SqliteConnection>>),
    Reader(PoolConnection<Sqlite>),
}

impl<'a> SqliteLine<'a> {
    pub(super) fn new(store: &'a SqliteStore, line: Line<'a>, what: String) -> SqliteLine<'a> {
        SqliteLine { store, line, what, broken: AtomicBool::new(false) }
    }

    /// Begins. What is not committed is undone, also when the caller is gone.
    pub(super) async fn begin(&mut self) -> StoreResult<Tx<'_>> {
        let SqliteLine { store, line, what, broken } = self;
        let later = store.faults.before(what, Call::Statement, broken)?;
        let is_writer = matches!(line, Line::Writer(_));
        let begun = match line {
            Line::Writer(writer) => match writer.as_mut() {
                Some(connection) => Part::begin(connection, Some("begin immediate")).await,
                None => Err(sqlx::Error::WorkerCrashed),
            },
            Line::Reader(connection) => Part::begin(connection, None).await,
        };
        let inner = begun.map_err(|error| {
            note(broken, &error);
            failed(store, is_writer, error, |error| errors::from_sqlx(what, error))
        })?;
        later.heard()?;
        Ok(Tx { inner, store, what, broken, is_writer, wrote: false })
    }
}

impl Drop for SqliteLine<'_> {
    /// Does not reuse a broken connection: the driver may believe that it is still in a transaction, which SQLite has
    /// ended by itself. A database in memory is its connection, so that one is always kept.
    fn drop(&mut self) {
        if *self.broken.get_mut() && self.store.path.is_some() {
            match &mut self.line {
                Line::Writer(writer) => **writer = None,
                Line::Reader(connection) => connection.close_on_drop(),
            }
        }
    }
}

fn note(broken: &AtomicBool, error: &sqlx::Error) {
    if errors::is_broken(error) {
        broken.store(true, Ordering::Relaxed);
    }
}

/// The error of the store, which remembers that nothing can be written if someone has to do something about that.
fn failed(
    store: &SqliteStore,
    is_writer: bool,
    error: sqlx::Error,
    classify: impl FnOnce(sqlx::Error) -> StoreError,
) -> StoreError {
    let lasting = is_writer && errors::needs_an_operator(&error);
    let error = classify(error);
    if let Some(files) = store.files.as_ref().filter(|_| lasting) {
        files.note_write(Some(&error));
    }
    error
}

/// A transaction that has begun.
pub(super) struct Tx<'a> {
    inner: Part<'a, Sqlite>,
    store: &'a SqliteStore,
    what: &'a str,
    broken: &'a AtomicBool,
    /// Whether it has the connection that writes.
    is_writer: bool,
    /// Whether rows changed, as far as it was counted.
    wrote: bool,
}

impl<'a> Tx<'a> {
    /// Starts a part of the caller's transaction: it is undone with it, or alone.
    pub(super) async fn inside(
        store: &'a SqliteStore,
        connection: &'a mut SqliteConnection,
        what: &'a str,
        broken: &'a AtomicBool,
    ) -> StoreResult<Tx<'a>> {
        let inner = Part::begin(connection, None).await.map_err(|error| errors::from_sqlx(what, error))?;
        Ok(Tx { inner, store, what, broken, is_writer: false, wrote: false })
    }

    /// Every row.
    pub(super) async fn all<T>(&mut self, statement: Statement) -> StoreResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        let later = self.store.faults.before(self.what, Call::Statement, self.broken)?;
        let rows = statement.fetch_all(&mut *self.inner).await.map_err(|error| self.failed(error))?;
        later.heard()?;
        let read = rows.iter().map(T::from_row).collect::<Result<Vec<T>, _>>();
        read.map_err(|error| errors::from_sqlx(self.what, error))
    }

    /// The first row, if there is one.
    pub(super) async fn first<T>(&mut self, statement: Statement) -> StoreResult<Option<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        Ok(self.all(statement).await?.into_iter().next())
    }

    /// The row of a statement that always has one.
    pub(super) async fn one<T>(&mut self, statement: Statement) -> StoreResult<T>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        let row = self.first(statement).await?;
        row.ok_or_else(|| StoreError::Corrupt { what: format!("{}: a row that must be there is not", self.what) })
    }

    /// No row; how many were written.
    pub(super) async fn run(&mut self, statement: Statement) -> StoreResult<u64> {
        let later = self.store.faults.before(self.what, Call::Statement, self.broken)?;
        let done = statement.execute(&mut *self.inner).await.map_err(|error| self.failed(error))?;
        later.heard()?;
        self.wrote |= done.rows_affected() > 0;
        Ok(done.rows_affected())
    }

    /// Says that a statement which returns rows has changed some.
    pub(super) fn note_written(&mut self) {
        self.wrote = true;
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        note(self.broken, &error);
        failed(self.store, self.is_writer, error, |error| errors::from_sqlx(self.what, error))
    }

    /// Makes it last.
    pub(super) async fn commit(self) -> StoreResult<()> {
        let Tx { inner, store, what, broken, is_writer, wrote } = self;
        let later = store.faults.before(what, Call::Commit, broken)?;
        inner.commit().await.map_err(|error| {
            note(broken, &error);
            failed(store, is_writer, error, |error| errors::commit(what, error))
        })?;
        if let Some(files) = store.files.as_ref().filter(|_| is_writer) {
            files.check_committed()?;
            if wrote {
                files.note_write(None);
            }
        }
        later.heard()
    }

    /// Commits, and wakes every loop in this process; also when the effect of the commit is in doubt.
    pub(super) async fn commit_and_wake(self) -> StoreResult<()> {
        let store = self.store;
        let done = self.commit().await;
        store.wake.notify_waiters();
        done
    }
}

#[cfg(test)]
mod tests {
    use everbell_core::store::{AccessStore, ClusterStore};
    use jiff::Timestamp;

    use super::*;

    #[tokio::test]
    async fn a_store_goes_on_when_the_disk_is_no_longer_full() {
        let folder = std::env::temp_dir().join(format!("everbell-full-{}", std::process::id()));
        let store = SqliteStore::open(&folder.join("everbell.db")).await.unwrap();
        {
            let mut held = store.writer("filling").await.unwrap();
            let mut tx = held.begin().await.unwrap();
            // Known to this connection only: to the next one there is room again.
            tx.run(sqlx::query("pragma max_page_count = 1")).await.unwrap();
            let big =
                "insert into everbell_requests (key, fingerprint, created_at) values ('big', zeroblob(10000000), 0)";
            let error = tx.run(sqlx::query(big)).await.unwrap_err();
            assert!(error.is_transient() && error.to_string().contains("make room"), "{error}");
            assert!(error.needs_operator().is_some());
        }
        let failure = store.status().await.unwrap().write_failure;
        assert!(failure.is_some_and(|failure| failure.contains("disk is full")));
        let heartbeat = everbell_core::store::Instance::new(
            everbell_core::InstanceId::new(Timestamp::UNIX_EPOCH, [1; 10]),
            "here".to_owned(),
            1,
            String::new(),
            Timestamp::UNIX_EPOCH,
        );
        store.heartbeat(&heartbeat, None, false).await.unwrap();
        assert_eq!(store.status().await.unwrap().write_failure, None);
        let request = everbell_core::store::RequestKey { key: "small".to_owned(), fingerprint: [0; 32] };
        let written = store.remember_answer(&request, (200, ""), store.now().await.unwrap()).await;
        std::fs::remove_dir_all(folder).unwrap();
        written.unwrap();
    }
}

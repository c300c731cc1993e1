//! One transaction: every statement of the store passes here, and so does every fault that a test wants.

use std::sync::atomic::Ordering;

use everbell_core::store::{StoreError, StoreResult};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Connection, FromRow, Sqlite, SqliteConnection, Transaction};
use tokio::sync::MutexGuard;

use super::faults::{Call, Later};
use super::{SqliteStore, fault};

/// A statement with its values.
pub(super) type Statement = Query<'static, Sqlite, SqliteArguments>;

/// A connection, and what it is wanted for.
pub(super) struct Held<'a> {
    pub(super) store: &'a SqliteStore,
    pub(super) line: Line<'a>,
    pub(super) what: String,
}

pub(super) enum Line<'a> {
    /// Open, because [`SqliteStore::writer`] saw to it.
    Writer(MutexGuard<'a, Option<SqliteConnection>>),
    Reader(PoolConnection<Sqlite>),
}

impl Held<'_> {
    /// Begins. What is not committed is undone, also when the caller is gone.
    pub(super) async fn begin(&mut self) -> StoreResult<Tx<'_>> {
        let Held { store, line, what } = self;
        let later = store.fault(what, Call::Statement)?;
        let begun = match line {
            Line::Writer(writer) => match writer.as_mut() {
                Some(connection) => connection.begin_with("begin immediate").await,
                None => Err(sqlx::Error::WorkerCrashed),
            },
            Line::Reader(connection) => connection.begin().await,
        };
        let inner = begun.map_err(|error| store.failed(what, error))?;
        later.heard()?;
        Ok(Tx { inner, store, what })
    }
}

/// A transaction that has begun.
pub(super) struct Tx<'a> {
    inner: Transaction<'a, Sqlite>,
    store: &'a SqliteStore,
    what: &'a str,
}

impl Tx<'_> {
    /// Every row.
    pub(super) async fn all<T>(&mut self, statement: Statement) -> StoreResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow>,
    {
        let later = self.store.fault(self.what, Call::Statement)?;
        let rows = statement.fetch_all(&mut *self.inner).await.map_err(|error| self.store.failed(self.what, error))?;
        later.heard()?;
        let read = rows.iter().map(T::from_row).collect::<Result<Vec<T>, _>>();
        read.map_err(|error| fault::from_sqlx(self.what, error))
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
        let later = self.store.fault(self.what, Call::Statement)?;
        let done = statement.execute(&mut *self.inner).await.map_err(|error| self.store.failed(self.what, error))?;
        later.heard()?;
        Ok(done.rows_affected())
    }

    /// Makes it last.
    pub(super) async fn commit(self) -> StoreResult<()> {
        let Tx { inner, store, what } = self;
        let later = store.fault(what, Call::Commit)?;
        inner.commit().await.map_err(|error| {
            store.note(&error);
            fault::commit(what, error)
        })?;
        later.heard()
    }

    /// Makes it last, and tells every loop in this process to look again; also when nobody knows whether it lasts.
    pub(super) async fn commit_and_wake(self) -> StoreResult<()> {
        let store = self.store;
        let done = self.commit().await;
        store.wake.notify_waiters();
        done
    }
}

impl SqliteStore {
    /// The fault that a test wants here: an error now, or later when the call is done.
    fn fault(&self, what: &str, call: Call) -> StoreResult<Later> {
        self.faults.before(what, call, &self.broken)
    }

    fn failed(&self, what: &str, error: sqlx::Error) -> StoreError {
        self.note(&error);
        fault::from_sqlx(what, error)
    }

    /// A connection that broke is not used again.
    fn note(&self, error: &sqlx::Error) {
        if fault::is_broken(error) {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

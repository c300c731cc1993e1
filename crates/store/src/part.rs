//! [`Part`]: a transaction, or a savepoint in that of an application, whose caller may drop any future at any time.
//!
//! The `Transaction` of sqlx may not be given up while it begins: the future then rolls back one level too many. For a
//! savepoint that is the whole transaction of the application, and whatever the application writes next would commit by
//! itself. So this uses what is below it.

use std::fmt;
use std::ops::{Deref, DerefMut};

use sqlx::Database;
use sqlx_core::transaction::TransactionManager;

/// An open transaction or savepoint. Dropping it rolls back before the connection does anything else.
pub(crate) struct Part<'c, D: Database> {
    connection: &'c mut D::Connection,
    is_open: bool,
}

#[cfg(feature = "postgres")]
impl<'c> Part<'c, sqlx::Postgres> {
    /// Begins a savepoint in the transaction that the connection has.
    ///
    /// A future that is dropped before its end is leaked, a few hundred bytes: to drop it would roll back the transaction.
    /// The savepoint, with nothing in it, ends with that.
    pub(crate) async fn savepoint(connection: &'c mut sqlx::PgConnection) -> sqlx::Result<Self> {
        let beginning = sqlx_postgres::PgTransactionManager::begin(connection, None);
        let mut beginning = std::mem::ManuallyDrop::new(Box::pin(beginning));
        let begun = beginning.as_mut().await;
        drop(std::mem::ManuallyDrop::into_inner(beginning));
        begun?;
        Ok(Part { connection, is_open: true })
    }
}

#[cfg(feature = "sqlite")]
impl<'c> Part<'c, sqlx::Sqlite> {
    /// Begins with this statement, or with the usual one: a savepoint if the connection has a transaction.
    pub(crate) async fn begin(
        connection: &'c mut sqlx::SqliteConnection,
        statement: Option<&'static str>,
    ) -> sqlx::Result<Self> {
        let statement = statement.map(sqlx::SqlSafeStr::into_sql_str);
        sqlx_sqlite::SqliteTransactionManager::begin(connection, statement).await?;
        Ok(Part { connection, is_open: true })
    }
}

impl<D: Database> Part<'_, D> {
    /// Commits the transaction, or keeps what was done since the savepoint.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        D::TransactionManager::commit(self.connection).await?;
        self.is_open = false;
        Ok(())
    }

    /// Undoes everything since the beginning.
    #[cfg(feature = "postgres")]
    pub(crate) async fn rollback(mut self) -> sqlx::Result<()> {
        D::TransactionManager::rollback(self.connection).await?;
        self.is_open = false;
        Ok(())
    }
}

impl<D: Database> Drop for Part<'_, D> {
    fn drop(&mut self) {
        if self.is_open {
            D::TransactionManager::start_rollback(self.connection);
        }
    }
}

impl<D: Database> Deref for Part<'_, D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        self.connection
    }
}

impl<D: Database> DerefMut for Part<'_, D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        self.connection
    }
}

impl<D: Database> fmt::Debug for Part<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

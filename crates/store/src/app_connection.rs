//! [`AppConnection`]: a connection of an application, in whose open transaction jobs and runs are written.

use std::future::Future;
use std::pin::Pin;

use everbell_core::Invalid;
use everbell_core::store::{Store, StoreResult};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use sqlx::{Connection, Transaction};
#[cfg(feature = "postgres")]
use sqlx::{PgConnection, Postgres};
#[cfg(feature = "sqlite")]
use sqlx::{Sqlite, SqliteConnection};

use crate::in_transaction::InTransaction;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::sqlite::SqliteStore;

/// A connection of the application that has an open transaction: `PgConnection` or `SqliteConnection` of sqlx, or a
/// `Transaction` of one of them.
///
/// Jobs and runs that are written through it exist once the transaction commits, and never did if it is rolled back. The
/// connection must be to the database of the store, and the transaction one that sqlx began (`pool.begin()`,
/// `connection.begin()`): a statement that says `begin` is unknown to sqlx, and is refused as no transaction.
pub trait AppConnection: Send + sealed::Sealed {
    /// Starts a part of the transaction, which is undone alone if it fails. `what` is the operation, for errors.
    #[doc(hidden)]
    fn enter<'a>(&'a mut self, store: &'a dyn Store, what: &'a str) -> Entering<'a>;
}

#[doc(hidden)]
pub type Entering<'a> = Pin<Box<dyn Future<Output = StoreResult<Box<dyn InTransaction + 'a>>> + Send + 'a>>;

mod sealed {
    pub trait Sealed {}

    #[cfg(feature = "postgres")]
    impl Sealed for sqlx::PgConnection {}
    #[cfg(feature = "postgres")]
    impl Sealed for sqlx::Transaction<'_, sqlx::Postgres> {}
    #[cfg(feature = "sqlite")]
    impl Sealed for sqlx::SqliteConnection {}
    #[cfg(feature = "sqlite")]
    impl Sealed for sqlx::Transaction<'_, sqlx::Sqlite> {}
}

#[cfg(feature = "postgres")]
impl AppConnection for PgConnection {
    fn enter<'a>(&'a mut self, store: &'a dyn Store, what: &'a str) -> Entering<'a> {
        Box::pin(async move {
            let Some(own) = store.as_any().downcast_ref::<PostgresStore>() else {
                return Err(other_kind("PostgreSQL", store).into());
            };
            expect_transaction(self)?;
            Ok(Box::new(own.inside(self, what).await?) as _)
        })
    }
}

#[cfg(feature = "postgres")]
impl AppConnection for Transaction<'_, Postgres> {
    fn enter<'a>(&'a mut self, store: &'a dyn Store, what: &'a str) -> Entering<'a> {
        PgConnection::enter(self, store, what)
    }
}

#[cfg(feature = "sqlite")]
impl AppConnection for SqliteConnection {
    fn enter<'a>(&'a mut self, store: &'a dyn Store, what: &'a str) -> Entering<'a> {
        Box::pin(async move {
            let Some(own) = store.as_any().downcast_ref::<SqliteStore>() else {
                return Err(other_kind("SQLite", store).into());
            };
            expect_transaction(self)?;
            Ok(Box::new(own.inside(self, what).await?) as _)
        })
    }
}

#[cfg(feature = "sqlite")]
impl AppConnection for Transaction<'_, Sqlite> {
    fn enter<'a>(&'a mut self, store: &'a dyn Store, what: &'a str) -> Entering<'a> {
        SqliteConnection::enter(self, store, what)
    }
}

/// Refuses a connection that would commit at once, or, worse, commit a transaction that sqlx does not know of.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
fn expect_transaction(connection: &impl Connection) -> Result<(), Invalid> {
    if connection.is_in_transaction() {
        return Ok(());
    }
    let reason = "has no open transaction that sqlx knows of; begin one with `pool.begin()` or `connection.begin()`";
    Err(Invalid::new("connection", reason))
}

/// The refusal of a connection to another kind of database than the store's.
fn other_kind(kind: &str, store: &dyn Store) -> Invalid {
    Invalid::new("connection", format!("is to {kind}, but this everbell uses {}", database_of(store)))
}

/// The database of a store, for people, without a password.
fn database_of(store: &dyn Store) -> String {
    #[cfg(feature = "postgres")]
    if let Some(store) = store.as_any().downcast_ref::<PostgresStore>() {
        return format!("the PostgreSQL database {}", store.database());
    }
    #[cfg(feature = "sqlite")]
    if let Some(store) = store.as_any().downcast_ref::<SqliteStore>() {
        return format!("SQLite: {}", store.display_name());
    }
    "a store in memory, which no connection leads to".to_owned()
}

//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, Changed, DecideFn, Instance, JobFilter, JobRef, JobRow, Store, StoreResult};
use everbell_core::{Invalid, OrgId};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use sqlx::{Connection, Transaction};
#[cfg(feature = "postgres")]
use sqlx::{PgConnection, Postgres};
#[cfg(feature = "sqlite")]
use sqlx::{Sqlite, SqliteConnection};

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

/// The verbs of a store within a part of the application's transaction. They see what that transaction has written. What
/// is dropped before [`InTransaction::finish`] is undone, and the transaction stays usable.
#[async_trait]
#[doc(hidden)]
pub trait InTransaction: Send {
    /// Like [`JobStore::get_job`](everbell_core::store::JobStore::get_job).
    async fn get_job(&mut self, job: &JobRef) -> StoreResult<JobRow>;

    /// Like [`JobStore::count_jobs`](everbell_core::store::JobStore::count_jobs).
    async fn count_jobs(&mut self, filter: &JobFilter, cap: u32) -> StoreResult<u32>;

    /// Like [`ClusterStore::list_instances`](everbell_core::store::ClusterStore::list_instances).
    async fn list_instances(&mut self) -> StoreResult<Vec<Instance>>;

    /// Like [`JobStore::create_job`](everbell_core::store::JobStore::create_job).
    async fn create_job(&mut self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow>;

    /// Like [`JobStore::create_jobs`](everbell_core::store::JobStore::create_jobs).
    async fn create_jobs(&mut self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()>;

    /// Like [`JobStore::change_job`](everbell_core::store::JobStore::change_job), or for the timer of an org.
    async fn change_job(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed>;

    /// Ends this part. It takes effect with the application's commit, and wakes the loops then.
    async fn finish(self: Box<Self>) -> StoreResult<()>;
}

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
            let Some(own) = store.as_any().downcast_ref::<crate::postgres::PostgresStore>() else {
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
            let Some(own) = store.as_any().downcast_ref::<crate::sqlite::SqliteStore>() else {
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
    if let Some(store) = store.as_any().downcast_ref::<crate::postgres::PostgresStore>() {
        return format!("the PostgreSQL database {}", store.database());
    }
    #[cfg(feature = "sqlite")]
    if let Some(store) = store.as_any().downcast_ref::<crate::sqlite::SqliteStore>() {
        return format!("SQLite: {}", store.display_name());
    }
    "a store in memory, which no connection leads to".to_owned()
}
